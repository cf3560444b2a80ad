/** The clock of the platform: sleeps, and wall clocks that are set forward and back. */
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { createClockFrom, type TimeSource } from './index.js';

interface ArmedTimer {
  readonly callback: () => void;
  readonly ms: number;
  readonly due: number;
}

/** A platform whose two clocks a test moves separately. Its timers may fire early, like those of Node. */
class FakePlatform implements TimeSource {
  wallMs = 1_700_000_000_000;
  elapsedMs = 0;
  earlyMs = 0;
  readonly armed: ArmedTimer[] = [];
  readonly now = (): number => this.wallMs;
  readonly elapsed = (): number => this.elapsedMs;
  readonly setTimeout = (callback: () => void, ms: number): ArmedTimer => {
    // Up to a millisecond early, but not immediately.
    const timer = { callback, ms, due: this.elapsedMs + Math.max(ms - this.earlyMs, Math.min(ms, 0.5)) };
    this.armed.push(timer);
    return timer;
  };
  readonly clearTimeout = (timer: ArmedTimer | undefined): void => {
    const index = timer === undefined ? -1 : this.armed.indexOf(timer);
    if (index >= 0) this.armed.splice(index, 1);
  };

  /** Advances both clocks and fires the timers that are due. */
  pass(ms: number): void {
    const end = this.elapsedMs + ms;
    this.wallMs += ms;
    for (let next = this.armed[0]; next !== undefined && next.due <= end; next = this.armed[0]) {
      this.armed.shift();
      this.elapsedMs = Math.max(this.elapsedMs, next.due);
      next.callback();
    }
    this.elapsedMs = end;
  }
}

/** Starts a sleep. Returns a function that resolves to true once the sleep is over. */
function startSleep(platform: FakePlatform, ms: number): () => Promise<boolean> {
  let isOver = false;
  const sleep = createClockFrom(platform).sleep(ms, new AbortController().signal);
  void sleep.then(() => {
    isOver = true;
  });
  return async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return isOver;
  };
}

verifies('time.monotonic', 'a wall clock that is set back by an hour does not stall a sleep', async () => {
  const platform = new FakePlatform();
  const isOver = startSleep(platform, 10_000);
  platform.wallMs -= 3_600_000;
  platform.pass(9_999);
  expect(await isOver()).toBe(false);
  platform.pass(1);
  expect(await isOver()).toBe(true);
});

verifies('time.monotonic', 'a wall clock that is set forward by an hour does not end a sleep early', async () => {
  const platform = new FakePlatform();
  platform.earlyMs = 1;
  const isOver = startSleep(platform, 10_000);
  platform.wallMs += 3_600_000;
  platform.pass(9_999.5);
  expect(await isOver()).toBe(false);
  platform.pass(0.5);
  expect(await isOver()).toBe(true);
});

verifies('time.monotonic', 'a sleep that exceeds the longest timer of the platform uses several timers', async () => {
  const platform = new FakePlatform();
  const year = 365 * 86_400_000;
  const isOver = startSleep(platform, year);
  expect(platform.armed[0]?.ms).toBe(2 ** 31 - 1);
  platform.pass(year - 1);
  expect(await isOver()).toBe(false);
  platform.pass(1);
  expect(await isOver()).toBe(true);
});

verifies(
  'time.monotonic',
  'an aborted sleep leaves no timer, whether it is aborted before its start or later',
  async () => {
    const platform = new FakePlatform();
    const controller = new AbortController();
    const sleep = createClockFrom(platform).sleep(1000, controller.signal);
    controller.abort(new Error('enough'));
    await expect(sleep).rejects.toThrow('enough');
    await expect(createClockFrom(platform).sleep(1000, controller.signal)).rejects.toThrow('enough');
    expect(platform.armed).toEqual([]);
  },
);
