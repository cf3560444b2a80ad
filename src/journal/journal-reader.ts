/** The entries of a session as they are meant today: those of older shapes are brought up to date as they are read. */

import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { fetchValue } from './fetch-value.js';
import type { Store } from './store.js';
import { needsUpcast, type Upcasts, upcast } from './upcast.js';

export class JournalReader {
  private readonly session: string;
  private readonly store: Store;
  private readonly upcasts: Upcasts;

  constructor(session: string, store: Store, upcasts: Upcasts) {
    this.session = session;
    this.store = store;
    this.upcasts = upcasts;
  }

  /** Entries from this one on, in lots. */
  async *readFrom(seq: number): AsyncGenerator<readonly Entry[]> {
    for await (const entries of this.store.journal.read(this.session, seq)) {
      const present = entries.map((entry) => this.upcastEntry(entry));
      yield present.some((entry) => entry instanceof Promise) ? await Promise.all(present) : (present as Entry[]);
    }
  }

  async entryAt(seq: number): Promise<Entry> {
    for await (const [entry] of this.readFrom(seq)) if (entry !== undefined) return entry;
    throw this.missingEntryFault(seq);
  }

  /** The value of an entry, wherever it lies. */
  fetchValue(entry: Entry): Promise<Json | undefined> {
    return fetchValue(this.store.blobs, this.session, entry);
  }

  missingEntryFault(seq: number): Fault {
    const message = `Session "${this.session}": entry ${seq} is missing.`;
    return new Fault('STORE_DAMAGED', message, { session: this.session });
  }

  /** An older entry is brought up to date with its value, wherever that lies. */
  private upcastEntry(entry: Entry): Entry | Promise<Entry> {
    if (entry.blob === undefined || !needsUpcast(entry, this.upcasts)) return upcast(entry, this.upcasts);
    const { blob: _, ...rest } = entry;
    return this.fetchValue(entry).then((value) => upcast({ ...rest, value }, this.upcasts));
  }
}
