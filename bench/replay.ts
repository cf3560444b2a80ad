// Opens a session and replays its unfinished root up to its wait.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqlite } from '../src/adapters/sqlite/index.js';
import type { Store } from '../src/host-entry.js';
import { memoryStore, Session, systemClock, systemIds } from '../src/host-entry.js';
import type { Loop } from '../src/index.js';
import { median } from './measure.js';
import { atLeast, section } from './table.js';
import * as work from './work.js';

const STEPS = 50_000;

/** Many steps, then a wait without a signal. */
const long: Loop<work.Count, work.Count> = {
  name: 'long',
  body: async (input, scope) => {
    const end = await work.inSequence(STEPS).body(input, scope);
    await scope.wait('go on');
    return end;
  },
};

async function entriesPerSecond(store: Store): Promise<number> {
  const options = { store, clock: systemClock, ids: systemIds };
  const replay = async (): Promise<void> => {
    const outcome = await (await Session.open('replay', options)).run('t1', long, { n: 0 });
    if (outcome.status !== 'paused') throw new Error('The replay did not end at its wait.');
  };
  await replay();
  const rates: number[] = [];
  for (let round = 0; round < 5; round++) {
    const start = process.hrtime.bigint();
    await replay();
    rates.push((2 * STEPS) / (Number(process.hrtime.bigint() - start) / 1e9));
  }
  return median(rates);
}

/** Measures replay. */
export async function benchReplay(): Promise<void> {
  section(`Replay of a run of ${(2 * STEPS).toLocaleString('en')} entries: open the session, run it to its wait`);
  atLeast('from memory', await entriesPerSecond(memoryStore()), 200_000, 'entries/s');
  const folder = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  const store = await openSqlite(join(folder, 'replay.db'));
  atLeast('from SQLite', await entriesPerSecond(store), 200_000, 'entries/s');
  await store.close();
  rmSync(folder, { recursive: true });
}
