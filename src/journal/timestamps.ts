/**
 * When entries were written: by the wall clock, and never before the entry before them. If the wall clock is set back while
 * a session is open, its timestamps go on by the monotonic clock, so what lies between two of them is time that passed.
 * A wall clock that is ahead is followed: after the machine was suspended it is the one that is right.
 */
import type { Clock } from './clock.js';

/** A gap between two timestamps, in milliseconds, that is short enough not to be compared with the monotonic clock. */
const SHORT = 20;
/** By how much the wall clock must fall behind, in milliseconds, to count as set back: it is slewed by less all the time. */
const SET_BACK = 50;

export class Timestamps {
  private readonly clock: Clock;
  private last = Number.NEGATIVE_INFINITY;
  /** By how much the timestamps are ahead of the wall clock, because it was set back. */
  private ahead = 0;
  /** A timestamp, and what the monotonic clock showed then. */
  private at = Number.NEGATIVE_INFINITY;
  private elapsed = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The time of the next entry. Mostly one clock is read: this is on the path of every step. */
  next(): number {
    const now = this.clock.now() + this.ahead;
    const gap = now - this.last;
    this.last = gap >= 0 && gap < SHORT ? now : this.compared(now - this.ahead);
    return this.last;
  }

  private compared(now: number): number {
    const elapsed = this.clock.elapsed();
    const steady = this.at + Math.floor(elapsed - this.elapsed);
    this.ahead = steady - now > SET_BACK ? steady - now : 0;
    this.at = Math.max(this.last, now + this.ahead);
    this.elapsed = elapsed;
    return this.at;
  }
}
