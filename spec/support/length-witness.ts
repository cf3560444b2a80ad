// A witness of the lengths of streams that forgets them with the test.

import type { LengthWitness } from '../../src/host/host-options.js';

/** Returns a witness that keeps the greatest length of each stream. */
export function memoryWitness(): LengthWitness {
  const kept = new Map<string, number>();
  return {
    read: async (stream) => kept.get(stream) ?? 0,
    write: async (stream, length) => void kept.set(stream, Math.max(length, kept.get(stream) ?? 0)),
  };
}
