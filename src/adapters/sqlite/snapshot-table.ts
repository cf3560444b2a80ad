/** Snapshots as rows. A snapshot is a cache, so a damaged one counts as absent and never causes an error. */

import { digestOfText, type RecordHasher } from '../../journal/record.js';
import type { Snapshot } from '../../journal/store.js';
import type { Json } from '../../protocol/json.js';
import { type Driver, integerColumn, readInteger, readText, type Statement, textColumn } from './driver.js';

/** Returns the checksum that is stored with a snapshot. */
export function snapshotChecksum(
  hasher: RecordHasher,
  sid: number,
  { next, tail, state }: { readonly next: number; readonly tail: string; readonly state: string },
): string {
  const plain = (text: string): string => digestOfText(text).slice(0, 22);
  return hasher.checksumOf('snapshot', `${sid}\n${next}\n${tail}\n${state}`, plain);
}

/** Reads the `snapshots` table. */
export class SnapshotTable {
  private readonly hasher: RecordHasher;
  private readonly select: Statement;

  constructor(driver: Driver, hasher: RecordHasher) {
    this.hasher = hasher;
    const columns = `${integerColumn('next')}, ${['tail', 'state', 'checksum'].map(textColumn).join(', ')}`;
    this.select = driver.prepare(`SELECT ${columns} FROM snapshots WHERE sid = ?`);
  }

  /** Returns the snapshot of a session; undefined if there is none or it is damaged or unreadable. */
  load(sid: number): Snapshot | undefined {
    try {
      const [row] = this.select.all(sid);
      if (row === undefined) return undefined;
      const next = readInteger(row.next);
      const tail = readText(row.tail);
      const state = readText(row.state);
      // guard: snapshot-made-with-the-key
      if (snapshotChecksum(this.hasher, sid, { next, tail, state }) !== readText(row.checksum)) return undefined;
      return { nextSeq: next, tailDigest: tail, state: JSON.parse(state) as Json };
    } catch {
      return undefined;
    }
  }
}
