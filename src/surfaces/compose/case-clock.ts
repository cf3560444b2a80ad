/** The clock of a case of a harness: the system clock, which skips the time in which nothing is due. */
import type { Clock } from '../../journal/clock.js';
import type { Settings } from '../settings.js';
import { createClock } from './adapters.js';

/** A clock that can be put forward. */
export interface CaseClock extends Clock {
  /** Puts both clocks forward, the wall clock to this time, in milliseconds since the epoch. An earlier time has no effect. */
  skipTo(time: number): void;
}

/** Returns the clock of a case. It starts when the settings say. */
export async function createCaseClock(settings: Settings): Promise<CaseClock> {
  const clock = await createClock(settings);
  let skippedMs = 0;
  const now = (): number => clock.now() + skippedMs;
  return {
    ...clock,
    now,
    // A timer of this process is measured with the monotonic clock.
    elapsed: () => clock.elapsed() + skippedMs,
    skipTo: (time) => {
      skippedMs += Math.max(0, time - now());
    },
  };
}
