/** The worker continues what is due, once, in any number of hosts on one store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { hostOf } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { openSqlite } from '../adapters/sqlite/index.js';
import { systemClock } from '../adapters/system/index.js';
import type { Store } from '../journal/store.js';
import { defineLoop } from '../loops/define.js';
import type { Host } from './host.js';
import type { WorkProblem } from './worker.js';

const ANY = { input: true, output: true } as const;

async function newStore(): Promise<Store> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-worker-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = await openSqlite(join(folder, 'journal.db'));
  onTestFinished(() => store.close());
  return store;
}

/** A loop that sleeps, waits for a signal and performs an effect that counts. */
function slowLoop(performed: string[]) {
  return defineLoop({
    ...ANY,
    id: 'slow',
    run: async (_, scope) => {
      await scope.sleep(20);
      await scope.wait('go');
      await scope.effect({
        kind: 'test',
        name: 'count',
        input: null,
        safety: 'once',
        perform: () => void performed.push(scope.key),
      });
      return 'done';
    },
  });
}

const workOnce = (host: Host): Promise<void> => host.work({ once: true });

verifies('host.work', 'sleeping turns and delivered signals are each processed once by two workers', async () => {
  const store = await newStore();
  const performed: string[] = [];
  const loop = slowLoop(performed);
  const hosts = [1, 2].map((seed) => hostOf([loop], { store, seed, clock: systemClock }));
  const [first] = hosts as [Host, Host];
  const turnIds: string[] = [];
  for (let n = 0; n < 20; n++) {
    const { turnId } = await first.run({ loop: 'slow', input: null }, { timers: 'pause' });
    turnIds.push(turnId);
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  await Promise.all(hosts.map(workOnce));
  for (const turnId of turnIds) await first.signal({ turnId, name: 'go' });
  await Promise.all(hosts.map(workOnce));
  expect(performed.sort()).toEqual([...turnIds].sort());
  for (const turnId of turnIds) expect(await first.archive.result(turnId)).toMatchObject({ output: 'done' });
  expect(await store.dueTurns.list(Number.MAX_SAFE_INTEGER, 100)).toEqual([]);
});

verifies('host.work', 'a turn whose loop is not registered is reported once and left to other processes', async () => {
  const store = await newStore();
  const loop = slowLoop([]);
  const { turnId } = await hostOf([loop], { store, clock: systemClock }).run(
    { loop: 'slow', input: null },
    { timers: 'pause' },
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  const problems: WorkProblem[] = [];
  const stranger = hostOf([], { store, seed: 2, clock: systemClock });
  await stranger.work({ once: true, onProblem: (problem) => problems.push(problem) });
  expect(problems).toMatchObject([{ turnId, code: 'LOOP_NOT_FOUND' }]);
});

verifies('host.work', 'a closed host stops its worker and leaves its turns to the next one', async () => {
  const store = await newStore();
  const loop = slowLoop([]);
  const host = hostOf([loop], { store, clock: systemClock });
  const working = host.work();
  const { turnId } = await host.run({ loop: 'slow', input: null }, { timers: 'pause' });
  await host.signal({ turnId, name: 'go' });
  await host.close();
  await working;
  const next = hostOf([loop], { store, seed: 2, clock: systemClock });
  await new Promise((resolve) => setTimeout(resolve, 50));
  await next.work({ once: true });
  expect(await next.archive.result(turnId)).toMatchObject({ status: 'ok', output: 'done' });
});
