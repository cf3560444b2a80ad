/**
 * Periods that are recorded and survive a restart: timers and deadlines. In the process that started it, a period ends
 * when its full length has passed on the monotonic clock, whatever happens to the wall clock. After a restart only the
 * wall clock is available: the period ends at its recorded time, or after its full length from the restart on if that
 * is earlier.
 */
import type { PendingStep } from '../protocol/session.js';
import type { Clock } from './clock.js';

interface RecordedPeriod {
  /** Unique among the periods of the process. */
  readonly id: string;
  /** The end, in milliseconds since the epoch, by the wall clock when the period started. */
  readonly until: number;
  readonly durationMs: number;
}

/** A wall clock that is behind by at most this much was not set back. */
const MIN_SET_BACK_MS = 50;
/** The minimum number of remembered periods before those that have ended are removed. */
const MIN_SWEEP_SIZE = 1000;

/** The ends of periods, as times of the monotonic clock, by id and recorded end. */
class PeriodEnds extends Map<string, number> {
  private sweepThreshold = MIN_SWEEP_SIZE;

  /**
   * Removes periods that have ended, once there are more than MIN_SWEEP_SIZE and twice as many as after the last sweep.
   * `now` is a time of the monotonic clock.
   */
  sweep(now: number): void {
    if (this.size <= this.sweepThreshold) return;
    for (const [id, end] of this) if (end <= now) this.delete(id);
    this.sweepThreshold = Math.max(MIN_SWEEP_SIZE, 2 * this.size);
  }
}

/** The ends of periods that this process started or continued, by the clock that measures them. */
const endsByClock = new WeakMap<Clock, PeriodEnds>();

function endsOf(clock: Clock): PeriodEnds {
  const ends = endsByClock.get(clock) ?? new PeriodEnds();
  endsByClock.set(clock, ends);
  return ends;
}

/** A recorded period, measured in this process. */
export class Period {
  /** The end, by the monotonic clock. */
  readonly endsAtElapsed: number;
  private readonly clock: Clock;
  private readonly recordedEnd: number;
  private readonly periodKey: string;
  private readonly stopController = new AbortController();

  /** `isNew` is true if the period starts now, and false if it was recorded earlier. */
  constructor(clock: Clock, { id, until, durationMs }: RecordedPeriod, isNew: boolean) {
    this.clock = clock;
    this.recordedEnd = until;
    this.periodKey = `${id} ${until}`;
    const ends = endsOf(clock);
    const now = clock.elapsed();
    // guard: running-period-remembered
    const rememberedEnd = isNew ? undefined : ends.get(this.periodKey);
    // If the wall clock was set back, the recorded end is too far away: the rest never exceeds the full length.
    this.endsAtElapsed =
      rememberedEnd ??
      now +
        (isNew
          ? durationMs
          : /* guard: remaining-period-bounded */ Math.min(durationMs, Math.max(0, until - clock.now())));
    ends.set(this.periodKey, this.endsAtElapsed).sweep(now);
  }

  /** Milliseconds until the end; 0 or less once the period is over. */
  get remainingMs(): number {
    return this.endsAtElapsed - this.clock.elapsed();
  }

  /**
   * The end, by the wall clock as it is now: if that was set back, the recorded end is too far away. It is kept for a small
   * difference, because the two clocks are not read at the same moment.
   */
  private get endsAt(): number {
    const endsAt = this.clock.now() + this.remainingMs;
    // guard: due-time-follows-wall-clock
    return this.recordedEnd - endsAt > MIN_SET_BACK_MS ? endsAt : this.recordedEnd;
  }

  /** Returns the step of a run that waits for the end. Its time is computed when it is read: when the run pauses. */
  pendingStep(key: string): PendingStep {
    const endsAt = (): number => this.endsAt;
    return {
      kind: 'timer',
      key,
      get until() {
        return endsAt();
      },
    };
  }

  /** Resolves when the period is over; rejects if it is stopped first. */
  sleep(): Promise<void> {
    return this.clock.sleep(this.remainingMs, this.stopController.signal);
  }

  /**
   * Ends the sleep, which then rejects. `mayContinue` keeps the end of the period in memory, for a later run of this
   * process.
   */
  stop(mayContinue: boolean): void {
    this.stopController.abort();
    if (!mayContinue) endsOf(this.clock).delete(this.periodKey);
  }

  /** True once `stop` was called. */
  get isStopped(): boolean {
    return this.stopController.signal.aborted;
  }
}
