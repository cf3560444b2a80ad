/**
 * What a session remembers of its own folding, so that opening it need not read everything. A cache: it can be deleted,
 * one of another past is ignored, and the heavier it is the rarer it is made.
 */

import { copyAsJson, lastCopyBytes } from '../json/value.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { JournalReader } from './journal-reader.js';
import type { JournalWriter } from './journal-writer.js';
import { digestOfText } from './record.js';
import { SessionState } from './session-state.js';
import type { Store } from './store.js';
import { type Upcasts, upcast } from './upcast.js';
import type { ViewStates } from './view.js';

const MIN_SNAPSHOT_INTERVAL = 1000;
/** Bytes of a snapshot for each entry since the last one. */
const SNAPSHOT_BYTES_PER_ENTRY = 64;

interface SnapshotCacheDeps {
  readonly session: string;
  readonly store: Store;
  readonly upcasts: Upcasts;
  readonly viewStates: ViewStates;
  readonly sessionState: SessionState;
  readonly writer: JournalWriter;
}

export class SnapshotCache {
  private readonly deps: SnapshotCacheDeps;
  private lastSnapshotSeq = 0;
  private snapshotInterval = MIN_SNAPSHOT_INTERVAL;

  constructor(parts: SnapshotCacheDeps) {
    this.deps = parts;
  }

  /** Whether enough was written since the last one. */
  get isDue(): boolean {
    return this.deps.writer.nextSeq - this.lastSnapshotSeq >= this.snapshotInterval;
  }

  /** Takes over a snapshot if it is one of this very past; returns where folding goes on. */
  async restore(next: number, reader: JournalReader): Promise<number> {
    const { session, store, viewStates, sessionState, upcasts } = this.deps;
    const saved = await store.snapshots.load(session);
    if (saved === undefined || saved.nextSeq > next || saved.nextSeq === 0) return 0;
    // guard: snapshot-matches-journal
    if (tailDigestOf(await reader.entryAt(saved.nextSeq - 1)) !== saved.tailDigest) return 0;
    try {
      const state = saved.state as { session: Json; views: { [view: string]: Json } };
      const kept = SessionState.parse(state.session, (entry) => upcast(entry, upcasts));
      if (!viewStates.restore(state.views)) return 0;
      sessionState.restoreFrom(kept);
    } catch {
      return 0;
    }
    this.lastSnapshotSeq = saved.nextSeq;
    return saved.nextSeq;
  }

  async save(): Promise<void> {
    const { session, store, viewStates, sessionState, writer } = this.deps;
    const { nextSeq, lastEntry } = writer;
    if (lastEntry === undefined || !sessionState.isQuiescent) return;
    this.lastSnapshotSeq = nextSeq;
    try {
      const state = copyAsJson({ session: sessionState.save(), views: viewStates.save() }, 'a snapshot') as Json;
      // The heavier it is, the more entries share its price: the cost of an entry stays flat, however old the session.
      // guard: snapshot-interval-grows
      this.snapshotInterval = Math.max(MIN_SNAPSHOT_INTERVAL, lastCopyBytes() / SNAPSHOT_BYTES_PER_ENTRY);
      await store.snapshots.save(session, { nextSeq, tailDigest: tailDigestOf(lastEntry), state });
    } catch {
      // A cache that cannot be kept is done without; if the store itself failed, the next append tells.
    }
  }
}

function tailDigestOf({ seq, type, key, at }: Entry): string {
  return digestOfText(`${seq}\n${at}\n${type}\n${key}`);
}
