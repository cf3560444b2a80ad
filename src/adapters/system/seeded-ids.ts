/** Reproducible ids and random numbers for tests: the same seed gives the same sequence. */
import type { Ids } from '../../journal/clock.js';

/** Creates a generator of numbers from 0 to below 1 with 32 bits of state (mulberry32). Not suitable for secrets. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Creates ids of the form `id-<seed>-<count>`, and random numbers from the same seed. */
export function seededIds(seed: number): Ids {
  const random = seededRandom(seed);
  let count = 0;
  return { random, id: () => `id-${seed}-${++count}` };
}
