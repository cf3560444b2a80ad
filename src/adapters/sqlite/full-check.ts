/**
 * The full check when a store is opened: the structure of the file, every chain from its genesis to its head, every
 * blob, and records without a session. Unreadable data counts as damaged. The check reports the first finding of each
 * session and continues with the next one.
 */
import type { RecordHasher } from '../../journal/record.js';
import type { Entry } from '../../protocol/entry.js';
import { BlobTable } from './blob-table.js';
import { ChainVerifier } from './chain-verifier.js';
import { type Driver, readInteger, readText } from './driver.js';
import { MAX_ENTRIES_PER_SESSION, RecordTable } from './record-table.js';
import { readTriggerNames } from './schema.js';
import type { SessionHead } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

/** The first damage of a session. */
interface ChainBreak {
  /** The first damaged entry. If only a blob that no entry names is damaged, the entry after the last one. */
  readonly seq: number;
  /** When the last good record before it was committed, in milliseconds since the epoch; absent if there is none. */
  readonly since?: number;
  readonly note: string;
}

/** Returns why the schema of a file is not that of a store: it has triggers, which could change what is written. */
export function readSchemaFlaws(driver: Driver): readonly string[] {
  // guard: trigger-refused
  return readTriggerNames(driver).map((name) => `it has the trigger "${name}"`);
}

/**
 * Reads the schema, runs SQLite's integrity check and returns up to eight findings of it, or why it failed; empty if the
 * file is intact.
 */
export function readFileFlaws(driver: Driver): readonly string[] {
  try {
    const schemaFlaws = readSchemaFlaws(driver);
    if (schemaFlaws.length > 0) return schemaFlaws;
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
 * True if the file is marked as structurally broken. The mark is the `user_version` in the file header, because the
 * tables may be unreadable. A marked file is fully checked whenever it is opened, until the check passes.
 */
export function isMarkedBroken(driver: Driver): boolean {
  const [row] = driver.prepare('PRAGMA user_version').all();
  return readInteger(row?.user_version) === 1;
}

/**
 * Sets or clears the mark of a broken structure. Write failures are ignored: the next full check detects the damage
 * again.
 */
export function markBroken(driver: Driver, isBroken: boolean): void {
  try {
    driver.exec(`PRAGMA user_version = ${isBroken ? 1 : 0}`);
  } catch {
    // The file cannot be written, so no other write can spread the damage.
  }
}

/** Verifies sessions completely when a store is opened. */
export class FullCheck {
  private readonly records: RecordTable;
  private readonly blobs: BlobTable;
  private readonly path: string;

  constructor(driver: Driver, path: string, hasher: RecordHasher) {
    this.records = new RecordTable(driver, hasher);
    this.blobs = new BlobTable(driver);
    this.path = path;
  }

  /** Returns the first damage in the chain or blobs of a session; undefined if the session is intact. Never throws. */
  checkSession(head: SessionHead): ChainBreak | undefined {
    const chain = new ChainVerifier(this.records.hasher, head);
    let since: number | undefined;
    const breakAt = (note: string, seq = chain.nextSeq): ChainBreak =>
      since === undefined ? { seq, note } : { seq, note, since };
    try {
      const { good, bad } = this.blobs.checkSession(head.sid);
      for (;;) {
        const page = this.records.readPage(head.sid, chain.nextSeq, MAX_ENTRIES_PER_SESSION);
        for (const record of page) {
          const flaw = chain.advance(record);
          if (flaw !== undefined) return breakAt(flaw);
          const entry = this.findEntryWithLostBlob(record.body, good);
          if (entry !== undefined) return breakAt(`the value ${entry.blob} of entry ${entry.seq} is lost`, entry.seq);
          since = record.committedAt;
        }
        if (page.length === 0) break;
      }
      const flaw = chain.findEndFlaw();
      if (flaw !== undefined) return breakAt(flaw);
      return bad.length === 0 ? undefined : breakAt(`the value ${bad[0]} is not what was written`);
    } catch (error) {
      return breakAt(toReadFault(error, this.path).message);
    }
  }

  /** Returns the sids that have records but are not among these sessions. */
  findOrphanSids(sids: ReadonlySet<number>): readonly number[] {
    const orphans: number[] = [];
    let sid = this.records.findSidFrom(0);
    while (sid !== undefined) {
      if (!sids.has(sid)) orphans.push(sid);
      const next = this.records.findSidFrom(sid + 1);
      // A damaged table can return rows out of order.
      sid = next !== undefined && next > sid ? next : undefined;
    }
    return orphans;
  }

  /** Returns the first entry of a record body whose blob is not among the good ones. */
  private findEntryWithLostBlob(body: string, good: ReadonlySet<string>): Entry | undefined {
    if (!body.includes('"blob"')) return undefined;
    const entries = JSON.parse(body) as Entry[];
    return entries.find(({ blob }) => blob !== undefined && !good.has(blob));
  }
}
