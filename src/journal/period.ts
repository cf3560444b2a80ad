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
  readonly ms: number;
}

/** How many periods are kept, at least, before those that are over are dropped. */
const KEPT = 1000;

class Ends extends Map<string, number> {
  private sweepAt = KEPT;

  /** Drops periods that are over, once there are twice as many as after the last time. */
  sweep(now: number): void {
    if (this.size <= this.sweepAt) return;
    for (const [id, end] of this) if (end <= now) this.delete(id);
    this.sweepAt = Math.max(KEPT, 2 * this.size);
  }
}

/** The ends of periods that this process began or went on with, by the clock that measures them. */
const known = new WeakMap<Clock, Ends>();

function endsOf(clock: Clock): Ends {
  const ends = known.get(clock) ?? new Ends();
  known.set(clock, ends);
  return ends;
}

/** A recorded period, measured in this process. */
export class Period {
  /** When it ends, by the monotonic clock. */
  readonly end: number;
  private readonly clock: Clock;
  private readonly name: string;
  private readonly ended = new AbortController();

  /** `begins` says that it begins now, and is not one that was recorded earlier. */
  constructor(clock: Clock, { id, until, ms }: RecordedPeriod, begins: boolean) {
    this.clock = clock;
    this.name = `${id} ${until}`;
    const ends = endsOf(clock);
    const now = clock.elapsed();
    // guard: running-period-remembered
    const before = begins ? undefined : ends.get(this.name);
    // If the wall clock was set back, the time that is left would be too long: it is never longer than the whole period.
    this.end =
      before ??
      now + (begins ? ms : /* guard: remaining-period-bounded */ Math.min(ms, Math.max(0, until - clock.now())));
    ends.set(this.name, this.end).sweep(now);
  }

  /** Milliseconds until it ends; 0 or less once it is over. */
  get left(): number {
    return this.end - this.clock.elapsed();
  }

  /** Resolves when it is over; rejects once it was stopped. */
  sleep(): Promise<void> {
    return this.clock.sleep(this.left, this.ended.signal);
  }

  /** Ends the sleep. A period that this process may go on with later is kept. */
  stop(kept: boolean): void {
    this.ended.abort();
    if (!kept) endsOf(this.clock).delete(this.name);
  }

  get stopped(): boolean {
    return this.ended.signal.aborted;
  }
}
