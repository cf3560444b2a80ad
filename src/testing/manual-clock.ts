/**
 * A clock that moves only when a test moves it, so that years pass in a test and nothing is ever early. The wall clock and the
 * monotonic clock advance together; `setWall` sets the wall clock alone, as an operator or a time server does.
 */
import type { Clock } from '../journal/clock.js';

interface Sleeper {
  /** By the monotonic clock. */
  readonly dueAtElapsed: number;
  readonly wake: () => void;
}

export class ManualClock implements Clock {
  private wallMs: number;
  private elapsedMs = 0;
  private sleepers: Sleeper[] = [];

  constructor(start = 0) {
    this.wallMs = start;
  }

  now(): number {
    return this.wallMs;
  }

  elapsed(): number {
    return this.elapsedMs;
  }

  /** What the wall clock will show when the earliest sleeper wakes; undefined if nobody sleeps. */
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
      const place = this.sleepers.findIndex((other) => other.dueAtElapsed > dueAtElapsed);
      this.sleepers.splice(place < 0 ? this.sleepers.length : place, 0, sleeper);
    });
  }

  /** Lets time pass, waking those who are due one after another, each at its own time. */
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

  /** Lets time pass until the wall clock shows this. */
  advanceTo(time: number): Promise<void> {
    return this.advance(time - this.wallMs);
  }

  /** Sets the wall clock, forward or back; no time passes, and nobody wakes. */
  setWallClock(time: number): void {
    this.wallMs = time;
  }

  private passUntil(until: number): void {
    if (until <= this.elapsedMs) return;
    this.wallMs += until - this.elapsedMs;
    this.elapsedMs = until;
  }
}
