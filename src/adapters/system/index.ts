/** The clock, the ids and the random numbers of the platform. */
import { randomUUID } from 'node:crypto';
import type { Clock, Ids } from '../../journal/clock.js';

/** The longest delay that `setTimeout` accepts. Longer sleeps use several timers. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The functions of the platform that a clock needs. */
export interface TimeSource {
  /** The wall clock, in milliseconds since the epoch. */
  readonly now: () => number;
  /** The monotonic clock, in milliseconds. */
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

/** Creates a clock from the functions of the platform, or from those of a test. */
export function createClockFrom(
  // guard: sleep-measured-monotonically
  { now, elapsed, setTimeout, clearTimeout }: TimeSource,
): Clock {
  return {
    now,
    elapsed,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const dueAtElapsed = elapsed() + ms;
        let timer: unknown;
        const abort = (): void => {
          clearTimeout(timer as never);
          reject(signal.reason);
        };
        // Repeats until the time is due: `setTimeout` may fire up to a millisecond early and has a longest delay.
        const arm = (): void => {
          const remainingMs = dueAtElapsed - elapsed();
          if (remainingMs > 0) {
            timer = setTimeout(arm, Math.min(Math.ceil(remainingMs), MAX_TIMEOUT_MS));
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

/** The clock of the platform. */
export const systemClock: Clock = createClockFrom(PLATFORM_TIME);

/** Random UUIDs and `Math.random`. */
export const systemIds: Ids = {
  id: () => randomUUID(),
  random: () => Math.random(),
};
