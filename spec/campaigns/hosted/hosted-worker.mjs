// A worker process of the campaigns of hosted loops: does what is due until it is killed. It tells its parent when it is
// at work, and of each turn and problem. `HOSTED_CLOCK` is the file of a shared clock; without one, the time is real.

import { setTimeout as wait } from 'node:timers/promises';
import { systemClock, systemIds } from 'rondo/host';
import { openSqlite } from 'rondo/sqlite';
import { effectFile } from './effect-file.mjs';
import { hostedHost } from './hosted-host.mjs';
import { SharedClock } from './shared-clock.mjs';

const [file = '', sink = '', concurrency = '16', effectMs = '0'] = process.argv.slice(2);
const { HOSTED_CLOCK } = process.env;
const clock = HOSTED_CLOCK === undefined ? systemClock : new SharedClock(HOSTED_CLOCK);
const store = await openSqlite(file);
const append = effectFile(sink);
const perform = async (/** @type {import('./hosted-host.mjs').SunkEffect} */ effect) => {
  append({ ...effect, pid: process.pid });
  if (Number(effectMs) > 0) await wait(Number(effectMs));
};
const host = hostedHost({ store, clock, ids: systemIds, perform });
const tell = (/** @type {object} */ message) => process.send?.(message);
// A parent that is gone needs no worker.
process.once('disconnect', () => process.exit(0));
tell({ kind: 'working' });
await host.work({
  concurrency: Number(concurrency),
  onResult: ({ turnId, status }) => tell({ kind: 'result', turnId, status }),
  onProblem: ({ code, message, turnId }) => tell({ kind: 'problem', code, message, turnId }),
});
