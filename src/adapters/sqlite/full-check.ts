/**
 * The full check: every page by SQLite itself, every chain from its genesis to its head, every large value, and
 * records that no session owns. What it cannot read counts as damaged; it never stops at the first finding.
 */
import type { Entry } from '../../protocol/entry.js';
import { BlobTable } from './blob-table.js';
import { ChainVerifier } from './chain-verifier.js';
import { type Driver, readInteger, readText } from './driver.js';
import { MAX_ENTRIES_PER_SESSION, RecordTable } from './record-table.js';
import type { SessionHead } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

/** Where a session's past stops being what was written. */
export interface ChainBreak {
  readonly seq: number;
  /** When the last good record before it was committed. */
  readonly since?: number;
  readonly note: string;
}

/** What SQLite says of its own pages; empty if all is well. */
export function readFileFlaws(driver: Driver): readonly string[] {
  try {
    const sql = 'SELECT CAST(integrity_check AS BLOB) AS note FROM pragma_integrity_check LIMIT 8';
    const notes = driver
      .prepare(sql)
      .all()
      .map((row) => readText(row.note));
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
  return readInteger(row?.user_version) === 1;
}

/** Marks the file, or takes the mark away; one that cannot be written is found broken again where it matters. */
export function markBroken(driver: Driver, isBroken: boolean): void {
  try {
    driver.exec(`PRAGMA user_version = ${isBroken ? 1 : 0}`);
  } catch {
    // Nothing else is written to it either.
  }
}

export class FullCheck {
  readonly #records: RecordTable;
  readonly #blobs: BlobTable;
  readonly #path: string;

  constructor(driver: Driver, path: string) {
    this.#records = new RecordTable(driver);
    this.#blobs = new BlobTable(driver);
    this.#path = path;
  }

  /** The first break in a session's past, if any. */
  checkSession(head: SessionHead): ChainBreak | undefined {
    const chain = new ChainVerifier(head);
    let since: number | undefined;
    const broken = (note: string, seq = chain.nextSeq): ChainBreak =>
      since === undefined ? { seq, note } : { seq, note, since };
    try {
      const { good, bad } = this.#blobs.checkSession(head.sid);
      for (;;) {
        const page = this.#records.readPage(head.sid, chain.nextSeq, MAX_ENTRIES_PER_SESSION);
        for (const record of page) {
          const flaw = chain.advance(record);
          if (flaw !== undefined) return broken(flaw);
          const entry = this.#findEntryWithLostBlob(record.body, good);
          if (entry !== undefined) return broken(`the value ${entry.blob} of entry ${entry.seq} is lost`, entry.seq);
          since = record.committedAt;
        }
        if (page.length === 0) break;
      }
      const flaw = chain.findEndFlaw();
      if (flaw !== undefined) return broken(flaw);
      return bad.length === 0 ? undefined : broken(`the value ${bad[0]} is not what was written`);
    } catch (error) {
      return broken(toReadFault(error, this.#path).message);
    }
  }

  /** Sids that have records but no session. */
  findOrphanSids(sids: ReadonlySet<number>): readonly number[] {
    const found: number[] = [];
    let sid = this.#records.findSidFrom(0);
    while (sid !== undefined) {
      if (!sids.has(sid)) found.push(sid);
      const next = this.#records.findSidFrom(sid + 1);
      // A damaged table can answer out of order.
      sid = next !== undefined && next > sid ? next : undefined;
    }
    return found;
  }

  #findEntryWithLostBlob(body: string, good: ReadonlySet<string>): Entry | undefined {
    if (!body.includes('"blob"')) return undefined;
    const entries = JSON.parse(body) as Entry[];
    return entries.find(({ blob }) => blob !== undefined && !good.has(blob));
  }
}
