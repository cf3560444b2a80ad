/** A cache of values derived from text. It is bounded, because the text may be untrusted. */

/** Added to the length of each key, so that many short keys are bounded too. */
const ENTRY_OVERHEAD_CHARS = 64;

/** A first-in, first-out cache, bounded by the total length of its keys. The size of the values is not counted. */
export class BoundedCache<V> {
  private readonly entries = new Map<string, V>();
  private readonly maxChars: number;
  private sizeChars = 0;

  /** Holds about `maxChars` characters of keys. A new entry over that evicts the oldest ones. */
  constructor(maxChars: number) {
    this.maxChars = maxChars;
  }

  /** Returns the cached value of a key, or creates and caches it. Nothing is cached if `create` throws. */
  getOrCreate(key: string, create: () => V): V {
    const cached = this.entries.get(key);
    if (cached !== undefined) return cached;
    const value = create();
    this.entries.set(key, value);
    this.sizeChars += key.length + ENTRY_OVERHEAD_CHARS;
    for (const oldest of this.entries.keys()) {
      if (this.sizeChars <= this.maxChars) break;
      this.entries.delete(oldest);
      this.sizeChars -= oldest.length + ENTRY_OVERHEAD_CHARS;
    }
    return value;
  }
}
