/**
 * The full check of a store of any size, in short steps: the structure of the file (in one blocking call), every chain
 * from its first record to its head, every blob, and records without a session. Between two steps the owner serves
 * other requests. A step changes nothing and may be repeated. Sessions may be written meanwhile; each is verified up to
 * the head that it has at its last step.
 */
import type { RecordHasher } from '../../journal/record.js';
import type { Entry } from '../../protocol/entry.js';
import { BlobTable } from './blob-table.js';
import { ChainVerifier } from './chain-verifier.js';
import { type Driver, readInteger, type Statement } from './driver.js';
import { readFileFlaws, readSchemaFlaws } from './full-check.js';
import { type Damage, IncidentTable } from './incidents.js';
import { RecordTable } from './record-table.js';
import { parseSessionRow, SESSION_COLUMNS, type SessionHead, type SessionRow, sessionHeadOf } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

/** The progress within one session. */
interface SessionPosition {
  /** The digest of the last verified blob; empty at the start, absent once all blobs are verified. */
  readonly blob?: string;
  /** The digests of the blobs that are damaged or lack a part. */
  readonly bad: readonly string[];
  /** The next entry to verify. */
  readonly next: number;
  /** Hash of the record before that entry; empty at the start. */
  readonly prev: string;
}

/** The progress of a verification. Pass it to the next step to continue. */
export interface VerifyCursor {
  readonly phase: 'structure' | 'sessions' | 'orphans';
  /** The number of the session in progress, or of the last finished one; 0 at the start of a phase. */
  readonly sid: number;
  /** The progress within the session; absent between two sessions. */
  readonly at?: SessionPosition;
}

/** The result of one step of a verification. */
export interface VerifyStep {
  /** Where the next step continues; absent once everything is verified. */
  readonly cursor?: VerifyCursor;
  /** Number of sessions that this step finished. */
  readonly sessions: number;
  /** Number of entries that this step verified. */
  readonly entries: number;
  /** Number of sessions in the store. */
  readonly total: number;
  /** Damage that this step found. */
  readonly damage: readonly Damage[];
  /** True if this step left out the check of the structure, because the file is large and its owner serves others. */
  readonly skippedStructure: boolean;
}

/** The cursor of the first step. */
export const VERIFY_START: VerifyCursor = { phase: 'structure', sid: 0 };

/** A step returns after the first part (the structure, a page or a lookup) that ends after this time. */
const MAX_STEP_MS = 40;
/**
 * Maximum size of a database whose structure is checked while the owner serves other processes. SQLite checks the
 * structure in one blocking call, which takes about half a second for a file of this size.
 */
const MAX_SHARED_STRUCTURE_CHECK_BYTES = 128 << 20;

interface StepFindings {
  sessions: number;
  entries: number;
  skippedStructure: boolean;
  readonly damage: Damage[];
}

/** Verifies an open store step by step. */
export class StoreVerifier {
  private readonly driver: Driver;
  private readonly path: string;
  private readonly records: RecordTable;
  private readonly blobs: BlobTable;
  private readonly incidents: IncidentTable;
  private readonly selectNextSession: Statement;
  private readonly selectSession: Statement;
  private readonly countSessions: Statement;

