import fc from 'fast-check';
import { expect, vi } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { ManualClock } from '../testing/manual-clock.js';
import { Timestamps } from './timestamps.js';

const HOUR = 3_600_000;

/** The entries of one session, as far as their times go. */
class Stamps {
  private readonly timestamps: Timestamps;

  constructor(clock: ManualClock) {
    this.timestamps = new Timestamps(clock);
  }

  next(entry: { at: number; took?: number } = { at: 0 }): number {
    this.timestamps.stamp(entry);
    return entry.at;
  }
}

verifies('time.stamps', 'timestamps go on by the monotonic clock after the wall clock was set back', async () => {
  for (const [between, back] of [
    [10, HOUR],
    [10_000, 5000],
    [10_000, HOUR],
  ] as const) {
    const clock = new ManualClock(1000);
    const timestamps = new Stamps(clock);
    expect(timestamps.next()).toBe(1000);
    await clock.advance(between);
    clock.setWallClock(clock.now() - back);
    expect(timestamps.next(), `${between} ${back}`).toBe(1000 + between);
    await clock.advance(7);
    expect(timestamps.next()).toBe(1000 + between + 7);
  }
});

verifies('time.stamps', 'a wall clock that is ahead is followed, and one that was put right again', async () => {
  const clock = new ManualClock(1000);
  const timestamps = new Stamps(clock);
  timestamps.next();
  clock.setWallClock(1000 + HOUR);
  expect(timestamps.next()).toBe(1000 + HOUR);
  clock.setWallClock(1000);
  await clock.advance(500);
  expect(timestamps.next()).toBe(1000 + HOUR + 500);
  clock.setWallClock(2000 + HOUR);
  expect(timestamps.next()).toBe(2000 + HOUR);
});

verifies('time.stamps', 'no timestamp is before the one before it, whatever happens to the wall clock', async () => {
  const moves = fc.array(fc.record({ passes: fc.nat(100), jump: fc.integer({ min: -200, max: 200 }) }));
  await fc.assert(
    fc.asyncProperty(moves, async (all) => {
      const clock = new ManualClock(1_000_000);
      const timestamps = new Stamps(clock);
      let last = timestamps.next();
      for (const { passes, jump } of all) {
        await clock.advance(passes);
        clock.setWallClock(clock.now() + jump);
        const next = timestamps.next();
        expect(next).toBeGreaterThanOrEqual(last);
        last = next;
      }
    }),
  );
});

verifies('time.stamps', 'a duration is what the wall clock told, unless it was set forward meanwhile', async () => {
  for (const [passes, jump, told] of [
    [7, 0, 7],
    [500, 0, 500],
    [5000, 0, 5000],
    [7, HOUR, 7],
    [500, HOUR, 500],
  ] as const) {
    const clock = new ManualClock(HOUR * 10);
    const timestamps = new Stamps(clock);
    timestamps.next();
    const since = clock.now();
    await clock.advance(passes);
    clock.setWallClock(clock.now() + jump);
    const entry = { at: clock.now(), validationMs: clock.now() - since };
    timestamps.next(entry);
    expect(entry.validationMs, `${passes} ${jump}`).toBe(told);
  }
});

verifies('time.stamps', 'the clocks are compared often, however many entries there are', async () => {
  const clock = new ManualClock(HOUR * 10);
  const timestamps = new Stamps(clock);
  for (let n = 0; n < 1000; n++) {
    timestamps.next();
    await clock.advance(5);
  }
  clock.setWallClock(clock.now() + HOUR);
  const entry = { at: clock.now(), validationMs: HOUR };
  timestamps.next(entry);
  expect(entry.validationMs).toBeLessThanOrEqual(25);
});

verifies(
  'time.stamps',
  'a session that is opened right after another takes over its reading of the clocks',
  async () => {
    const clock = new ManualClock(HOUR * 10);
    await clock.advance(HOUR);
    const start = clock.now();
    const elapsed = vi.spyOn(clock, 'elapsed');
    const readings = (): number => elapsed.mock.calls.length;
    new Stamps(clock).next();
    expect(readings()).toBe(1);
    await clock.advance(19);
    const second = new Stamps(clock);
    expect(second.next()).toBe(start + 19);
    expect(readings()).toBe(1);
    await clock.advance(1);
    new Stamps(clock).next();
    expect(readings()).toBe(2);
    await clock.advance(10_000);
    clock.setWallClock(clock.now() - HOUR);
    expect(second.next()).toBe(start + 10_020);
  },
);

verifies(
  'time.stamps',
  'a reading of another clock, or from before the wall clock was set back, is not taken over',
  async () => {
    const start = HOUR * 10;
    const running = new ManualClock(start - HOUR);
    await running.advance(HOUR);
    const setBack = new ManualClock(start);
    for (const [read, clock] of [
      [new ManualClock(start), running],
      [setBack, setBack],
    ] as const) {
      new Stamps(read).next();
      if (read === clock) clock.setWallClock(start - HOUR);
      const timestamps = new Stamps(clock);
      const opened = timestamps.next();
      await clock.advance(10_000);
      clock.setWallClock(clock.now() - 5000);
      expect(timestamps.next() - opened).toBe(10_000);
    }
  },
);
