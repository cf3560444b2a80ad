// Many hosted loops are due in the same second, on one store with several workers of bounded concurrency that are killed in
// turn. Each loop gets its turns once, no loop before its time, and none a second turn before all have had the first one.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { checkStore } from './hosted/check-store.mjs';
import { effectFile, readEffects } from './hosted/effect-file.mjs';
import { fairnessOf, peakConcurrency } from './hosted/fleet-order.mjs';
import { hostedHost } from './hosted/hosted-host.mjs';
import { readLoops } from './hosted/read-loop.mjs';
import { documentOf } from './hosted/scenario.mjs';
import { WorkerPool } from './hosted/worker-pool.mjs';

const { values } = parseArgs({
  options: {
    loops: { type: 'string', default: '1000' },
    workers: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '16' },
    turns: { type: 'string', default: '2' },
    every: { type: 'string', default: '3000' },
    effect: { type: 'string', default: '30' },
    keep: { type: 'boolean', default: false },
  },
});
const [loops = 0, workers = 0, concurrency = 0, turns = 0] = [
  values.loops,
  values.workers,
  values.concurrency,
  values.turns,
].map(Number);
const [killEveryMs = 0, effectMs = 0] = [values.every, values.effect].map(Number);

const INTERVAL_MS = 2000;
const POLL_MS = 250;
const MAX_STALL_MS = 60_000;
const folder = mkdtempSync(join(tmpdir(), 'rondo-fleet-'));
const [file, sink] = [join(folder, 'store.db'), join(folder, 'effects.jsonl')];
/** @type {string[]} */
const violations = [];
effectFile(sink);

/** Starts all loops, paused, and lets them go at once: they are due in the same second. */
async function startLoops() {
  const store = await openSqlite(file);
  // One time for all, although it takes a while to start them.
  const startAt = Date.now();
  const clock = { ...systemClock, now: () => startAt };
  const host = hostedHost({ store, clock, ids: systemIds, perform: () => undefined });
  const start = (/** @type {number} */ n) => {
    const schedule = { everyMs: INTERVAL_MS };
    const document = documentOf(`loop-${n}`, 'report', { schedule, stop: { maxTurns: turns }, input: { n } });
    return host.hosted.start(document, { by: 'ada' });
  };
  await Promise.all(Array.from({ length: loops }, (_, n) => start(n)));
  await host.close();
  await store.close();
}

/** Kills the workers in turn until all turns have performed their effect. @param {WorkerPool} pool */
async function killInTurn(pool) {
  let [killedAt, count, since] = [Date.now(), 0, Date.now()];
  /** @type {number[]} */
  const performed = [];
  while (performed.length < 1 || count < loops * turns) {
    await wait(POLL_MS);
    const now = new Set(readEffects(sink).map(({ key }) => key)).size;
    if (now > count) [count, since] = [now, Date.now()];
    performed.push(count);
    if (Date.now() - since > MAX_STALL_MS) {
      violations.push(`nothing happened for ${MAX_STALL_MS} ms: ${count} of ${loops * turns} turns`);
      return;
    }
    if (killEveryMs === 0 || Date.now() - killedAt < killEveryMs) continue;
    if (await pool.killOne()) killedAt = Date.now();
  }
}

const begun = Date.now();
await startLoops();
const startMs = Date.now() - begun;
const pool = new WorkerPool([file, sink, String(concurrency), String(effectMs)]);
const working = Date.now();
pool.start(workers);
await killInTurn(pool);
const workMs = Date.now() - working;
// The last results may not be recorded.
await wait(2000);
await pool.stop();
violations.push(...pool.failures);

const store = await openSqlite(file, { check: 'full' });
const host = hostedHost({ store, clock: systemClock, ids: systemIds, perform: effectFile(sink) });
await host.work({ once: true });
const effects = readEffects(sink);
const expected = new Map(Array.from({ length: loops }, (_, n) => [`loop-${n}`, { effects: 1 }]));
const report = (/** @type {string} */ text) => violations.push(text);
await checkStore({ store, clock: systemClock, ids: systemIds, effects, expected, report });
const stored = await readLoops(store);
for (const { id, turns: own } of stored) if (own.length !== turns) violations.push(`${id} has ${own.length} turns`);
const peak = peakConcurrency(effects.map(({ pid = 0, at }) => ({ pid, from: at, to: at + effectMs - 2 })));
if (peak > concurrency) violations.push(`a worker ran ${peak} effects at once, with a bound of ${concurrency}`);
const fairness = fairnessOf(stored, effects);
if (fairness.secondTurnsBeforeLastFirst > workers * concurrency)
  violations.push(`${fairness.secondTurnsBeforeLastFirst} second turns began before the last first turn`);
if (killEveryMs > 0 && pool.kills === 0) violations.push('no worker was killed');
await host.close();
await store.close();
if (violations.length === 0 && !values.keep) rmSync(folder, { recursive: true, force: true });
else console.log(folder);
const performed = new Set(effects.map(({ key }) => key)).size;
const settings = { loops, workers, concurrency, turnsEach: turns, effectMs };
const perSecond = Math.round((performed * 1000) / workMs);
const figures = {
  kills: pool.kills,
  turns: performed,
  repeated: effects.length - performed,
  peakConcurrency: peak,
  startMs,
  workMs,
  perSecond,
};
for (const text of violations.slice(0, 30)) console.log(text);
console.log(JSON.stringify({ ...settings, ...figures, ...fairness, violations: violations.slice(0, 30) }));
process.exit(violations.length > 0 ? 1 : 0);
