/** Snapshots as rows. A snapshot is a cache, so a damaged one counts as absent and never causes an error. */

import { digestOfText } from '../../journal/record.js';
import type { Snapshot } from '../../journal/store.js';
import type { Json } from '../../protocol/json.js';
import { type Driver, integerColumn, readInteger, readText, type Statement, textColumn } from './driver.js';

/** Returns the checksum that is stored with a snapshot. */
export function snapshotChecksum(sid: number, next: number, tail: string, state: string): string {
  return digestOfText(`${sid}\n${next}\n${tail}\n${state}`).slice(0, 22);
}

/** Reads the `snapshots` table. */
export class SnapshotTable {
  private readonly select: Statement;

  constructor(driver: Driver) {
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
      if (snapshotChecksum(sid, next, tail, state) !== readText(row.checksum)) return undefined;
      return { nextSeq: next, tailDigest: tail, state: JSON.parse(state) as Json };
    } catch {
      return undefined;
    }
  }
}
