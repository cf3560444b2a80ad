/** What was made lately, by the text it was made from: bounded, because the text may come from anywhere. */

const ENTRY = 64;

export class Recent<V> {
  readonly #entries = new Map<string, V>();
  readonly #limit: number;
  #size = 0;

  /** Keeps about `limit` characters of keys; what does not fit pushes the oldest out. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What is kept under the key, or what `make` makes of it now. */
  of(key: string, make: () => V): V {
    const kept = this.#entries.get(key);
    if (kept !== undefined) return kept;
    const made = make();
    this.#entries.set(key, made);
    this.#size += key.length + ENTRY;
    for (const oldest of this.#entries.keys()) {
      if (this.#size <= this.#limit) break;
      this.#entries.delete(oldest);
      this.#size -= oldest.length + ENTRY;
    }
    return made;
  }
}
