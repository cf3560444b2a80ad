// Processes on one SQLite store finish, fail, deny and cancel turns just as they close. Afterwards every turn ends, each
// has one final receipt, and the store was valid at any moment in between. See README.md.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createRondo } from 'rondo';
import { seededRandom } from 'rondo/testing';
import { fail, finish, nap, pay } from './closing/loops.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '100' }, seed: { type: 'string', default: '1' } },
});
const PROCESSES = 4;
/** A process closes within this many milliseconds of the first end of a turn. */
const WINDOW_MS = 15;
/** A worker ends what was left within this many milliseconds. */
const WORK_MS = 60_000;
const [rounds = 0, seed = 0] = [values.rounds, values.seed].map(Number);
const program = fileURLToPath(new URL('closing/closing-process.mjs', import.meta.url));
const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));
const random = seededRandom(seed);
const folder = mkdtempSync(join(tmpdir(), 'rondo-closing-'));
// The keys of receipts are in the project of the current directory.
process.chdir(folder);
const store = `sqlite:${join(folder, '.rondo', 'journal.db')}`;
/** @type {string[]} */
const violations = [];
/** The turns whose cancellation or denial was accepted. @type {Set<string>} */
const accepted = new Set();

/** @param {'close' | 'terminate'} how */
async function runProcess(how) {
  const closeAfterMs = random() * WINDOW_MS;
  const child = spawn(process.execPath, [program, store, how, String(closeAfterMs)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const closed = once(child, 'close');
  await Promise.race([once(child.stdout, 'data'), closed]);
  if (how === 'terminate') {
    await sleep(closeAfterMs);
    child.kill('SIGTERM');
  }
  const [code] = await closed;
  if (code !== 0) violations.push(`a process that was to ${how} ended with ${code}`);
  for (const turnId of output.split('\n')) if (turnId !== '' && turnId !== 'ending') accepted.add(turnId);
}

let verifications = 0;
async function verifyStore() {
  const child = spawn(process.execPath, [bin, 'verify', '--all', '--json']);
  let output = '';
  child.stdout.on('data', (text) => {
    output += text;
  });
  const [code] = await once(child, 'close');
  verifications += 1;
  if (code !== 0) violations.push(`verify --all ended with ${code}: ${output.slice(0, 2000)}`);
}

/** Has a worker continue what the processes left, and asserts that what was accepted took effect. */
async function finishTurns() {
  const rondo = await createRondo({ store, loops: [finish, fail, pay, nap] });
  const working = rondo.work();
  const until = Date.now() + WORK_MS;
  const isOpen = async () => {
    for (const { turnId, status } of await rondo.turns())
      if (status === 'interrupted' || status === 'running' || (status === 'paused' && accepted.has(turnId)))
        return true;
    return false;
  };
  while ((await isOpen()) && Date.now() < until) await sleep(200);
  /** @type {Record<string, number>} */
  const ends = {};
  for (const { turnId, status } of await rondo.turns()) {
    ends[status] = (ends[status] ?? 0) + 1;
    if (['ok', 'error', 'cancelled'].includes(status)) continue;
    if (status !== 'paused' || accepted.has(turnId)) violations.push(`${turnId} is ${status}`);
  }
  await rondo.close();
  await working;
  return ends;
}

console.log(`seed ${seed}`);
for (let round = 0; round < rounds; round++) {
  const processes = Array.from({ length: PROCESSES }, (_, n) => runProcess(n % 2 === 0 ? 'close' : 'terminate'));
  await Promise.all(round === 0 ? processes : [...processes, verifyStore()]);
}
const ends = await finishTurns();
await verifyStore();
rmSync(folder, { recursive: true, force: true });
for (const text of violations.slice(0, 30)) console.log(text);
const summary = { seed, rounds, accepted: accepted.size, ends, verifications };
console.log(JSON.stringify({ ...summary, violations: violations.slice(0, 30) }));
process.exit(violations.length > 0 ? 1 : 0);
