/** The machine's own time and chance. */
import { randomUUID } from 'node:crypto';
import type { Clock, Ids } from '../../journal/clock.js';

/** The longest delay a timer of the platform takes; longer sleeps are made of several. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** What the platform offers to tell the time and to wait. */
export interface TimeSource {
  /** The wall clock. */
  readonly now: () => number;
  /** The monotonic clock. */
  readonly elapsed: () => number;
  readonly setTimeout: (callback: () => void, ms: number) => unknown;
  readonly clearTimeout: (timer: never) => void;
}

const PLATFORM_TIME: TimeSource = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  setTimeout,
  clearTimeout,
};

/** A clock over the platform's, or over another source of time. */
export function createClockFrom(
  // guard: sleep-measured-monotonically
  { now, elapsed, setTimeout, clearTimeout }: TimeSource,
): Clock {
  return {
    now,
    elapsed,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const due = elapsed() + ms;
        let timer: unknown;
        const abort = (): void => {
          clearTimeout(timer as never);
          reject(signal.reason);
        };
        // A timer of the platform may fire up to a millisecond early.
        const arm = (): void => {
          const left = due - elapsed();
          if (left > 0) {
            timer = setTimeout(arm, Math.min(Math.ceil(left), MAX_TIMEOUT_MS));
            return;
          }
          signal.removeEventListener('abort', abort);
          resolve();
        };
        if (signal.aborted) return abort();
        signal.addEventListener('abort', abort, { once: true });
        arm();
      }),
  };
}

export const systemClock: Clock = createClockFrom(PLATFORM_TIME);

export const systemIds: Ids = {
  id: () => randomUUID(),
  random: () => Math.random(),
};
