/** Ids and numbers that follow from a seed: the same seed, the same run. */
import type { Ids } from '../../journal/clock.js';

/** A small generator of 32-bit state (mulberry32): good enough to choose test cases, not for secrets. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function seededIds(seed: number): Ids {
  const random = seededRandom(seed);
  let count = 0;
  return { random, id: () => `id-${seed}-${++count}` };
}
