/**
 * Periods that are recorded and survive a restart: timers and deadlines. In the process that began one, it ends when its
 * whole length has passed on the monotonic clock, whatever happens to the wall clock. After a restart only the wall clock
 * is left: it ends at its recorded time, after at most its whole length.
 */
import type { Clock } from './clock.js';

/** A period as it is recorded. */
export interface RecordedPeriod {
  /** Tells it from all others of the process. */
  readonly id: string;
  /** When it ends, by the wall clock at its beginning. */
  readonly until: number;
  /** Its whole length in milliseconds. */
  readonly durationMs: number;
}

/** How many periods are kept, at least, before those that are over are dropped. */
const MIN_SWEEP_SIZE = 1000;

class PeriodEnds extends Map<string, number> {
  private sweepThreshold = MIN_SWEEP_SIZE;

  /** Drops periods that are over, once there are twice as many as after the last time. */
  sweep(now: number): void {
    if (this.size <= this.sweepThreshold) return;
    for (const [id, end] of this) if (end <= now) this.delete(id);
    this.sweepThreshold = Math.max(MIN_SWEEP_SIZE, 2 * this.size);
  }
}

/** The ends of periods that this process began or went on with, by the clock that measures them. */
const endsByClock = new WeakMap<Clock, PeriodEnds>();

function endsOf(clock: Clock): PeriodEnds {
  const ends = endsByClock.get(clock) ?? new PeriodEnds();
  endsByClock.set(clock, ends);
  return ends;
}

/** A recorded period, measured in this process. */
export class Period {
  /** When it ends, by the monotonic clock. */
  readonly endsAtElapsed: number;
  private readonly clock: Clock;
  private readonly periodKey: string;
  private readonly stopController = new AbortController();

  /** `begins` says that it begins now, and is not one that was recorded earlier. */
  constructor(clock: Clock, { id, until, durationMs }: RecordedPeriod, begins: boolean) {
    this.clock = clock;
    this.periodKey = `${id} ${until}`;
    const ends = endsOf(clock);
    const now = clock.elapsed();
    // guard: running-period-remembered
    const before = begins ? undefined : ends.get(this.periodKey);
    // If the wall clock was set back, the time that is left would be too long: it is never longer than the whole period.
    this.endsAtElapsed =
      before ??
      now +
        (begins
          ? durationMs
          : /* guard: remaining-period-bounded */ Math.min(durationMs, Math.max(0, until - clock.now())));
    ends.set(this.periodKey, this.endsAtElapsed).sweep(now);
  }

  /** Milliseconds until it ends; 0 or less once it is over. */
  get remainingMs(): number {
    return this.endsAtElapsed - this.clock.elapsed();
  }

  /** Resolves when it is over; rejects once it was stopped. */
  sleep(): Promise<void> {
    return this.clock.sleep(this.remainingMs, this.stopController.signal);
  }

  /** Ends the sleep. A period that this process may go on with later is kept. */
  stop(kept: boolean): void {
    this.stopController.abort();
    if (!kept) endsOf(this.clock).delete(this.periodKey);
  }

  get isStopped(): boolean {
    return this.stopController.signal.aborted;
  }
}
