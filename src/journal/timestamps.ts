/**
 * When entries were written: by the wall clock, and never before the entry before them. If the wall clock is set back while
 * a session is open, its timestamps go on by the monotonic clock, so what lies between two of them is time that passed.
 * A wall clock that is ahead is followed: after the machine was suspended it is the one that is right.
 */
import type { Clock } from './clock.js';

/** For how long the wall clock is followed without being compared with the monotonic clock, in milliseconds. */
const TRUSTED = 20;
/** By how much the wall clock must fall behind, in milliseconds, to count as set back: it is slewed by less all the time. */
const SET_BACK = 50;

export class Timestamps {
  private readonly clock: Clock;
  private last = Number.NEGATIVE_INFINITY;
  /** When the clocks are compared again. */
  private until = Number.NEGATIVE_INFINITY;
  /** By how much the timestamps are ahead of the wall clock, because it was set back. */
  private ahead = 0;
  /** The timestamp at which the clocks were compared, and what the monotonic clock showed then. */
  private at = Number.NEGATIVE_INFINITY;
  private elapsed = Number.NEGATIVE_INFINITY;
  /** How long that was after the comparison before; of the first one nothing is known. */
  private passed = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * The time of the next entry; `read` is the wall clock if it was read for that entry, or 0. Mostly one clock is read: this is on
   * the path of every step.
   */
  next(read = 0): number {
    const wall = read === 0 ? this.clock.now() : read;
    const now = wall + this.ahead;
    this.last = now >= this.last && now < this.until ? now : this.compared(wall);
    return this.last;
  }

  /** A duration that the wall clock told for the last entry, as far as the monotonic clock allows it. */
  confirmed(took: number): number {
    return took >= 0 && took < TRUSTED ? took : Math.max(0, Math.min(took, Math.floor(this.passed)));
  }

  private compared(wall: number): number {
    const elapsed = this.clock.elapsed();
    this.passed = elapsed - this.elapsed;
    const behind = this.at + Math.floor(this.passed) - wall;
    this.ahead = behind > SET_BACK ? behind : 0;
    this.at = Math.max(this.last, wall + this.ahead);
    this.until = this.at + TRUSTED;
    this.elapsed = elapsed;
    return this.at;
  }
}
