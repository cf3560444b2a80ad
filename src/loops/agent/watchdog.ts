/**
 * Ends waiting for what takes too long: one timer for all that a turn waits for, and none before something has waited
 * for longer than a breath, because most of what it watches costs less than a timer.
 */
import type { Clock } from '../../journal/clock.js';

interface PendingWork {
  readonly until: number;
  isDone: boolean;
  onTimeout(): void;
}

/** Why a timer is let go. Given, because making one for each costs more than all the rest. */
const NOTHING_PENDING = new Error('Nothing is waited for any more.');

export class Watchdog {
  private readonly clock: Clock;
  private pending: PendingWork[] = [];
  /** A look that is due as soon as the process has drawn breath. */
  private scheduledCheck: NodeJS.Immediate | undefined;
  private timer: { readonly until: number; readonly stop: AbortController } | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The work's outcome, or what `late` makes once it took longer than this; the work itself is not stopped. */
  withTimeout<T>(ms: number, work: PromiseLike<T>, late: () => unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const item: PendingWork = { until: this.clock.elapsed() + ms, isDone: false, onTimeout: () => reject(late()) };
      this.pending.push(item);
      this.scheduledCheck ??= this.scheduleCheck();
      work.then(
        (value) => {
          this.finish(item);
          resolve(value);
        },
        (error) => {
          this.finish(item);
          reject(error);
        },
      );
    });
  }

  /** Lets go of the timer: nothing is waited for any more. */
  close(): void {
    this.pending = [];
    clearImmediate(this.scheduledCheck);
    this.scheduledCheck = undefined;
    this.stopTimer();
  }

  /** What is done in the order in which it began backwards, or one at a time, leaves at once; the rest at the next look. */
  private finish(item: PendingWork): void {
    item.isDone = true;
    while (this.pending.at(-1)?.isDone === true) this.pending.pop();
  }

  private scheduleCheck(): NodeJS.Immediate {
    return setImmediate(() => {
      this.scheduledCheck = undefined;
      this.checkTimeouts();
    });
  }

  private checkTimeouts(): void {
    const now = this.clock.elapsed();
    const late = this.pending.filter(({ isDone, until }) => !isDone && until <= now);
    this.pending = this.pending.filter(({ isDone, until }) => !isDone && until > now);
    const next = this.pending.reduce((first, { until }) => Math.min(first, until), Number.POSITIVE_INFINITY);
    // A timer that is early looks again and finds nothing; one that is late must not stand.
    if (next < (this.timer?.until ?? Number.POSITIVE_INFINITY)) this.startTimer(next);
    for (const item of late) item.onTimeout();
  }

  private startTimer(until: number): void {
    this.stopTimer();
    const stop = new AbortController();
    this.timer = { until, stop };
    this.clock.sleep(until - this.clock.elapsed(), stop.signal).then(
      () => {
        this.timer = undefined;
        this.checkTimeouts();
      },
      () => undefined,
    );
  }

  private stopTimer(): void {
    this.timer?.stop.abort(NOTHING_PENDING);
    this.timer = undefined;
  }
}
