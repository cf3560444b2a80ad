/**
 * Timestamps of entries: from the wall clock, and never decreasing while a session is open. If the wall clock is set
 * back while a session is open, its timestamps continue by the monotonic clock, so their differences remain real
 * durations. A wall clock that jumps ahead is followed: after the machine was suspended, it is right and the monotonic
 * clock is not.
 */
import type { Clock } from './clock.js';

interface TimestampedEntry {
  /** Before `stamp`: a reading of the wall clock for this entry, or 0. After: the timestamp. */
  at: number;
  /** A duration that was measured with the wall clock; `stamp` corrects it if the clock jumped. */
  validationMs?: number;
}

/** The wall clock is trusted for this long before it is compared with the monotonic clock again. */
const MAX_UNCOMPARED_MS = 20;
/** A wall clock that falls behind by at most this much was not set back: time servers slew it in small steps. */
const MIN_SET_BACK_MS = 50;

/** Readings of both clocks at one moment. */
interface ClockReading {
  readonly clock: Clock;
  readonly wallMs: number;
  readonly elapsedMs: number;
}

/** The latest reading of any session. A session that is opened shortly afterwards reuses it. */
let latestReading: ClockReading | undefined;

/** Assigns timestamps to the entries of one session. */
export class Timestamps {
  private readonly clock: Clock;
  /** The reading of the wall clock for the last entry, and the timestamp of that entry. */
  private lastWallMs = Number.NaN;
  private lastTimestamp = Number.NEGATIVE_INFINITY;
  /** How far the timestamps are ahead of a wall clock that was set back. */
  private aheadMs = 0;
  /** The clocks are compared again from this timestamp on. */
  private trustedUntil = Number.NEGATIVE_INFINITY;
  /** The reading of the monotonic clock at the last comparison. */
  private lastElapsedMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Sets the timestamp of an entry. Every step runs this, so it usually reads only the wall clock. */
  stamp(entry: TimestampedEntry): void {
    const wallMs = entry.at === 0 ? this.clock.now() : entry.at;
    if (wallMs !== this.lastWallMs) this.advance(entry, wallMs);
    entry.at = this.lastTimestamp;
  }

  private advance(entry: TimestampedEntry, wallMs: number): void {
    const timestamp = wallMs + this.aheadMs;
    this.lastWallMs = wallMs;
    if (timestamp >= this.lastTimestamp && timestamp < this.trustedUntil) this.lastTimestamp = timestamp;
    else this.compareClocks(entry, wallMs);
  }

  private compareClocks(entry: TimestampedEntry, wallMs: number): void {
    if (this.trustedUntil === Number.NEGATIVE_INFINITY && this.reuseLatestReading(wallMs)) return;
    const elapsedMs = this.clock.elapsed();
    const passedMs = Math.floor(elapsedMs - this.lastElapsedMs);
    const behindMs = this.trustedUntil - MAX_UNCOMPARED_MS + passedMs - wallMs;
    this.aheadMs = behindMs > MIN_SET_BACK_MS ? behindMs : 0;
    this.lastTimestamp = Math.max(this.lastTimestamp, wallMs + this.aheadMs);
    this.trustedUntil = this.lastTimestamp + MAX_UNCOMPARED_MS;
    this.lastElapsedMs = elapsedMs;
    latestReading = { clock: this.clock, wallMs, elapsedMs };
    // A duration within the entry cannot exceed the time since the last comparison.
    if (entry.validationMs !== undefined && entry.validationMs > passedMs) entry.validationMs = passedMs;
  }

  /** Starts from the latest reading if it is recent and of the same clock. Returns false if it is not. */
  private reuseLatestReading(wallMs: number): boolean {
    if (
      latestReading?.clock !== this.clock ||
      wallMs < latestReading.wallMs ||
      wallMs >= latestReading.wallMs + MAX_UNCOMPARED_MS
    )
      return false;
    this.lastTimestamp = wallMs;
    this.trustedUntil = latestReading.wallMs + MAX_UNCOMPARED_MS;
    this.lastElapsedMs = latestReading.elapsedMs;
    return true;
  }
}
