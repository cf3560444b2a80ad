/** The entries of a session as they are meant today: those of older shapes are brought up to date as they are read. */

import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { fetchValue } from './fetch.js';
import type { Store } from './store.js';
import { needsUpcast, type Upcasts, upcast } from './upcast.js';

export class Reader {
  private readonly session: string;
  private readonly store: Store;
  private readonly upcasts: Upcasts;

  constructor(session: string, store: Store, upcasts: Upcasts) {
    this.session = session;
    this.store = store;
    this.upcasts = upcasts;
  }

  /** Entries from this one on, in lots. */
  async *from(seq: number): AsyncGenerator<readonly Entry[]> {
    for await (const entries of this.store.journal.read(this.session, seq)) {
      const present = entries.map((entry) => this.upToDate(entry));
      yield present.some((entry) => entry instanceof Promise) ? await Promise.all(present) : (present as Entry[]);
    }
  }

  async at(seq: number): Promise<Entry> {
    for await (const [entry] of this.from(seq)) if (entry !== undefined) return entry;
    throw this.missing(seq);
  }

  /** The value of an entry, wherever it lies. */
  value(entry: Entry): Promise<Json | undefined> {
    return fetchValue(this.store.blobs, this.session, entry);
  }

  missing(seq: number): Fault {
    const message = `Session "${this.session}": entry ${seq} is missing.`;
    return new Fault('STORE_DAMAGED', message, { session: this.session });
  }

  /** An older entry is brought up to date with its value, wherever that lies. */
  private upToDate(entry: Entry): Entry | Promise<Entry> {
    if (entry.blob === undefined || !needsUpcast(entry, this.upcasts)) return upcast(entry, this.upcasts);
    const { blob: _, ...rest } = entry;
    return this.value(entry).then((value) => upcast({ ...rest, value }, this.upcasts));
  }
}
