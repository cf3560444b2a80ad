/** Timestamps: clocks that are set forward and back, and durations. */
import fc from 'fast-check';
import { expect, vi } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { ManualClock } from '../testing/manual-clock.js';
import { Timestamps } from './timestamps.js';

const HOUR = 3_600_000;

/** Writes the timestamps of one session. */
class StampedSession {
  private readonly timestamps: Timestamps;

  constructor(clock: ManualClock) {
    this.timestamps = new Timestamps(clock);
  }

  next(entry: { at: number; validationMs?: number } = { at: 0 }): number {
    this.timestamps.stamp(entry);
    return entry.at;
  }
}

verifies('time.stamps', 'timestamps continue by the monotonic clock after the wall clock was set back', async () => {
  for (const [passesMs, setBackMs] of [
    [10, HOUR],
    [10_000, 5000],
    [10_000, HOUR],
  ] as const) {
    const clock = new ManualClock(1000);
    const session = new StampedSession(clock);
    expect(session.next()).toBe(1000);
    await clock.advance(passesMs);
    clock.setWallClock(clock.now() - setBackMs);
    expect(session.next(), `${passesMs} ms pass, set back by ${setBackMs} ms`).toBe(1000 + passesMs);
    await clock.advance(7);
    expect(session.next()).toBe(1000 + passesMs + 7);
  }
});

verifies(
  'time.stamps',
  'a wall clock that is set forward is followed, and so is one that is corrected later',
  async () => {
    const clock = new ManualClock(1000);
    const session = new StampedSession(clock);
    session.next();
    clock.setWallClock(1000 + HOUR);
    expect(session.next()).toBe(1000 + HOUR);
    clock.setWallClock(1000);
    await clock.advance(500);
    expect(session.next()).toBe(1000 + HOUR + 500);
    clock.setWallClock(2000 + HOUR);
    expect(session.next()).toBe(2000 + HOUR);
  },
);

verifies('time.stamps', 'timestamps never decrease, whatever happens to the wall clock', async () => {
  const clockChanges = fc.array(fc.record({ passesMs: fc.nat(100), jumpMs: fc.integer({ min: -200, max: 200 }) }));
  await fc.assert(
    fc.asyncProperty(clockChanges, async (changes) => {
      const clock = new ManualClock(1_000_000);
      const session = new StampedSession(clock);
      let last = session.next();
      for (const { passesMs, jumpMs } of changes) {
        await clock.advance(passesMs);
        clock.setWallClock(clock.now() + jumpMs);
        const next = session.next();
        expect(next).toBeGreaterThanOrEqual(last);
        last = next;
      }
    }),
  );
});

verifies('time.stamps', 'a duration is measured by the wall clock, unless it was set forward meanwhile', async () => {
  for (const [passesMs, jumpMs, expectedMs] of [
    [7, 0, 7],
    [500, 0, 500],
    [5000, 0, 5000],
    [7, HOUR, 7],
    [500, HOUR, 500],
  ] as const) {
    const clock = new ManualClock(HOUR * 10);
    const session = new StampedSession(clock);
    session.next();
    const since = clock.now();
    await clock.advance(passesMs);
    clock.setWallClock(clock.now() + jumpMs);
    const entry = { at: clock.now(), validationMs: clock.now() - since };
    session.next(entry);
    expect(entry.validationMs, `${passesMs} ms pass, set forward by ${jumpMs} ms`).toBe(expectedMs);
  }
});

verifies('time.stamps', 'the clocks are compared regularly, however many entries are written', async () => {
  const clock = new ManualClock(HOUR * 10);
  const session = new StampedSession(clock);
  for (let n = 0; n < 1000; n++) {
    session.next();
    await clock.advance(5);
  }
  clock.setWallClock(clock.now() + HOUR);
  const entry = { at: clock.now(), validationMs: HOUR };
  session.next(entry);
  expect(entry.validationMs).toBeLessThanOrEqual(25);
});

verifies('time.stamps', 'a session that is opened shortly after another reuses its reading of the clocks', async () => {
  const clock = new ManualClock(HOUR * 10);
  await clock.advance(HOUR);
  const start = clock.now();
  const elapsed = vi.spyOn(clock, 'elapsed');
  const readingCount = (): number => elapsed.mock.calls.length;
  new StampedSession(clock).next();
  expect(readingCount()).toBe(1);
  await clock.advance(19);
  const second = new StampedSession(clock);
  expect(second.next()).toBe(start + 19);
  expect(readingCount()).toBe(1);
  await clock.advance(1);
  new StampedSession(clock).next();
  expect(readingCount()).toBe(2);
  await clock.advance(10_000);
  clock.setWallClock(clock.now() - HOUR);
  expect(second.next()).toBe(start + 10_020);
});

verifies(
  'time.stamps',
  'a reading of another clock, or from before the wall clock was set back, is not reused',
  async () => {
    const start = HOUR * 10;
    const runningClock = new ManualClock(start - HOUR);
    await runningClock.advance(HOUR);
    const clockSetBack = new ManualClock(start);
    for (const [clockOfReading, clock] of [
      [new ManualClock(start), runningClock],
      [clockSetBack, clockSetBack],
    ] as const) {
      new StampedSession(clockOfReading).next();
      if (clockOfReading === clock) clock.setWallClock(start - HOUR);
      const session = new StampedSession(clock);
      const first = session.next();
      await clock.advance(10_000);
      clock.setWallClock(clock.now() - 5000);
      expect(session.next() - first).toBe(10_000);
    }
  },
);
