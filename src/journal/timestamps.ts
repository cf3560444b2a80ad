/**
 * When entries were written: by the wall clock, and never before the entry before them. If the wall clock is set back while
 * a session is open, its timestamps go on by the monotonic clock, so what lies between two of them is time that passed.
 * A wall clock that is ahead is followed: after the machine was suspended it is the one that is right.
 */
import type { Clock } from './clock.js';

/** An entry that gets its time. */
interface TimestampedEntry {
  /** The wall clock, if it was read for this entry, or 0; then the timestamp. */
  at: number;
  /** How long something took by the wall clock. */
  validationMs?: number;
}

/** For how long the wall clock is followed without being compared with the monotonic clock, in milliseconds. */
const MAX_UNCOMPARED_MS = 20;
/** By how much the wall clock must fall behind, in milliseconds, to count as set back: it is slewed by less all the time. */
const MIN_SET_BACK_MS = 50;

/** What the two clocks of a process showed when they were compared. */
interface ClockReading {
  readonly clock: Clock;
  readonly wallMs: number;
  readonly elapsedMs: number;
}

/** The last one, of whatever session: one that is opened right after it need not read the monotonic clock again. */
let latestReading: ClockReading | undefined;

export class Timestamps {
  private readonly clock: Clock;
  /** What the wall clock showed for the last entry, and the timestamp of that entry. */
  private lastWallMs = Number.NaN;
  private lastTimestamp = Number.NEGATIVE_INFINITY;
  /** By how much the timestamps are ahead of the wall clock, because it was set back. */
  private aheadMs = 0;
  /** The first timestamp for which the clocks are compared again. */
  private trustedUntil = Number.NEGATIVE_INFINITY;
  /** What the monotonic clock showed when they were compared. */
  private lastElapsedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Gives an entry its time. Mostly it is that of the entry before it, and one clock is read: this is on the path of every step. */
  stamp(entry: TimestampedEntry): void {
    const wall = entry.at === 0 ? this.clock.now() : entry.at;
    if (wall !== this.lastWallMs) this.advance(entry, wall);
    entry.at = this.lastTimestamp;
  }

  private advance(entry: TimestampedEntry, wall: number): void {
    const now = wall + this.aheadMs;
    this.lastWallMs = wall;
    if (now >= this.lastTimestamp && now < this.trustedUntil) this.lastTimestamp = now;
    else this.compareClocks(entry, wall);
  }

  private compareClocks(entry: TimestampedEntry, wall: number): void {
    if (this.trustedUntil === Number.NEGATIVE_INFINITY && this.reuseLatestReading(wall)) return;
    const elapsed = this.clock.elapsed();
    const passed = Math.floor(elapsed - this.lastElapsedMs);
    const behind = this.trustedUntil - MAX_UNCOMPARED_MS + passed - wall;
    this.aheadMs = behind > MIN_SET_BACK_MS ? behind : 0;
    this.lastTimestamp = Math.max(this.lastTimestamp, wall + this.aheadMs);
    this.trustedUntil = this.lastTimestamp + MAX_UNCOMPARED_MS;
    this.lastElapsedMs = elapsed;
    latestReading = { clock: this.clock, wallMs: wall, elapsedMs: elapsed };
    // Nothing took longer than the time between the two comparisons.
    if (entry.validationMs !== undefined && entry.validationMs > passed) entry.validationMs = passed;
  }

  /** Begins with the last reading, if it is one of the same clock and was made just now. */
  private reuseLatestReading(wall: number): boolean {
    if (
      latestReading?.clock !== this.clock ||
      wall < latestReading.wallMs ||
      wall >= latestReading.wallMs + MAX_UNCOMPARED_MS
    )
      return false;
    this.lastTimestamp = wall;
    this.trustedUntil = latestReading.wallMs + MAX_UNCOMPARED_MS;
    this.lastElapsedMs = latestReading.elapsedMs;
    return true;
  }
}
