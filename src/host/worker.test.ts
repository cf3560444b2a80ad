/** The worker continues what is due, once, in any number of hosts on one store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import { hostOf } from '../../spec/support/host-fixture.js';
import { ticks } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { openSqlite } from '../adapters/sqlite/index.js';
import { systemClock } from '../adapters/system/index.js';
import type { DueTurn, DueTurns } from '../journal/due-turns.js';
import type { Leases, Store } from '../journal/store.js';
import { defineLoop } from '../loops/define.js';
import { crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import type { Host } from './host.js';
import { Worker, type WorkProblem } from './worker.js';

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
      await scope.sleep(200);
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
  await new Promise((resolve) => setTimeout(resolve, 250));
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
  await new Promise((resolve) => setTimeout(resolve, 250));
  const problems: WorkProblem[] = [];
  const stranger = hostOf([], { store, seed: 2, clock: systemClock });
  await stranger.work({ once: true, onProblem: (problem) => problems.push(problem) });
  expect(problems).toMatchObject([{ turnId, code: 'LOOP_NOT_FOUND' }]);
});

verifies(
  'host.work',
  'a turn that waits because an effect is in doubt is reported, and not continued again',
  async () => {
    const store = memoryStore();
    const pays = defineLoop({
      id: 'pays',
      ...ANY,
      run: (_, scope) => scope.effect('pay', () => 1, { safety: 'once' }),
    });
    const crashing = hostOf([pays], { store: crashingStore(store, { appendNumber: 2, when: 'before' }) });
    await crashing.run({ loop: 'pays', input: null }).catch(() => undefined);
    const host = hostOf([pays], { store, seed: 2 });
    const problems: WorkProblem[] = [];
    const work = () => host.work({ once: true, onProblem: (problem) => problems.push(problem) });
    await work();
    await work();
    expect(problems).toMatchObject([{ code: 'EFFECT_IN_DOUBT' }]);
    expect(problems[0]?.message).toMatch(
      /^It is unknown whether "pay" happened\. Find out, then resolve it: rondo resolve \S+\/0$/,
    );
  },
);

/** Starts a turn in a host of its own; it sleeps for a moment and is due afterwards. Returns its id. */
async function startSleepingTurn(store: Store, loop = slowLoop([])): Promise<string> {
  const host = hostOf([loop], { store, clock: systemClock });
  const { turnId } = await host.run({ loop: 'slow', input: null }, { timers: 'pause' });
  await new Promise((resolve) => setTimeout(resolve, 250));
  return turnId;
}

verifies('host.work', 'a turn that another process continues is no problem of a worker without its loop', async () => {
  const store = await newStore();
  const turnId = await startSleepingTurn(store);
  const problems: WorkProblem[] = [];
  const stranger = hostOf([], { store, seed: 2, clock: systemClock });
  const working = stranger.work({ onProblem: (problem) => problems.push(problem) });
  await new Promise((resolve) => setTimeout(resolve, 100));
  const owner = hostOf([slowLoop([])], { store, seed: 3, clock: systemClock });
  await workOnce(owner);
  const { turn } = await owner.archive.get(turnId);
  expect(turn.pending).toMatchObject([{ kind: 'signal' }]);
  await new Promise((resolve) => setTimeout(resolve, 1300));
  expect(problems).toEqual([]);
  await stranger.close();
  await working;
});

verifies('host.work', 'a turn that nobody continues is reported once, after the first wait', async () => {
  const store = await newStore();
  const turnId = await startSleepingTurn(store);
  const problems: WorkProblem[] = [];
  const stranger = hostOf([], { store, seed: 2, clock: systemClock });
  const working = stranger.work({ onProblem: (problem) => problems.push(problem) });
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(problems).toEqual([]);
  await vi.waitFor(() => expect(problems).toHaveLength(1), { timeout: 30_000 });
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(problems).toMatchObject([{ turnId, code: 'LOOP_NOT_FOUND' }]);
  await stranger.close();
  await working;
});

verifies('host.work', 'a worker without `onProblem` warns of a turn that it cannot continue, once', async () => {
  const store = await newStore();
  const turnId = await startSleepingTurn(store);
  const changed = defineLoop({ ...ANY, id: 'slow', run: (_, scope) => scope.wait('another step') });
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  onTestFinished(() => warn.mockRestore());
  const host = hostOf([changed], { store, seed: 2, clock: systemClock });
  const working = host.work();
  await vi.waitFor(() => expect(warn).toHaveBeenCalled(), { timeout: 30_000 });
  await new Promise((resolve) => setTimeout(resolve, 500));
  await host.close();
  await working;
  expect(warn.mock.calls).toEqual([
    [expect.stringContaining(`Turn ${turnId} is not continued here. REPLAY_MISMATCH: `), expect.anything()],
  ]);
});

