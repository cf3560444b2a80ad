// A witness of the lengths of streams that forgets them with the test.

import type { LengthWitness } from '../../src/host/host-options.js';

/** Returns a witness that keeps the greatest length of each stream. */
export function memoryWitness(): LengthWitness {
  const kept = new Map<string, number>();
  return {
    read: async (stream) => kept.get(stream) ?? 0,
    has: async (stream) => kept.has(stream),
    areIntact: async () => true,
    write: async (stream, length) => void kept.set(stream, Math.max(length, kept.get(stream) ?? 0)),
  };
}

/** Returns a witness that performs `work` each time before a length is read, as another process may. */
export function busyWitness(kept: LengthWitness, work: () => Promise<unknown>): LengthWitness {
  return {
    ...kept,
    read: async (stream) => {
      await work();
      return kept.read(stream);
    },
  };
}
