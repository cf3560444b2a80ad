/**
 * When entries were written: by the wall clock, and never before the entry before them. If the wall clock is set back while
 * a session is open, its timestamps go on by the monotonic clock, so what lies between two of them is time that passed.
 * A wall clock that is ahead is followed: after the machine was suspended it is the one that is right.
 */
import type { Clock } from './clock.js';

/** An entry that gets its time. */
interface Stamped {
  /** The wall clock, if it was read for this entry, or 0; then the timestamp. */
  at: number;
  /** How long something took by the wall clock. */
  took?: number;
}

/** For how long the wall clock is followed without being compared with the monotonic clock, in milliseconds. */
const TRUSTED = 20;
/** By how much the wall clock must fall behind, in milliseconds, to count as set back: it is slewed by less all the time. */
const SET_BACK = 50;

/** What the two clocks of a process showed when they were compared. */
interface Reading {
  readonly clock: Clock;
  readonly wall: number;
  readonly elapsed: number;
}

/** The last one, of whatever session: one that is opened right after it need not read the monotonic clock again. */
let latest: Reading | undefined;

export class Timestamps {
  private readonly clock: Clock;
  /** What the wall clock showed for the last entry, and the timestamp of that entry. */
  private wall = Number.NaN;
  private last = Number.NEGATIVE_INFINITY;
  /** By how much the timestamps are ahead of the wall clock, because it was set back. */
  private ahead = 0;
  /** The first timestamp for which the clocks are compared again. */
  private until = Number.NEGATIVE_INFINITY;
  /** What the monotonic clock showed when they were compared. */
  private elapsed = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Gives an entry its time. Mostly it is that of the entry before it, and one clock is read: this is on the path of every step. */
  stamp(entry: Stamped): void {
    const wall = entry.at === 0 ? this.clock.now() : entry.at;
    if (wall !== this.wall) this.advance(entry, wall);
    entry.at = this.last;
  }

  private advance(entry: Stamped, wall: number): void {
    const now = wall + this.ahead;
    this.wall = wall;
    if (now >= this.last && now < this.until) this.last = now;
    else this.compare(entry, wall);
  }

  private compare(entry: Stamped, wall: number): void {
    if (this.until === Number.NEGATIVE_INFINITY && this.takeOver(wall)) return;
    const elapsed = this.clock.elapsed();
    const passed = Math.floor(elapsed - this.elapsed);
    const behind = this.until - TRUSTED + passed - wall;
    this.ahead = behind > SET_BACK ? behind : 0;
    this.last = Math.max(this.last, wall + this.ahead);
    this.until = this.last + TRUSTED;
    this.elapsed = elapsed;
    latest = { clock: this.clock, wall, elapsed };
    // Nothing took longer than the time between the two comparisons.
    if (entry.took !== undefined && entry.took > passed) entry.took = passed;
  }

  /** Begins with the last reading, if it is one of the same clock and was made just now. */
  private takeOver(wall: number): boolean {
    if (latest?.clock !== this.clock || wall < latest.wall || wall >= latest.wall + TRUSTED) return false;
    this.last = wall;
    this.until = latest.wall + TRUSTED;
    this.elapsed = latest.elapsed;
    return true;
  }
}
