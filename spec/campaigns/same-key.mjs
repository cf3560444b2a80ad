// Many processes start the same key at the same moment, on a store that does not exist yet: it runs once. See README.md.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openSqlite } from 'rondo/sqlite';
import { seededRandom } from 'rondo/testing';
import { eachLine } from './lines.mjs';
import { CampaignRecord, quantile } from './record.mjs';
import { effectValue, Sink } from './sink.mjs';

const PROGRESS_MS = 5000;
const LONGEST_MS = 10_000;
const program = fileURLToPath(new URL('same-key-worker.mjs', import.meta.url));

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    processes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
});
const [rounds = 0, processes = 0, seed = 0] = [values.rounds, values.processes, values.seed].map(Number);

/** @typedef {{ pid: number, turnId?: string, status?: string, output?: unknown, thrown?: unknown, code?: number | null }} Report */

const folder = mkdtempSync(join(tmpdir(), 'rondo-same-key-'));
const record = new CampaignRecord(join(folder, 'log.jsonl'));
const stderr = openSync(join(folder, 'stderr.log'), 'a');
const sink = new Sink(seededRandom(seed));
const socket = join(folder, 'sink.sock');
/** How long each process took from the word to its end. @type {number[]} */
const took = [];

/** A process that waits for the word. @param {string} file @param {string} turn */
function contender(file, turn) {
  const child = spawn(process.execPath, [program, file, socket, turn], { stdio: ['pipe', 'pipe', stderr] });
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new TypeError('A contender has pipes.');
  stdin.on('error', () => {});
  /** @type {Report} */
  const report = { pid: child.pid ?? 0 };
  const closed = once(child, 'close').then(([code]) => {
    report.code = code;
  });
  const ready = new Promise((resolve) => {
    eachLine(stdout, (line) => {
      Object.assign(report, JSON.parse(line));
      resolve(undefined);
    });
  });
  return { child, stdin, report, closed, ready: Promise.race([ready, closed]) };
}

/** Lets one process run to its end, and ends it if it hangs. @param {ReturnType<typeof contender>} one @param {string} turn */
async function finished({ child, stdin, report, closed }, turn) {
  const at = Date.now();
  stdin.write('go\n');
  const late = sleep(LONGEST_MS, 'late', { ref: false });
  if ((await Promise.race([closed, late])) === 'late') {
    record.violation(`${turn}: process ${report.pid} did not end within ${LONGEST_MS} ms`);
    child.kill('SIGKILL');
    await closed;
  }
  took.push(Date.now() - at);
  record.log('report', { turn, ...report });
}

/** @param {number} number */
async function round(number) {
  const turn = `round-${number}`;
  const file = join(folder, turn, 'data', 'journal.db');
  const all = Array.from({ length: processes }, () => contender(file, turn));
  await Promise.all(all.map(({ ready }) => ready));
  await Promise.all(all.map((one) => finished(one, turn)));
  const place = { turn, step: '0-once' };
  const output = JSON.stringify([effectValue(place)]);
  const ids = new Set(all.map(({ report }) => report.turnId));
  if (ids.size !== 1) record.violation(`${turn}: the processes report ${ids.size} turn ids: ${[...ids].join(', ')}`);
  for (const { report } of all) {
    const { status, code } = report;
    const right = status === 'ok' && code === 0 && JSON.stringify(report.output) === output;
    if (!right) record.violation(`${turn}: a process reports ${JSON.stringify(report)}`);
  }
  const seen = sink.seen(place);
  if (seen.length !== 1) record.violation(`${turn}: the effect happened ${seen.length} times: ${JSON.stringify(seen)}`);
  await inspect(file, turn);
  if (record.violations.length === 0) rmSync(join(folder, turn), { recursive: true });
}

/** The store is whole, and holds one session with one turn. @param {string} file @param {string} turn */
async function inspect(file, turn) {
  const store = await openSqlite(file, { check: 'full' });
  const { report } = /** @type {{ report?: { damage?: readonly unknown[] } }} */ (/** @type {unknown} */ (store));
  if (report?.damage?.length !== 0) record.violation(`${turn}: the store is damaged: ${JSON.stringify(report)}`);
  const sessions = await store.journal.list();
  if (sessions.length !== 1) record.violation(`${turn}: the store holds ${sessions.length} sessions`);
  await store.close();
}

await sink.listen(socket);
let done = 0;
const progress = setInterval(() => {
  console.log(`same-key: ${done} rounds, ${sink.count} effects, ${record.violations.length} violations`);
}, PROGRESS_MS);
while (done < rounds && !record.spent) await round(++done);
clearInterval(progress);
sink.close();
const { violations } = record;
const failed = violations.length > 0;
if (failed || values.keep) console.log(`The data directories and the log of all reports: ${folder}`);
else rmSync(folder, { recursive: true });
const processMs = { p50: quantile(took, 0.5), p99: quantile(took, 0.99), max: quantile(took, 1) };
console.log(
  JSON.stringify({ mode: 'same-key', seed, rounds: done, processes, effects: sink.count, processMs, violations }),
);
process.exit(failed ? 1 : 0);
