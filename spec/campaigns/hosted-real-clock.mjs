// Hosted loops that are due every second, on the real clock, while their workers are killed with SIGKILL. See README.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { quantile } from './campaign-log.mjs';
import { checkStore } from './hosted/check-store.mjs';
import { effectFile, readEffects } from './hosted/effect-file.mjs';
import { hostedHost } from './hosted/hosted-host.mjs';
import { documentOf } from './hosted/scenario.mjs';
import { WorkerPool } from './hosted/worker-pool.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    every: { type: 'string', default: '700' },
    workers: { type: 'string', default: '2' },
    keep: { type: 'boolean', default: false },
  },
});
const [seconds = 0, everyMs = 0, workers = 0] = [values.seconds, values.every, values.workers].map(Number);

const folder = mkdtempSync(join(tmpdir(), 'rondo-real-clock-'));
const [file, sink] = [join(folder, 'store.db'), join(folder, 'effects.jsonl')];
/** @type {string[]} */
const violations = [];
effectFile(sink);
const everySecond = { cron: '* * * * * *', zone: 'Europe/Berlin' };
const documents = [
  documentOf('cron', 'report', { schedule: everySecond, catchUp: 'all', overlap: 'queue-one' }),
  documentOf('interval', 'report', { schedule: { everyMs: 1000 } }),
];

/** Opens the store in this process. @param {import('rondo/host').Clock} clock */
async function openHost(clock) {
  const store = await openSqlite(file, { check: 'full' });
  return { store, host: hostedHost({ store, clock, ids: systemIds, perform: effectFile(sink) }) };
}

const first = await openHost(systemClock);
for (const document of documents) await first.host.hosted.start(document, { by: 'ada' });
await first.host.close();
await first.store.close();
const pool = new WorkerPool([file, sink, '16', '20']);
pool.start(workers);
for (const until = Date.now() + seconds * 1000; Date.now() < until; ) {
  await wait(everyMs * (0.5 + Math.random()));
  await pool.killOne();
}
await pool.stop();
violations.push(...pool.failures);

// What is due at the end is done with the clock at rest, so that nothing becomes due while it is checked.
const now = Date.now();
const clock = { ...systemClock, now: () => now };
const { store, host } = await openHost(clock);
await host.work({ once: true });
const effects = readEffects(sink);
const expected = new Map(documents.map(({ id }) => [id, { effects: 1 }]));
const report = (/** @type {string} */ text) => violations.push(text);
const { turns, dropped } = await checkStore({ store, clock, ids: systemIds, effects, expected, report });
await host.close();
await store.close();
const covered = turns.filter(({ request }) => request.through > request.dueAt).length;
const lateness = turns.map(({ request }) => request.at - request.dueAt);
const performed = new Set(effects.map(({ key }) => key)).size;
if (pool.kills === 0) violations.push('no worker was killed');
if (violations.length === 0 && !values.keep) rmSync(folder, { recursive: true, force: true });
else console.log(folder);
const late = { p50: quantile(lateness, 0.5), p95: quantile(lateness, 0.95), max: quantile(lateness, 1) };
const figures = {
  turns: turns.length,
  forSeveral: covered,
  dropped,
  effects: performed,
  repeated: effects.length - performed,
};
for (const text of violations.slice(0, 30)) console.log(text);
console.log(
  JSON.stringify({ seconds, kills: pool.kills, ...figures, lateMs: late, violations: violations.slice(0, 30) }),
);
process.exit(violations.length > 0 ? 1 : 0);
