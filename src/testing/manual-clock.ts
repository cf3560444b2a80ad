/** A clock that moves only when told to, so that years pass in a test and nothing is ever early. */
import type { Clock } from '../journal/clock.js';

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

export class ManualClock implements Clock {
  private time: number;
  private sleepers: Sleeper[] = [];

  constructor(start = 0) {
    this.time = start;
  }

  now(): number {
    return this.time;
  }

  /** When the earliest sleeper wants to wake; undefined if nobody sleeps. */
  get next(): number | undefined {
    return this.sleepers[0]?.until;
  }

  sleep(until: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (until <= this.time) return resolve();
      const abort = (): void => {
        this.sleepers = this.sleepers.filter((other) => other !== sleeper);
        reject(signal.reason);
      };
      const wake = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const sleeper = { until, wake };
      signal.addEventListener('abort', abort, { once: true });
      const place = this.sleepers.findIndex((other) => other.until > until);
      this.sleepers.splice(place < 0 ? this.sleepers.length : place, 0, sleeper);
    });
  }

  /** Moves to a time, waking those who are due one after another, each at its own time. */
  async advanceTo(time: number): Promise<void> {
    for (let due = this.sleepers[0]; due !== undefined && due.until <= time; due = this.sleepers[0]) {
      this.sleepers.shift();
      this.time = Math.max(this.time, due.until);
      due.wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.time = Math.max(this.time, time);
  }

  advance(ms: number): Promise<void> {
    return this.advanceTo(this.time + ms);
  }
}
