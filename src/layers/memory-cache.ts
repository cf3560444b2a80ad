/** Kept answers in memory: the one that was not used for the longest time goes first. */
import type { Json } from '../protocol/json.js';
import type { CachedResult, ResultCache } from './cache.js';

interface StoredResult {
  readonly json: string;
  readonly requestedAt: number;
  readonly sizeBytes: number;
}

/** A cache of at most so many answers and so many bytes of them; an answer that alone is larger is not kept. */
export function memoryCache(bounds: { readonly entries: number; readonly bytes: number }): ResultCache {
  // A map keeps its order: the first is the one that was not used for the longest time.
  const answers = new Map<string, StoredResult>();
  let weight = 0;
  const drop = (key: string): void => {
    weight -= answers.get(key)?.sizeBytes ?? 0;
    answers.delete(key);
  };
  const get = (key: string): CachedResult | undefined => {
    const kept = answers.get(key);
    if (kept === undefined) return undefined;
    answers.delete(key);
    answers.set(key, kept);
    return { value: JSON.parse(kept.json) as Json, requestedAt: kept.requestedAt };
  };
  const put = (key: string, { value, requestedAt }: CachedResult): void => {
    // As text it cannot be changed by whoever holds the value, and its size is known.
    const text = JSON.stringify(value);
    const bytes = Buffer.byteLength(text) + key.length;
    drop(key);
    if (bytes > bounds.bytes) return;
    answers.set(key, { json: text, requestedAt, sizeBytes: bytes });
    weight += bytes;
    for (const oldest of answers.keys()) {
      if (answers.size <= bounds.entries && weight <= bounds.bytes) return;
      drop(oldest);
    }
  };
  return { get, put };
}
