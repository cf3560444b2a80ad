/**
 * A clock that moves only when a test moves it, so that years pass in a test and nothing is ever early. The wall clock and the
 * monotonic clock advance together; `setWall` sets the wall clock alone, as an operator or a time server does.
 */
import type { Clock } from '../journal/clock.js';

interface Sleeper {
  /** By the monotonic clock. */
  readonly due: number;
  readonly wake: () => void;
}

export class ManualClock implements Clock {
  private wall: number;
  private passed = 0;
  private sleepers: Sleeper[] = [];

  constructor(start = 0) {
    this.wall = start;
  }

  now(): number {
    return this.wall;
  }

  elapsed(): number {
    return this.passed;
  }

  /** What the wall clock will show when the earliest sleeper wakes; undefined if nobody sleeps. */
  get next(): number | undefined {
    const [first] = this.sleepers;
    return first === undefined ? undefined : this.wall + first.due - this.passed;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (ms <= 0) return resolve();
      const due = this.passed + ms;
      const abort = (): void => {
        this.sleepers = this.sleepers.filter((other) => other !== sleeper);
        reject(signal.reason);
      };
      const wake = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const sleeper = { due, wake };
      signal.addEventListener('abort', abort, { once: true });
      const place = this.sleepers.findIndex((other) => other.due > due);
      this.sleepers.splice(place < 0 ? this.sleepers.length : place, 0, sleeper);
    });
  }

  /** Lets time pass, waking those who are due one after another, each at its own time. */
  async advance(ms: number): Promise<void> {
    const end = this.passed + ms;
    for (let first = this.sleepers[0]; first !== undefined && first.due <= end; first = this.sleepers[0]) {
      this.sleepers.shift();
      this.pass(first.due);
      first.wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.pass(end);
  }

  /** Lets time pass until the wall clock shows this. */
  advanceTo(time: number): Promise<void> {
    return this.advance(time - this.wall);
  }

  /** Sets the wall clock, forward or back; no time passes, and nobody wakes. */
  setWall(time: number): void {
    this.wall = time;
  }

  private pass(until: number): void {
    if (until <= this.passed) return;
    this.wall += until - this.passed;
    this.passed = until;
  }
}
