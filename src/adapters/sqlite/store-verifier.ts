/**
 * The full check of a store of any size, in steps of bounded time and memory: the structure of the file, every chain from its
 * genesis to its head, every large value, and records that no session owns. Between two steps the owner serves everybody else, and a
 * step that is repeated finds the same. Sessions may be written meanwhile; each is judged by the head that it has at its last step.
 */
import type { Entry } from '../../protocol/entry.js';
import { BlobTable } from './blob-table.js';
import { ChainVerifier } from './chain-verifier.js';
import { type Driver, readInteger, type Statement } from './driver.js';
import { readFileFlaws } from './full-check.js';
import type { Damage } from './incidents.js';
import { RecordTable } from './record-table.js';
import { parseSessionRow, SESSION_COLUMNS, type SessionHead, type SessionRow, sessionHeadOf } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

/** Where the check of a session stands. */
interface SessionPosition {
  /** The last large value that was checked; absent once all are. */
  readonly blob?: string;
  /** Large values that are not what was written. */
  readonly bad: readonly string[];
  readonly next: number;
  readonly prev: string;
}

/** Where a verification stands; handed back to go on. */
export interface VerifyCursor {
  readonly phase: 'structure' | 'sessions' | 'orphans';
  /** The session that is being checked, or the last one that was. */
  readonly sid: number;
  readonly at?: SessionPosition;
}

export interface VerifyStep {
  /** Absent once everything was checked. */
  readonly cursor?: VerifyCursor;
  /** Sessions and entries that this step has finished with, and how many sessions there are. */
  readonly sessions: number;
  readonly entries: number;
  readonly total: number;
  readonly damage: readonly Damage[];
  /** True if the structure of the file was not checked: it is large, and its owner serves other processes. */
  readonly skippedStructure: boolean;
}

export const VERIFY_START: VerifyCursor = { phase: 'structure', sid: 0 };

/** How long a step works before it hands back. */
const MAX_STEP_MS = 40;
/** SQLite checks the structure in one go, during which its process does nothing else: half a second for this much. */
const MAX_SHARED_STRUCTURE_CHECK_BYTES = 128 << 20;

interface StepFindings {
  sessions: number;
  entries: number;
  skippedStructure: boolean;
  readonly damage: Damage[];
}

export class StoreVerifier {
  readonly #driver: Driver;
  readonly #path: string;
  readonly #records: RecordTable;
  readonly #blobs: BlobTable;
  readonly #selectNextSession: Statement;
  readonly #selectSession: Statement;
  readonly #countSessions: Statement;

