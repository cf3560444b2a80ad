/**
 * Snapshots of one session, which make it faster to open. They are a cache: a snapshot can be deleted, one that does
 * not match the journal is ignored, and large snapshots are taken less often.
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

/** The minimum number of entries between two snapshots. */
const MIN_SNAPSHOT_INTERVAL = 1000;
/** The size of a snapshot divided by this is the minimum number of entries until the next one. */
const SNAPSHOT_BYTES_PER_ENTRY = 64;

interface SnapshotCacheDeps {
  readonly session: string;
  readonly store: Store;
  readonly upcasts: Upcasts;
  readonly viewStates: ViewStates;
  readonly sessionState: SessionState;
  readonly writer: JournalWriter;
}

/** Saves and restores the snapshot of one session. */
export class SnapshotCache {
  private readonly deps: SnapshotCacheDeps;
  private lastSnapshotSeq = 0;
  private snapshotInterval = MIN_SNAPSHOT_INTERVAL;

  constructor(deps: SnapshotCacheDeps) {
    this.deps = deps;
  }

  /** True if enough entries were written since the last snapshot. */
  get isDue(): boolean {
    return this.deps.writer.nextSeq - this.lastSnapshotSeq >= this.snapshotInterval;
  }

  /**
   * Restores the snapshot if it matches the journal. Returns the first sequence number that is left to fold; 0 if
   * nothing was restored.
   */
  async restore(nextSeq: number, reader: JournalReader): Promise<number> {
    const { session, store, viewStates, sessionState, upcasts } = this.deps;
    const saved = await store.snapshots.load(session);
    if (saved === undefined || saved.nextSeq > nextSeq || saved.nextSeq === 0) return 0;
    // guard: snapshot-matches-journal
    if (tailDigestOf(await reader.entryAt(saved.nextSeq - 1)) !== saved.tailDigest) return 0;
    try {
      const state = saved.state as { session: Json; views: { [view: string]: Json } };
      const restored = SessionState.parse(state.session, (entry) => upcast(entry, upcasts));
      if (!viewStates.restore(state.views)) return 0;
      sessionState.restoreFrom(restored);
    } catch {
      return 0;
    }
    this.lastSnapshotSeq = saved.nextSeq;
    return saved.nextSeq;
  }

  /** Saves a snapshot if the session is quiescent (no root and no intent is open). Errors are ignored. */
  async save(): Promise<void> {
    const { session, store, viewStates, sessionState, writer } = this.deps;
    const { nextSeq, lastEntry } = writer;
    if (lastEntry === undefined || !sessionState.isQuiescent) return;
    this.lastSnapshotSeq = nextSeq;
    try {
      const state = copyAsJson({ session: sessionState.save(), views: viewStates.save() }, 'a snapshot') as Json;
      // A larger snapshot is shared by more entries: the cost for each entry stays constant, however long the session.
      // guard: snapshot-interval-grows
      this.snapshotInterval = Math.max(MIN_SNAPSHOT_INTERVAL, lastCopyBytes() / SNAPSHOT_BYTES_PER_ENTRY);
      await store.snapshots.save(session, { nextSeq, tailDigest: tailDigestOf(lastEntry), state });
    } catch {
      // A session works without snapshots. If the store itself has failed, the next append reports it.
    }
  }
}

/**
 * Returns the digest that identifies the last entry of a snapshot: of its position, time, type and key, not of its
 * value.
 */
export function tailDigestOf({ seq, type, key, at }: Entry): string {
  return digestOfText(`${seq}\n${at}\n${type}\n${key}`);
}
