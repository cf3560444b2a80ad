/** What was made lately, by the text it was made from: bounded, because the text may come from anywhere. */

const ENTRY_OVERHEAD_CHARS = 64;

export class BoundedCache<V> {
  readonly #entries = new Map<string, V>();
  readonly #maxChars: number;
  #sizeChars = 0;

  /** Keeps about `limit` characters of keys; what does not fit pushes the oldest out. */
  constructor(limit: number) {
    this.#maxChars = limit;
  }

  /** What is kept under the key, or what `make` makes of it now. */
  getOrCreate(key: string, make: () => V): V {
    const kept = this.#entries.get(key);
    if (kept !== undefined) return kept;
    const made = make();
    this.#entries.set(key, made);
    this.#sizeChars += key.length + ENTRY_OVERHEAD_CHARS;
    for (const oldest of this.#entries.keys()) {
      if (this.#sizeChars <= this.#maxChars) break;
      this.#entries.delete(oldest);
      this.#sizeChars -= oldest.length + ENTRY_OVERHEAD_CHARS;
    }
    return made;
  }
}