  constructor(driver: Driver, path: string) {
    this.#driver = driver;
    this.#path = path;
    this.#records = new RecordTable(driver);
    this.#blobs = new BlobTable(driver);
    this.#selectNextSession = driver.prepare(
      `SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT 1`,
    );
    this.#selectSession = driver.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid = ?`);
    this.#countSessions = driver.prepare('SELECT count(*) AS n FROM sessions');
  }

  /** One step; `alone` says that nobody else waits for this process. */
  step(from: VerifyCursor, alone: boolean): VerifyStep {
    const found: StepFindings = { sessions: 0, entries: 0, skippedStructure: false, damage: [] };
    const until = performance.now() + MAX_STEP_MS;
    let cursor: VerifyCursor | undefined = from;
    do cursor = this.#advance(cursor, alone, found);
    while (cursor !== undefined && performance.now() < until);
    const total = readInteger(this.#countSessions.all()[0]?.n);
    return { ...found, total, ...(cursor !== undefined && { cursor }) };
  }

  /** The damage of one session, found in one step after the other. */
  *verifySession(sid: number): Generator<undefined, Damage | undefined> {
    const found: StepFindings = { sessions: 0, entries: 0, skippedStructure: false, damage: [] };
    for (
      let cursor: VerifyCursor | undefined = sessionStartCursor(sid);
      cursor?.sid === sid && cursor.at !== undefined;
    ) {
      cursor = this.#advance(cursor, false, found);
      yield;
    }
    return found.damage[0];
  }

  #advance(cursor: VerifyCursor, alone: boolean, found: StepFindings): VerifyCursor | undefined {
    const { phase, sid, at } = cursor;
    if (phase === 'structure') return this.#checkStructure(alone, found);
    if (phase === 'orphans') return this.#checkNextOrphan(sid, found);
    if (at !== undefined) return this.#advanceSession(cursor, at, found);
    const [row] = this.#selectNextSession.all(sid);
    return row === undefined ? { phase: 'orphans', sid: 0 } : sessionStartCursor(parseSessionRow(row).owned.sid);
  }

  #checkStructure(alone: boolean, found: StepFindings): VerifyCursor {
    const isSmall = alone || this.#databaseBytes() <= MAX_SHARED_STRUCTURE_CHECK_BYTES;
    const flaws = isSmall ? readFileFlaws(this.#driver) : [];
    if (flaws.length > 0) found.damage.push({ kind: 'file', note: flaws.join('; ') });
    found.skippedStructure = !isSmall;
    return { phase: 'sessions', sid: 0 };
  }

  #databaseBytes(): number {
    const pragma = (name: string): number => readInteger(this.#driver.prepare(`PRAGMA ${name}`).all()[0]?.[name]);
    return pragma('page_count') * pragma('page_size');
  }

  #checkNextOrphan(after: number, found: StepFindings): VerifyCursor | undefined {
    const sid = this.#records.findSidFrom(after + 1);
    // A damaged table can answer out of order.
    if (sid === undefined || sid <= after) return undefined;
    const note = `there are records of session number ${sid}, but no such session`;
    if (this.#selectSession.all(sid).length === 0) found.damage.push({ kind: 'orphan', note });
    return { phase: 'orphans', sid };
  }

  #advanceSession({ sid }: VerifyCursor, at: SessionPosition, found: StepFindings): VerifyCursor {
    const [row] = this.#selectSession.all(sid);
    // It was removed meanwhile.
    if (row === undefined) return { phase: 'sessions', sid };
    const { owned, sound } = parseSessionRow(row);
    try {
      const damage = sound ? undefined : sessionDamage(owned, 0, 'the checksum of its row does not fit');
      const step = damage ?? this.#checkNextPart(sessionHeadOf(owned, this.#records.readLastRecord(sid)), at, found);
      if (!('kind' in step) && step.at !== undefined) return step;
      if ('kind' in step) found.damage.push(step);
    } catch (error) {
      found.damage.push(sessionDamage(owned, at.next, toReadFault(error, this.#path).message));
    }
    found.sessions += 1;
    return { phase: 'sessions', sid };
  }

  /** The next few values or records of a session: where to go on, or what is wrong. */
  #checkNextPart(head: SessionHead, at: SessionPosition, found: StepFindings): VerifyCursor | Damage {
    const { sid } = head;
    if (at.blob !== undefined) {
      const { bad, last } = this.#blobs.checkPage(sid, at.blob);
      const { blob: _, ...rest } = at;
      const position = { ...rest, bad: [...at.bad, ...bad], ...(last !== undefined && { blob: last }) };
      return { phase: 'sessions', sid, at: position };
    }
    const chain = new ChainVerifier(head, { firstSeq: at.next, prevHash: at.prev });
    for (const record of this.#records.readPage(sid, at.next, head.next)) {
      const first = chain.nextSeq;
      const flaw = chain.advance(record);
      if (flaw !== undefined) return sessionDamage(head, first, flaw);
      const lost = this.#findEntryWithLostBlob(sid, record.body, at.bad);
      if (lost !== undefined)
        return sessionDamage(head, lost.seq, `the value ${lost.blob} of entry ${lost.seq} is lost`);
    }
    found.entries += chain.nextSeq - at.next;
    const goesOn = chain.nextSeq > at.next && chain.nextSeq < head.next;
    if (goesOn) return { phase: 'sessions', sid, at: { bad: at.bad, next: chain.nextSeq, prev: chain.lastHash } };
    const flaw = chain.findEndFlaw();
    if (flaw !== undefined) return sessionDamage(head, chain.nextSeq, flaw);
    const [bad] = at.bad;
    return bad === undefined
      ? { phase: 'sessions', sid }
      : sessionDamage(head, chain.nextSeq, `the value ${bad} is not what was written`);
  }

  #findEntryWithLostBlob(sid: number, body: string, bad: readonly string[]): Entry | undefined {
    if (!body.includes('"blob"')) return undefined;
    const entries = JSON.parse(body) as Entry[];
    return entries.find(({ blob }) => blob !== undefined && (bad.includes(blob) || !this.#blobs.has(sid, blob)));
  }
}

/** The cursor at the beginning of a session. */
function sessionStartCursor(sid: number): VerifyCursor {
  return { phase: 'sessions', sid, at: { blob: '', bad: [], next: 0, prev: '' } };
}

function sessionDamage({ name }: SessionRow, seq: number, note: string): Damage {
  return { kind: 'damaged', session: name, seq, note };
}
