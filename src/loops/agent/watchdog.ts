/**
 * Ends waiting for what takes too long: one timer for all that a turn waits for, and none before something has waited
 * for longer than a breath, because most of what it watches costs less than a timer.
 */
import type { Clock } from '../../journal/clock.js';

interface Watched {
  readonly until: number;
  over: boolean;
  late(): void;
}

/** Why a timer is let go. Given, because making one for each costs more than all the rest. */
const OVER = new Error('Nothing is waited for any more.');

export class Watchdog {
  private readonly clock: Clock;
  private watched: Watched[] = [];
  /** A look that is due as soon as the process has drawn breath. */
  private due: NodeJS.Immediate | undefined;
  private sleep: { readonly until: number; readonly stop: AbortController } | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The work's outcome, or what `late` makes once it took longer than this; the work itself is not stopped. */
  within<T>(ms: number, work: PromiseLike<T>, late: () => unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const item: Watched = { until: this.clock.elapsed() + ms, over: false, late: () => reject(late()) };
      this.watched.push(item);
      this.due ??= this.lookSoon();
      work.then(
        (value) => {
          this.done(item);
          resolve(value);
        },
        (error) => {
          this.done(item);
          reject(error);
        },
      );
    });
  }

  /** Lets go of the timer: nothing is waited for any more. */
  close(): void {
    this.watched = [];
    clearImmediate(this.due);
    this.due = undefined;
    this.rest();
  }

  /** What is done in the order in which it began backwards, or one at a time, leaves at once; the rest at the next look. */
  private done(item: Watched): void {
    item.over = true;
    while (this.watched.at(-1)?.over === true) this.watched.pop();
  }

  private lookSoon(): NodeJS.Immediate {
    return setImmediate(() => {
      this.due = undefined;
      this.look();
    });
  }

  private look(): void {
    const now = this.clock.elapsed();
    const late = this.watched.filter(({ over, until }) => !over && until <= now);
    this.watched = this.watched.filter(({ over, until }) => !over && until > now);
    const next = this.watched.reduce((first, { until }) => Math.min(first, until), Number.POSITIVE_INFINITY);
    // A timer that is early looks again and finds nothing; one that is late must not stand.
    if (next < (this.sleep?.until ?? Number.POSITIVE_INFINITY)) this.arm(next);
    for (const item of late) item.late();
  }

  private arm(until: number): void {
    this.rest();
    const stop = new AbortController();
    this.sleep = { until, stop };
    this.clock.sleep(until - this.clock.elapsed(), stop.signal).then(
      () => {
        this.sleep = undefined;
        this.look();
      },
      () => undefined,
    );
  }

  private rest(): void {
    this.sleep?.stop.abort(OVER);
    this.sleep = undefined;
  }
}
