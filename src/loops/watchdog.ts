/**
 * Enforces timeouts of tool and model calls. All pending calls of a turn share one timer, which is started only if a call is
 * still pending in the next iteration of the event loop: most calls cost less than a timer.
 */
import type { Clock } from '../journal/clock.js';

interface PendingWork {
  /** The time of the monotonic clock at which it times out. */
  readonly until: number;
  isDone: boolean;
  onTimeout(): void;
}

/** The abort reason of stopped timers, shared because creating an error is expensive. */
const TIMER_STOPPED = new Error('The timer of the watchdog was stopped.');

/** Enforces the timeouts of one turn. */
export class Watchdog {
  private readonly clock: Clock;
  private pending: PendingWork[] = [];
  /** The check in the next iteration of the event loop. */
  private scheduledCheck: NodeJS.Immediate | undefined;
  private timer: { readonly until: number; readonly stop: AbortController } | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /**
   * Settles like `work`, or rejects with the result of `timeoutError` after `ms` milliseconds. The work is not stopped.
   */
  withTimeout<T>(ms: number, work: PromiseLike<T>, timeoutError: () => unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const finish = this.watch(ms, () => reject(timeoutError()));
      work.then(
        (value) => {
          finish();
          resolve(value);
        },
        (error) => {
          finish();
          reject(error);
        },
      );
    });
  }

  /** Calls `onTimeout` after `ms` milliseconds, unless the function that it returns is called before. */
  watch(ms: number, onTimeout: () => void): () => void {
    const item: PendingWork = { until: this.clock.elapsed() + ms, isDone: false, onTimeout };
    this.pending.push(item);
    this.scheduledCheck ??= this.scheduleCheck();
    return () => this.finish(item);
  }

  /** Stops the timer and drops all pending work, which then never times out. */
  close(): void {
    this.pending = [];
    clearImmediate(this.scheduledCheck);
    this.scheduledCheck = undefined;
    this.stopTimer();
  }

  /** Removes finished work from the end of the list. Finished work in the middle is removed by the next check. */
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
    // A timer that is too early is harmless, because it only checks again. One that is too late must be replaced.
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
    this.timer?.stop.abort(TIMER_STOPPED);
    this.timer = undefined;
  }
}
