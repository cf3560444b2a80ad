/** The running time under a grant: shared by turns that run at the same time, kept after a crash, and never per step. */
import fc from 'fast-check';
import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { Store } from '../../journal/store.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { Ledger, ledgerName } from './ledger.js';
import { WallTime } from './wall-time.js';

const documentOf = (wallMs: number) => ({ allowedTools: ['*'], limits: { wallMs } });
const openLedger = (store: Store, wallMs: number) =>
  Ledger.open({ store, clock: new ManualClock(1) }, 'g', documentOf(wallMs));

/** A turn that runs, and for how long it did. */
class TimedTurn {
  isRunning = true;
  ranMs = 0;
  /** Undefined while the first slice is reserved. */
  private readonly time: WallTime | undefined;

  constructor(turnId: string, ledger: Ledger, clock: ManualClock, limitMs: number) {
    const accounts = [{ id: '', limits: { wallMs: limitMs } }];
    const onExceeded = () => this.end();
    this.time = WallTime.start({ turnId, ledger, accounts, clock, onExceeded });
  }

  end(): void {
    this.isRunning = false;
    this.time?.end();
  }
}

/** Lets time pass, one millisecond after another, and counts it for the turns that run. */
async function pass(ms: number, clock: ManualClock, turns: readonly TimedTurn[]): Promise<void> {
  for (let n = 0; n < ms; n++) {
    for (const turn of turns) turn.ranMs += turn.isRunning ? 1 : 0;
    await clock.advance(1);
  }
}

const action = fc.oneof(
  fc.record({ kind: fc.constant('start' as const) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 60 }) }),
  fc.record({ kind: fc.constant('end' as const), turn: fc.nat(5) }),
);

verifies(
  'grant.budget',
  'turns that start, run side by side and end never run longer together than the limit',
  async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 0, max: 400 }),
      fc.array(action, { maxLength: 25 }),
      async (limitMs, actions) => {
        const [store, clock] = [memoryStore(), new ManualClock(1)];
        const ledger = await openLedger(store, limitMs);
        const turns: TimedTurn[] = [];
        for (const done of actions) {
          if (done.kind === 'start') turns.push(new TimedTurn(`t${turns.length}`, ledger, clock, limitMs));
          else if (done.kind === 'pass') await pass(done.ms, clock, turns);
          else turns[done.turn]?.end();
          await ledger.flush();
          expect(ledger.budget.usedOf('', 'wallMs')).toBeLessThanOrEqual(limitMs);
        }
        for (const turn of turns) turn.end();
        await ledger.flush();
        const ran = turns.reduce((sum, { ranMs }) => sum + ranMs, 0);
        expect(ran, 'the turns ran longer than the limit').toBeLessThanOrEqual(limitMs);
        expect((await openLedger(store, limitMs)).budget.usedOf('', 'wallMs'), 'time was lost').toBe(ran);
      },
    );
    await fc.assert(property, { numRuns: 60 });
  },
);

verifies('grant.budget', 'a turn alone runs for exactly its limit, with few entries however long it is', async () => {
  for (const limitMs of [0, 1, 19, 20, 21, 1000, 600_000]) {
    const [store, clock] = [memoryStore(), new ManualClock(1)];
    const ledger = await openLedger(store, limitMs);
    let stoppedAt: number | undefined;
    const accounts = [{ id: '', limits: { wallMs: limitMs } }];
    const onExceeded = () => {
      stoppedAt = clock.elapsed();
    };
    const time = WallTime.start({ turnId: 't', ledger, accounts, clock, onExceeded });
    while (stoppedAt === undefined) await clock.advanceTo(clock.nextWakeAt ?? 0);
    time.end();
    await ledger.flush();
    expect(stoppedAt).toBe(limitMs);
    expect(ledger.budget.usedOf('', 'wallMs')).toBe(limitMs);
    const { nextSeq } = await store.journal.claim(ledgerName('g'));
    expect(nextSeq, 'the time is written too often').toBeLessThan(300);
  }
});

verifies('grant.shared', 'the time of a process that crashed stays charged, with at most one slice more', async () => {
  const [store, clock] = [memoryStore(), new ManualClock(1)];
  const turn = new TimedTurn('t', await openLedger(store, 100_000), clock, 100_000);
  await pass(5000, clock, [turn]);
  const used = (await openLedger(store, 100_000)).budget.usedOf('', 'wallMs');
  expect(used, 'a crash returned time').toBeGreaterThanOrEqual(5000);
  expect(used).toBeLessThanOrEqual(15_000);
});

verifies('grant.shared', 'processes that take the last time at the same moment share it', async () => {
  const [store, clock, limitMs] = [memoryStore(), new ManualClock(1), 20];
  const ledgers = [await openLedger(store, limitMs), await openLedger(store, limitMs)];
  const turns = ledgers.map((ledger, index) => new TimedTurn(`t${index}`, ledger, clock, limitMs));
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
  expect(turns.map(({ isRunning }) => isRunning).sort(), 'both got the same time').toEqual([false, true]);
  await pass(50, clock, turns);
  expect(turns.reduce((sum, { ranMs }) => sum + ranMs, 0)).toBe(limitMs);
});

verifies('grant.budget', 'a turn stops when its time is used up, and continues under another grant', async () => {
  const clock = new ManualClock(1_000_000);
  const performed: unknown[] = [];
  const act = async () => {
    performed.push(1);
    await clock.advance(300);
    return 'done';
  };
  const step = { loopId: 'act', inputMapping: '$.input' };
  const definitions = [tool('act', 'builtin:act'), composite('five', [step, step, step, step, step])];
  const host = hostOf(definitions, { tools: { act }, clock });
  const result = await host.run({ loop: 'five', input: {}, grant: documentOf(1000) });
  expect(result).toMatchObject({ status: 'stopped', reason: expect.stringMatching(/^wallMs: .*1000 of 1000/) });
  expect(performed).toHaveLength(4);
  expect(await host.resume(result.turnId)).toMatchObject({ status: 'stopped' });
  expect(await host.resume(result.turnId, { grant: documentOf(2000) })).toMatchObject({ status: 'ok' });
  expect(performed).toHaveLength(5);
});

verifies('grant.budget', 'no turn starts an effect when the running time of its grant is used up', async () => {
  let performed = 0;
  const clock = new ManualClock(1);
  const act = async (): Promise<null> => {
    performed += 1;
    await clock.advance(30);
    return null;
  };
  const host = hostOf([tool('act', 'builtin:act')], { tools: { act }, clock });
  const grant = { id: 'g', allowedTools: ['act'], limits: { wallMs: 20 } };
  const statuses: string[] = [];
  for (let n = 0; n < 5; n++) statuses.push((await host.run({ loop: 'act', input: {}, grant })).status);
  expect([performed, statuses.slice(1)]).toEqual([1, ['stopped', 'stopped', 'stopped', 'stopped']]);
});
