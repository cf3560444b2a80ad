/**
 * The snapshots as rows: a cache, so whatever is wrong with one makes it absent and never an error.
 */

import { digest } from '../../journal/record.js';
import type { Snapshot } from '../../journal/store.js';
import type { Json } from '../../protocol/json.js';
import { type Driver, type Statement, text, textOf, whole, wholeOf } from './driver.js';

export function snapshotSum(sid: number, next: number, tail: string, state: string): string {
  return digest(`${sid}\n${next}\n${tail}\n${state}`).slice(0, 22);
}

export class SnapshotRows {
  readonly #select: Statement;

  constructor(driver: Driver) {
    const columns = `${wholeOf('next')}, ${['tail', 'state', 'check_sum'].map(textOf).join(', ')}`;
    this.#select = driver.prepare(`SELECT ${columns} FROM snapshots WHERE sid = ?`);
  }

  load(sid: number): Snapshot | undefined {
    try {
      const [row] = this.#select.all(sid);
      if (row === undefined) return undefined;
      const next = whole(row.next);
      const tail = text(row.tail);
      const state = text(row.state);
      if (snapshotSum(sid, next, tail, state) !== text(row.check_sum)) return undefined;
      return { next, tail, state: JSON.parse(state) as Json };
    } catch {
      return undefined;
    }
  }
}