  constructor(driver: Driver, path: string, hasher: RecordHasher) {
    this.driver = driver;
    this.path = path;
    this.records = new RecordTable(driver, hasher);
    this.blobs = new BlobTable(driver);
    this.incidents = new IncidentTable(driver, hasher);
    this.selectNextSession = driver.prepare(
      `SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT 1`,
    );
    this.selectSession = driver.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid = ?`);
    this.countSessions = driver.prepare('SELECT count(*) AS n FROM sessions');
  }

  /** Runs one step. `isExclusive` is true if no other process waits for this one. */
  step(from: VerifyCursor, isExclusive: boolean): VerifyStep {
    const findings: StepFindings = { sessions: 0, entries: 0, skippedStructure: false, damage: [] };
    const until = performance.now() + MAX_STEP_MS;
    let cursor: VerifyCursor | undefined = from;
    do cursor = this.advance(cursor, isExclusive, findings);
    while (cursor !== undefined && performance.now() < until);
    const total = readInteger(this.countSessions.all()[0]?.n);
    return { ...findings, total, ...(cursor !== undefined && { cursor }) };
  }

  /** Verifies one session, yielding after every page, and returns its first damage; undefined if it is intact. */
  *verifySession(sid: number): Generator<undefined, Damage | undefined> {
    const findings: StepFindings = { sessions: 0, entries: 0, skippedStructure: false, damage: [] };
    for (
      let cursor: VerifyCursor | undefined = sessionStartCursor(sid);
      cursor?.sid === sid && cursor.at !== undefined;
    ) {
      cursor = this.advance(cursor, false, findings);
      yield;
    }
    return findings.damage[0];
  }

  /**
   * Checks the structure, a page of a session, or whether the next session number with records has a session. Returns
   * the next cursor; undefined at the end.
   */
  private advance(cursor: VerifyCursor, isExclusive: boolean, findings: StepFindings): VerifyCursor | undefined {
    const { phase, sid, at } = cursor;
    if (phase === 'structure') return this.checkStructure(isExclusive, findings);
    if (phase === 'orphans') return this.checkNextOrphan(sid, findings);
    if (at !== undefined) return this.advanceSession(cursor, at, findings);
    const [row] = this.selectNextSession.all(sid);
    return row === undefined
      ? { phase: 'orphans', sid: 0 }
      : sessionStartCursor(parseSessionRow(this.records.hasher, row).sessionRow.sid);
  }

  private checkStructure(isExclusive: boolean, findings: StepFindings): VerifyCursor {
    const isChecked = isExclusive || this.databaseBytes() <= MAX_SHARED_STRUCTURE_CHECK_BYTES;
    const flaws = isChecked ? readFileFlaws(this.driver) : readSchemaFlaws(this.driver);
    if (flaws.length > 0) findings.damage.push({ kind: 'file', note: flaws.join('; ') });
    findings.damage.push(...this.incidents.findForgedRemovals());
    findings.skippedStructure = !isChecked;
    return { phase: 'sessions', sid: 0 };
  }

  private databaseBytes(): number {
    const pragma = (name: string): number => readInteger(this.driver.prepare(`PRAGMA ${name}`).all()[0]?.[name]);
    return pragma('page_count') * pragma('page_size');
  }

  private checkNextOrphan(after: number, findings: StepFindings): VerifyCursor | undefined {
    const sid = this.records.findSidFrom(after + 1);
    // A damaged table can return rows out of order.
    if (sid === undefined || sid <= after) return undefined;
    const note = `there are records of session number ${sid}, but no such session`;
    if (this.selectSession.all(sid).length === 0) findings.damage.push({ kind: 'orphan', note });
    return { phase: 'orphans', sid };
  }

  private advanceSession({ sid }: VerifyCursor, at: SessionPosition, findings: StepFindings): VerifyCursor {
    const [row] = this.selectSession.all(sid);
    // The session was removed meanwhile.
    if (row === undefined) return { phase: 'sessions', sid };
    const { sessionRow, isIntact } = parseSessionRow(this.records.hasher, row);
    try {
      const damage = isIntact ? undefined : sessionDamage(sessionRow, 0, 'the checksum of its row does not match');
      const step =
        damage ?? this.checkNextPart(sessionHeadOf(sessionRow, this.records.readLastRecord(sid)), at, findings);
      if (!('kind' in step) && step.at !== undefined) return step;
      if ('kind' in step) findings.damage.push(step);
    } catch (error) {
      findings.damage.push(sessionDamage(sessionRow, at.next, toReadFault(error, this.path).message));
    }
    findings.sessions += 1;
    return { phase: 'sessions', sid };
  }

  /**
   * Verifies the next page of blobs or records of a session. Returns where to continue, without `at` if the session is
   * finished, or the damage.
   */
  private checkNextPart(head: SessionHead, at: SessionPosition, findings: StepFindings): VerifyCursor | Damage {
    const { sid } = head;
    if (at.blob !== undefined) {
      const { bad, last } = this.blobs.checkPage(sid, at.blob);
      const { blob: _, ...rest } = at;
      const position = { ...rest, bad: [...at.bad, ...bad], ...(last !== undefined && { blob: last }) };
      return { phase: 'sessions', sid, at: position };
    }
    const chain = new ChainVerifier(this.records.hasher, head, { firstSeq: at.next, prevHash: at.prev });
    for (const record of this.records.readPage(sid, at.next, head.next)) {
      const first = chain.nextSeq;
      const flaw = chain.advance(record);
      if (flaw !== undefined) return sessionDamage(head, first, flaw);
      const entry = this.findEntryWithLostBlob(sid, record.body, at.bad);
      if (entry !== undefined)
        return sessionDamage(head, entry.seq, `the value ${entry.blob} of entry ${entry.seq} is lost`);
    }
    findings.entries += chain.nextSeq - at.next;
    const isUnfinished = chain.nextSeq > at.next && chain.nextSeq < head.next;
    if (isUnfinished) return { phase: 'sessions', sid, at: { bad: at.bad, next: chain.nextSeq, prev: chain.lastHash } };
    const flaw = chain.findEndFlaw();
    if (flaw !== undefined) return sessionDamage(head, chain.nextSeq, flaw);
    const [bad] = at.bad;
    return bad === undefined
      ? { phase: 'sessions', sid }
      : sessionDamage(head, chain.nextSeq, `the value ${bad} is not what was written`);
  }

  /** Returns the first entry of a record body whose blob is damaged or missing. */
  private findEntryWithLostBlob(sid: number, body: string, bad: readonly string[]): Entry | undefined {
    if (!body.includes('"blob"')) return undefined;
    const entries = JSON.parse(body) as Entry[];
    return entries.find(({ blob }) => blob !== undefined && (bad.includes(blob) || !this.blobs.has(sid, blob)));
  }
}

/** Returns the cursor at the start of a session. */
function sessionStartCursor(sid: number): VerifyCursor {
  return { phase: 'sessions', sid, at: { blob: '', bad: [], next: 0, prev: '' } };
}

function sessionDamage({ name }: SessionRow, seq: number, note: string): Damage {
  return { kind: 'damaged', session: name, seq, note };
}
