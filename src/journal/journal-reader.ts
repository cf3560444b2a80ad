/**
 * Reads the entries of a session in their current schema version: older entries are upcast (converted) as they are
 * read.
 */

import { Fault, LoopError } from '../base/errors.js';
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Signal } from '../protocol/session.js';
import { fetchValue } from './fetch-value.js';
import { type RecordedStep, ReplayTree } from './replay-tree.js';
import type { RootCall } from './session-state.js';
import type { Store } from './store.js';
import { needsUpcast, type Upcasts, upcast } from './upcast.js';

/** The reader of one session's journal and its blobs. */
export class JournalReader {
  private readonly session: string;
  private readonly store: Store;
  private readonly upcasts: Upcasts;

  constructor(session: string, store: Store, upcasts: Upcasts) {
    this.session = session;
    this.store = store;
    this.upcasts = upcasts;
  }

  /** Yields the entries from a sequence number on, in batches. Throws a Fault if an entry is damaged or too new. */
  async *readFrom(seq: number): AsyncGenerator<readonly Entry[]> {
    for await (const entries of this.store.journal.read(this.session, seq)) {
      const current = entries.map((entry) => this.upcastEntry(entry));
      yield current.some((entry) => entry instanceof Promise) ? await Promise.all(current) : (current as Entry[]);
    }
  }

  /** Returns the entry at a sequence number; throws a Fault if it is missing. */
  async entryAt(seq: number): Promise<Entry> {
    for await (const [entry] of this.readFrom(seq)) if (entry !== undefined) return entry;
    throw this.missingEntryFault(seq);
  }

  /**
   * Reads the recorded steps of a root (a top-level call). Of a root that has ended, only the first and the last entry
   * are read. Throws a Fault if its first entry is missing.
   */
  async readRoot(root: string, { firstSeq, lastSeq }: RootCall): Promise<RecordedStep> {
    const tree = new ReplayTree(root);
    if (lastSeq !== undefined) for (const seq of [firstSeq, lastSeq]) tree.add(await this.entryAt(seq));
    else for await (const entries of this.readFrom(firstSeq)) for (const entry of entries) tree.add(entry);
    if (tree.recordedRoot === undefined) throw this.missingEntryFault(firstSeq);
    return tree.recordedRoot;
  }

  /** Returns the value of an entry, from the entry itself or from the blobs. */
  fetchValue(entry: Entry): Promise<Json | undefined> {
    return fetchValue(this.store.blobs, this.session, entry);
  }

  /** Returns false for a repeated delivery. Throws SIGNAL_CONFLICT if the signal at a sequence number has other content. */
  async confirmRepeated(seq: number, { id, name, value, turn }: Signal): Promise<false> {
    const entry = await this.entryAt(seq);
    const recorded = await this.fetchValue(entry);
    const isSame =
      entry.name === name && entry.turnId === turn && jsonEquals(recorded, copyAsJson(value, 'the signal'));
    if (isSame) return false;
    throw new LoopError('SIGNAL_CONFLICT', `Signal "${id}" was received before, with other content.`, { id });
  }

  private missingEntryFault(seq: number): Fault {
    const message = `Session "${this.session}": entry ${seq} is missing.`;
    return new Fault('STORE_DAMAGED', message, { session: this.session });
  }

  /** Upcasts an older entry together with its value; a value in the blobs is fetched for it. */
  private upcastEntry(entry: Entry): Entry | Promise<Entry> {
    // The tree of a retried root is built from the value, however large it is.
    if (entry.type === 'call.reopened' && entry.blob !== undefined)
      return this.fetchValue(entry).then((value) => ({ ...entry, value }));
    if (entry.blob === undefined || !needsUpcast(entry, this.upcasts)) return upcast(entry, this.upcasts);
    const { blob: _, ...rest } = entry;
    return this.fetchValue(entry).then((value) => upcast({ ...rest, value }, this.upcasts));
  }
}
