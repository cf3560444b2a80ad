import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { createClockFrom, type TimeSource } from './index.js';

interface Armed {
  readonly callback: () => void;
  readonly ms: number;
  readonly due: number;
}

/** A platform whose clocks a test moves one by one; its timers may fire early, as those of Node do. */
class Platform implements TimeSource {
  wall = 1_700_000_000_000;
  passed = 0;
  early = 0;
  readonly armed: Armed[] = [];
  readonly now = (): number => this.wall;
  readonly elapsed = (): number => this.passed;
  readonly setTimeout = (callback: () => void, ms: number): Armed => {
    // Up to a millisecond early, but not at once.
    const timer = { callback, ms, due: this.passed + Math.max(ms - this.early, Math.min(ms, 0.5)) };
    this.armed.push(timer);
    return timer;
  };
  readonly clearTimeout = (timer: Armed | undefined): void => {
    const place = timer === undefined ? -1 : this.armed.indexOf(timer);
    if (place >= 0) this.armed.splice(place, 1);
  };

  /** Lets time pass and fires the timers that are due. */
  pass(ms: number): void {
    const end = this.passed + ms;
    this.wall += ms;
    for (let next = this.armed[0]; next !== undefined && next.due <= end; next = this.armed[0]) {
      this.armed.shift();
      this.passed = Math.max(this.passed, next.due);
      next.callback();
    }
    this.passed = end;
  }
}

/** Starts a sleep, and tells whether it is over. */
function sleeping(platform: Platform, ms: number): () => Promise<boolean> {
  let over = false;
  const slept = createClockFrom(platform).sleep(ms, new AbortController().signal);
  void slept.then(() => {
    over = true;
  });
  return async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return over;
  };
}

verifies('time.monotonic', 'a wall clock that is set back by an hour does not stall a sleep', async () => {
  const platform = new Platform();
  const isOver = sleeping(platform, 10_000);
  platform.wall -= 3_600_000;
  platform.pass(9_999);
  expect(await isOver()).toBe(false);
  platform.pass(1);
  expect(await isOver()).toBe(true);
});

verifies('time.monotonic', 'a wall clock that is set forward by an hour does not end a sleep early', async () => {
  const platform = new Platform();
  platform.early = 1;
  const isOver = sleeping(platform, 10_000);
  platform.wall += 3_600_000;
  platform.pass(9_999.5);
  expect(await isOver()).toBe(false);
  platform.pass(0.5);
  expect(await isOver()).toBe(true);
});

verifies(
  'time.monotonic',
  'a sleep that is longer than the longest timer of the platform is made of several',
  async () => {
    const platform = new Platform();
    const year = 365 * 86_400_000;
    const isOver = sleeping(platform, year);
    expect(platform.armed[0]?.ms).toBe(2 ** 31 - 1);
    platform.pass(year - 1);
    expect(await isOver()).toBe(false);
    platform.pass(1);
    expect(await isOver()).toBe(true);
  },
);

verifies('time.monotonic', 'a sleep that is aborted leaves no timer, before it starts and while it lasts', async () => {
  const platform = new Platform();
  const stop = new AbortController();
  const sleep = createClockFrom(platform).sleep(1000, stop.signal);
  stop.abort(new Error('enough'));
  await expect(sleep).rejects.toThrow('enough');
  await expect(createClockFrom(platform).sleep(1000, stop.signal)).rejects.toThrow('enough');
  expect(platform.armed).toEqual([]);
});
