// A process with sealed turns on a SQLite store is killed again and again. Afterwards the effects that this process
// received and the effects in the receipts match one to one, and no effect was received more often than its receipt has
// attempts. See README.md.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openSqlite } from 'rondo/sqlite';
import { seededRandom } from 'rondo/testing';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
});
/** How many turns the worker runs at once. */
const CONCURRENT_TURNS = 3;
const [kills = 0, seed = 0] = [values.kills, values.seed].map(Number);
const program = fileURLToPath(new URL('receipts/receipt-worker.mjs', import.meta.url));
const random = seededRandom(seed);
const folder = mkdtempSync(join(tmpdir(), 'rondo-receipts-'));
const file = join(folder, 'store.db');
/** @type {string[]} */
const violations = [];
/** How often each effect was received, by its key without the incarnation of its session. @type {Map<string, number>} */
const received = new Map();

const server = createServer((request, response) => {
  const key = decodeURIComponent(request.url?.slice(1) ?? '');
  const effect = key.slice(key.indexOf(':') + 1);
  received.set(effect, (received.get(effect) ?? 0) + 1);
  response.end('ok');
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());

/** Starts a worker that runs turns from `first` on, forever or `count` of them. @param {number} count */
function startWorker(count) {
  const args = [program, file, `http://127.0.0.1:${port}`, String(count)];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

console.log(`seed ${seed}`);
let turns = 0;
for (let killed = 0; killed < kills; killed++) {
  // Each process finishes what the others left, and starts a few more.
  turns += 3;
  const child = startWorker(turns);
  const closed = once(child, 'close');
  // Counted from its work, so that a slow start does not leave a process without turns.
  await Promise.race([once(child.stdout, 'data'), closed]);
  await sleep(random() * 120);
  child.kill('SIGKILL');
  await closed;
}
const last = startWorker(turns);
last.stdout.resume();
const [code] = await once(last, 'close');
if (code !== 0) violations.push(`the last process ended with ${code}`);
server.close();

/** What the receipts say, by the key of an effect. @type {Map<string, string>} */
const sealed = new Map();
/** How often each effect was started, by the receipts. @type {Map<string, number>} */
const attempted = new Map();
/** The number of final receipts by turn. @type {Map<string, number>} */
const finals = new Map();
const store = await openSqlite(file);
for (const { session } of await store.journal.list())
  for await (const entries of store.journal.read(session, 0))
    for (const { type, value, blob } of entries) {
      if (type !== 'rondo.receipt.sealed') continue;
      const text = value ?? JSON.parse((await store.blobs.get(session, blob ?? '')) ?? 'null');
      const { envelope } = /** @type {{ envelope: { payload: string } }} */ (text);
      const { predicate } = JSON.parse(Buffer.from(envelope.payload, 'base64').toString());
      if (predicate.final) finals.set(predicate.turn, (finals.get(predicate.turn) ?? 0) + 1);
      for (const { key, state, attempts = 1 } of predicate.effects) {
        if (sealed.get(key) === 'done') violations.push(`${key} is done in two receipts`);
        sealed.set(key, state);
        attempted.set(key, attempts);
      }
    }
await store.close();
for (const effect of received.keys())
  if (sealed.get(effect) !== 'done') violations.push(`${effect} happened; its receipt says ${sealed.get(effect)}`);
// A start that was killed before it arrived here is an attempt as well, so there may be more attempts.
for (const [effect, count] of received)
  if (count > (attempted.get(effect) ?? 0))
    violations.push(`${effect} was received ${count} times; its receipt says ${attempted.get(effect)}`);
/** The attempts that were killed before they arrived. There is at most one for each effect in flight at a kill. */
const lost = [...attempted].reduce((sum, [effect, count]) => sum + count - (received.get(effect) ?? 0), 0);
if (lost > kills * CONCURRENT_TURNS) violations.push(`${lost} attempts never arrived, with ${kills} kills`);
for (const effect of sealed.keys())
  if (!received.has(effect)) violations.push(`${effect} has a receipt and did not happen`);
for (const [turn, count] of finals) if (count !== 1) violations.push(`${turn} has ${count} final receipts`);
if (finals.size !== turns) violations.push(`${finals.size} of ${turns} turns have a final receipt`);
if (received.size !== turns * 3) violations.push(`${received.size} effects of ${turns} turns with 3 each`);
const repeated = [...received.values()].filter((count) => count > 1).length;
if (!values.keep && violations.length === 0) rmSync(folder, { recursive: true, force: true });
for (const text of violations.slice(0, 30)) console.log(text);
const summary = { seed, kills, turns, effects: received.size, sealed: sealed.size, repeated, lost };
console.log(JSON.stringify({ ...summary, violations: violations.slice(0, 30) }));
process.exit(violations.length > 0 ? 1 : 0);
