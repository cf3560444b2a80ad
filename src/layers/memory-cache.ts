/** An in-memory result cache that evicts the least recently used entry first. */
import type { Json } from '../protocol/json.js';
import type { CachedResult, ResultCache } from './cache.js';

interface StoredResult {
  readonly json: string;
  readonly requestedAt: number;
  readonly sizeBytes: number;
}

/** Creates an LRU cache bounded by entries and bytes. A result larger than the byte limit is not stored. */
export function memoryCache(bounds: { readonly entries: number; readonly bytes: number }): ResultCache {
  // A Map iterates in insertion order, and reads reinsert: the first entry is the least recently used.
  const results = new Map<string, StoredResult>();
  let totalBytes = 0;
  const drop = (key: string): void => {
    totalBytes -= results.get(key)?.sizeBytes ?? 0;
    results.delete(key);
  };
  const get = (key: string): CachedResult | undefined => {
    const stored = results.get(key);
    if (stored === undefined) return undefined;
    results.delete(key);
    results.set(key, stored);
    return { value: JSON.parse(stored.json) as Json, requestedAt: stored.requestedAt };
  };
  const put = (key: string, { value, requestedAt }: CachedResult): void => {
    // Stored as JSON text: callers cannot mutate the cached value, and its size is known.
    const json = JSON.stringify(value);
    const sizeBytes = Buffer.byteLength(json) + key.length;
    drop(key);
    if (sizeBytes > bounds.bytes) return;
    results.set(key, { json, requestedAt, sizeBytes });
    totalBytes += sizeBytes;
    for (const oldest of results.keys()) {
      if (results.size <= bounds.entries && totalBytes <= bounds.bytes) return;
      drop(oldest);
    }
  };
  return { get, put };
}
