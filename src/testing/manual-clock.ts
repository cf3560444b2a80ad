/**
 * A clock that only a test advances: years pass at once, and every sleeper wakes at its exact time. The wall clock and
 * the monotonic clock advance together; `setWallClock` sets the wall clock alone, like an operator or a time server.
 */
import type { Clock } from '../journal/clock.js';

interface Sleeper {
  /** When it wakes, by the monotonic clock. */
  readonly dueAtElapsed: number;
  readonly wake: () => void;
}

/**
 * A clock for tests.
 *
 * @example
 * const clock = new ManualClock(Date.parse('2030-01-01'));
 * await clock.advance(60_000);
 */
export class ManualClock implements Clock {
  private wallMs: number;
  private elapsedMs = 0;
  private sleepers: Sleeper[] = [];

  /** @param startMs The first reading of the wall clock, in milliseconds since the epoch. */
  constructor(startMs = 0) {
    this.wallMs = startMs;
  }

  now(): number {
    return this.wallMs;
  }

  elapsed(): number {
    return this.elapsedMs;
  }

  /** When the next sleeper wakes, by the wall clock; undefined if there is none. */
  get nextWakeAt(): number | undefined {
    const [first] = this.sleepers;
    return first === undefined ? undefined : this.wallMs + first.dueAtElapsed - this.elapsedMs;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (ms <= 0) return resolve();
      const dueAtElapsed = this.elapsedMs + ms;
      const abort = (): void => {
        this.sleepers = this.sleepers.filter((other) => other !== sleeper);
        reject(signal.reason);
      };
      const wake = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const sleeper: Sleeper = { dueAtElapsed, wake };
      signal.addEventListener('abort', abort, { once: true });
      const index = this.sleepers.findIndex((other) => other.dueAtElapsed > dueAtElapsed);
      this.sleepers.splice(index < 0 ? this.sleepers.length : index, 0, sleeper);
    });
  }

  /**
   * Advances both clocks. Sleepers wake one after another, each at its own time, and the event loop runs once after
   * each.
   */
  async advance(ms: number): Promise<void> {
    const end = this.elapsedMs + ms;
    for (let first = this.sleepers[0]; first !== undefined && first.dueAtElapsed <= end; first = this.sleepers[0]) {
      this.sleepers.shift();
      this.passUntil(first.dueAtElapsed);
      first.wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.passUntil(end);
  }

  /** Advances both clocks until the wall clock reaches this time. A time in the past has no effect. */
  advanceTo(wallMs: number): Promise<void> {
    return this.advance(wallMs - this.wallMs);
  }

  /** Sets the wall clock forward or back. No time passes, and no sleeper wakes. */
  setWallClock(wallMs: number): void {
    this.wallMs = wallMs;
  }

  private passUntil(elapsedMs: number): void {
    if (elapsedMs <= this.elapsedMs) return;
    this.wallMs += elapsedMs - this.elapsedMs;
    this.elapsedMs = elapsedMs;
  }
}