verifies('host.work', 'a worker forgets the turns that are not due any more', async () => {
  let page: readonly DueTurn[] = Array.from({ length: 50 }, (_, n) => ({
    session: `s${n}`,
    turn: `s${n}.1`,
    dueAt: 0,
  }));
  const stopped = new AbortController();
  const worker = new Worker(
    {
      dueTurns: { list: async () => page, nextDueAt: async () => undefined } as unknown as DueTurns,
      leases: { list: async () => [] } as unknown as Leases,
      clock: systemClock,
      rebuild: async () => {},
      lastWrittenAt: async () => 0,
      isBusy: () => false,
      leasedSession: (session) => session,
      continueTurn: async () => undefined,
    },
    { signal: stopped.signal, concurrency: 100 },
  );
  const working = worker.run();
  await new Promise((resolve) => setTimeout(resolve, 50));
  const backoffs: ReadonlyMap<string, unknown> = Reflect.get(worker, 'backoffs');
  expect(backoffs.size).toBe(50);
  page = page.slice(0, 1);
  await new Promise((resolve) => setTimeout(resolve, 700));
  expect([...backoffs.keys()]).toEqual(['s0.1']);
  stopped.abort();
  await working;
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
  await new Promise((resolve) => setTimeout(resolve, 250));
  await next.work({ once: true });
  expect(await next.archive.result(turnId)).toMatchObject({ status: 'ok', output: 'done' });
});

/** A loop that sleeps for two seconds. */
const nap = defineLoop({ ...ANY, id: 'nap', run: (_, scope) => scope.sleep(2000).then(() => 'awake') });
const HOUR_MS = 3_600_000;

/** Lets time pass while workers run, and returns how long the turn took to end; undefined if it did not. */
async function napEnd(host: Host, turnId: string, clock: ManualClock, maxMs: number): Promise<number | undefined> {
  for (let passedMs = 0; passedMs < maxMs; passedMs += 50) {
    await clock.advance(50);
    await ticks(10);
    if ((await host.archive.result(turnId)) !== undefined) return passedMs + 50;
  }
  return undefined;
}

verifies('time.restart', 'a worker wakes a short sleep in time although the clock is set back by an hour', async () => {
  const clock = new ManualClock(10 * HOUR_MS);
  const host = hostOf([nap], { clock });
  const working = host.work();
  const { turnId } = await host.run({ loop: 'nap', input: null }, { timers: 'pause' });
  expect(await napEnd(host, turnId, clock, 500)).toBeUndefined();
  clock.setWallClock(9 * HOUR_MS);
  const endMs = await napEnd(host, turnId, clock, 10_000);
  expect(endMs, 'the sleep lasts as long as the clock was set back').toBeLessThanOrEqual(2000);
  expect(endMs).toBeGreaterThanOrEqual(1500);
  await host.close();
  await clock.advance(1000);
  await working;
});

verifies(
  'time.restart',
  'a worker that starts after the clock was set back wakes a sleep after its whole length',
  async () => {
    for (const once of [false, true]) {
      const store = memoryStore();
      const first = hostOf([nap], { store, clock: new ManualClock(10 * HOUR_MS) });
      const { turnId } = await first.run({ loop: 'nap', input: null }, { timers: 'pause' });
      const clock = new ManualClock(9 * HOUR_MS);
      const host = hostOf([nap], { store, seed: 2, clock });
      const problems: WorkProblem[] = [];
      const work = (): Promise<void> => host.work({ once, onProblem: (problem) => problems.push(problem) });
      const working = work();
      if (once) await working;
      expect(await napEnd(host, turnId, clock, 1950), 'the sleep is too short').toBeUndefined();
      if (once) {
        await clock.advance(50);
        await work();
      }
      expect(
        await napEnd(host, turnId, clock, 1000),
        'the sleep lasts as long as the clock was set back',
      ).toBeDefined();
      await host.close();
      await clock.advance(1000);
      await working;
      expect(problems).toEqual([]);
    }
  },
);

verifies('time.restart', 'a sleep that is not too long is continued once, at its time', async () => {
  const clock = new ManualClock(10 * HOUR_MS);
  const store = memoryStore();
  const host = hostOf([nap], { store, clock });
  const { turnId, sessionId } = await host.run({ loop: 'nap', input: null }, { timers: 'pause' });
  const claim = vi.spyOn(store.journal, 'claim');
  const working = host.work();
  expect(await napEnd(host, turnId, clock, 3000)).toBeLessThanOrEqual(2000);
  expect(claim.mock.calls.filter(([session]) => session === sessionId)).toHaveLength(1);
  await host.close();
  await clock.advance(1000);
  await working;
});
