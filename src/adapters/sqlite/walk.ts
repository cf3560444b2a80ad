/**
 * The full check: every page by SQLite itself, every chain from its genesis to its head, every large value, and
 * records that no session owns. What it cannot read counts as damaged; it never stops at the first finding.
 */
import type { Entry } from '../../protocol/entry.js';
import { BlobRows } from './blobs.js';
import { Chain } from './chain.js';
import { type Driver, text, whole } from './driver.js';
import { readFault } from './failure.js';
import type { Head } from './heads.js';
import { Records, span } from './records.js';

/** Where a session's past stops being what was written. */
export interface Break {
  readonly seq: number;
  /** When the last good record before it was committed. */
  readonly since?: number;
  readonly note: string;
}

/** What SQLite says of its own pages; empty if all is well. */
export function fileFlaws(driver: Driver): readonly string[] {
  try {
    const sql = 'SELECT CAST(integrity_check AS BLOB) AS note FROM pragma_integrity_check LIMIT 8';
    const notes = driver
      .prepare(sql)
      .all()
      .map((row) => text(row.note));
    return notes.length === 1 && notes[0] === 'ok' ? [] : notes;
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/**
 * A broken structure is marked in a field of the header that nothing else uses: a table may be out of reach. A file that is marked is
 * checked as a whole at each opening, until the check passes.
 */
export function isMarkedBroken(driver: Driver): boolean {
  const [row] = driver.prepare('PRAGMA user_version').all();
  return whole(row?.user_version) === 1;
}

/** Marks the file, or takes the mark away; one that cannot be written is found broken again where it matters. */
export function markBroken(driver: Driver, isBroken: boolean): void {
  try {
    driver.exec(`PRAGMA user_version = ${isBroken ? 1 : 0}`);
  } catch {
    // Nothing else is written to it either.
  }
}

export class Walk {
  readonly #records: Records;
  readonly #blobs: BlobRows;
  readonly #path: string;

  constructor(driver: Driver, path: string) {
    this.#records = new Records(driver);
    this.#blobs = new BlobRows(driver);
    this.#path = path;
  }

  /** The first break in a session's past, if any. */
  session(head: Head): Break | undefined {
    const chain = new Chain(head);
    let since: number | undefined;
    const broken = (note: string, seq = chain.next): Break =>
      since === undefined ? { seq, note } : { seq, note, since };
    try {
      const { good, bad } = this.#blobs.check(head.sid);
      for (;;) {
        const page = this.#records.page(head.sid, chain.next, span);
        for (const record of page) {
          const flaw = chain.take(record);
          if (flaw !== undefined) return broken(flaw);
          const entry = this.#withoutValue(record.body, good);
          if (entry !== undefined) return broken(`the value ${entry.blob} of entry ${entry.seq} is lost`, entry.seq);
          since = record.at;
        }
        if (page.length === 0) break;
      }
      const flaw = chain.rest();
      if (flaw !== undefined) return broken(flaw);
      return bad.length === 0 ? undefined : broken(`the value ${bad[0]} is not what was written`);
    } catch (error) {
      return broken(readFault(error, this.#path).message);
    }
  }

  /** Sids that have records but no session. */
  orphans(sids: ReadonlySet<number>): readonly number[] {
    const found: number[] = [];
    let sid = this.#records.sidFrom(0);
    while (sid !== undefined) {
      if (!sids.has(sid)) found.push(sid);
      const next = this.#records.sidFrom(sid + 1);
      // A damaged table can answer out of order.
      sid = next !== undefined && next > sid ? next : undefined;
    }
    return found;
  }

  #withoutValue(body: string, good: ReadonlySet<string>): Entry | undefined {
    if (!body.includes('"blob"')) return undefined;
    const entries = JSON.parse(body) as Entry[];
    return entries.find(({ blob }) => blob !== undefined && !good.has(blob));
  }
}
