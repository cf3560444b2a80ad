/**
 * Ends waiting for what takes too long: one timer for all that a turn waits for, because a timer of its own for each
 * would cost more than most of what it watches.
 */
import type { Clock } from '../../journal/clock.js';

interface Watched {
  readonly until: number;
  late(): void;
}

/** Why a timer is let go. Given, because making one for each costs more than all the rest. */
const OVER = new Error('Nothing is waited for any more.');

export class Watchdog {
  private readonly clock: Clock;
  private readonly watched = new Set<Watched>();
  private sleep: { readonly until: number; readonly stop: AbortController } | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The work's outcome, or what `late` makes once it took longer than this; the work itself is not stopped. */
  within<T>(ms: number, work: PromiseLike<T>, late: () => unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const item: Watched = { until: this.clock.now() + ms, late: () => reject(late()) };
      this.watched.add(item);
      this.arm(item.until);
      work.then(
        (value) => {
          this.watched.delete(item);
          resolve(value);
        },
        (error) => {
          this.watched.delete(item);
          reject(error);
        },
      );
    });
  }

  /** Lets go of the timer: nothing is waited for any more. */
  close(): void {
    this.watched.clear();
    this.sleep?.stop.abort(OVER);
    this.sleep = undefined;
  }

  private arm(until: number): void {
    if (this.sleep !== undefined && this.sleep.until <= until) return;
    this.sleep?.stop.abort(OVER);
    const stop = new AbortController();
    this.sleep = { until, stop };
    this.clock.sleep(until, stop.signal).then(
      () => this.look(),
      () => undefined,
    );
  }

  private look(): void {
    this.sleep = undefined;
    const now = this.clock.now();
    let next = Number.POSITIVE_INFINITY;
    for (const item of this.watched) {
      if (item.until > now) next = Math.min(next, item.until);
      else {
        this.watched.delete(item);
        item.late();
      }
    }
    if (next < Number.POSITIVE_INFINITY) this.arm(next);
  }
}
