/** The machine's own time and chance. */
import { randomUUID } from 'node:crypto';
import type { Clock, Ids } from '../../journal/clock.js';

/** The longest delay a timer of the platform takes; longer sleeps are made of several. */
const LONGEST = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (until, signal) =>
    new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const abort = (): void => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const arm = (): void => {
        const left = until - Date.now();
        if (left > 0) {
          timer = setTimeout(arm, Math.min(left, LONGEST));
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

export const systemIds: Ids = {
  id: () => randomUUID(),
  random: () => Math.random(),
};
