/**
 * The full check of a store of any size, in steps of bounded time and memory: the structure of the file, every chain from its
 * genesis to its head, every large value, and records that no session owns. Between two steps the owner serves everybody else, and a
 * step that is repeated finds the same. Sessions may be written meanwhile; each is judged by the head that it has at its last step.
 */
import type { Entry } from '../../protocol/entry.js';
import { BlobRows } from './blobs.js';
import { Chain } from './chain.js';
import { type Driver, type Statement, whole } from './driver.js';
import { readFault } from './failure.js';
import { type Head, headOf, type Owned, ownedColumns, ownedOf } from './heads.js';
import type { Damage } from './incidents.js';
import { Records } from './records.js';
import { fileFlaws } from './walk.js';

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

export const START: VerifyCursor = { phase: 'structure', sid: 0 };

/** How long a step works before it hands back. */
const SLICE_MS = 40;
/** SQLite checks the structure in one go, during which its process does nothing else: half a second for this much. */
const SMALL_BYTES = 128 << 20;

interface Findings {
  sessions: number;
  entries: number;
  skippedStructure: boolean;
  readonly damage: Damage[];
}

export class Verifier {
  readonly #driver: Driver;
  readonly #path: string;
  readonly #records: Records;
  readonly #blobs: BlobRows;
  readonly #next: Statement;
  readonly #row: Statement;
  readonly #count: Statement;

  constructor(driver: Driver, path: string) {
    this.#driver = driver;
    this.#path = path;
    this.#records = new Records(driver);
    this.#blobs = new BlobRows(driver);
    this.#next = driver.prepare(
      `SELECT ${ownedColumns} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT 1`,
    );
    this.#row = driver.prepare(`SELECT ${ownedColumns} FROM sessions WHERE sessions.sid = ?`);
    this.#count = driver.prepare('SELECT count(*) AS n FROM sessions');
  }

  /** One step; `alone` says that nobody else waits for this process. */
  step(from: VerifyCursor, alone: boolean): VerifyStep {
    const found: Findings = { sessions: 0, entries: 0, skippedStructure: false, damage: [] };
    const until = performance.now() + SLICE_MS;
    let cursor: VerifyCursor | undefined = from;
    do cursor = this.#advance(cursor, alone, found);
    while (cursor !== undefined && performance.now() < until);
    const total = whole(this.#count.all()[0]?.n);
    return { ...found, total, ...(cursor !== undefined && { cursor }) };
  }

  /** The damage of one session, found in one step after the other. */
  *session(sid: number): Generator<undefined, Damage | undefined> {
    const found: Findings = { sessions: 0, entries: 0, skippedStructure: false, damage: [] };
    for (let cursor: VerifyCursor | undefined = opened(sid); cursor?.sid === sid && cursor.at !== undefined; ) {
      cursor = this.#advance(cursor, false, found);
      yield;
    }
    return found.damage[0];
  }

  #advance(cursor: VerifyCursor, alone: boolean, found: Findings): VerifyCursor | undefined {
    const { phase, sid, at } = cursor;
    if (phase === 'structure') return this.#structure(alone, found);
    if (phase === 'orphans') return this.#orphan(sid, found);
    if (at !== undefined) return this.#within(cursor, at, found);
    const [row] = this.#next.all(sid);
    return row === undefined ? { phase: 'orphans', sid: 0 } : opened(ownedOf(row).owned.sid);
  }

  #structure(alone: boolean, found: Findings): VerifyCursor {
    const isSmall = alone || this.#bytes() <= SMALL_BYTES;
    const flaws = isSmall ? fileFlaws(this.#driver) : [];
    if (flaws.length > 0) found.damage.push({ kind: 'file', note: flaws.join('; ') });
    found.skippedStructure = !isSmall;
    return { phase: 'sessions', sid: 0 };
  }

  #bytes(): number {
    const pragma = (name: string): number => whole(this.#driver.prepare(`PRAGMA ${name}`).all()[0]?.[name]);
    return pragma('page_count') * pragma('page_size');
  }

  #orphan(after: number, found: Findings): VerifyCursor | undefined {
    const sid = this.#records.sidFrom(after + 1);
    // A damaged table can answer out of order.
    if (sid === undefined || sid <= after) return undefined;
    const note = `there are records of session number ${sid}, but no such session`;
    if (this.#row.all(sid).length === 0) found.damage.push({ kind: 'orphan', note });
    return { phase: 'orphans', sid };
  }

  #within({ sid }: VerifyCursor, at: SessionPosition, found: Findings): VerifyCursor {
    const [row] = this.#row.all(sid);
    // It was removed meanwhile.
    if (row === undefined) return { phase: 'sessions', sid };
    const { owned, sound } = ownedOf(row);
    try {
      const damage = sound ? undefined : damaged(owned, 0, 'the checksum of its row does not fit');
      const step = damage ?? this.#part(headOf(owned, this.#records.tail(sid)), at, found);
      if (!('kind' in step) && step.at !== undefined) return step;
      if ('kind' in step) found.damage.push(step);
    } catch (error) {
      found.damage.push(damaged(owned, at.next, readFault(error, this.#path).message));
    }
    found.sessions += 1;
    return { phase: 'sessions', sid };
  }

  /** The next few values or records of a session: where to go on, or what is wrong. */
  #part(head: Head, at: SessionPosition, found: Findings): VerifyCursor | Damage {
    const { sid } = head;
    if (at.blob !== undefined) {
      const { bad, last } = this.#blobs.checkPage(sid, at.blob);
      const { blob: _, ...rest } = at;
      const position = { ...rest, bad: [...at.bad, ...bad], ...(last !== undefined && { blob: last }) };
      return { phase: 'sessions', sid, at: position };
    }
    const chain = new Chain(head, { first: at.next, prev: at.prev });
    for (const record of this.#records.page(sid, at.next, head.next)) {
      const first = chain.next;
      const flaw = chain.take(record);
      if (flaw !== undefined) return damaged(head, first, flaw);
      const lost = this.#withoutValue(sid, record.body, at.bad);
      if (lost !== undefined) return damaged(head, lost.seq, `the value ${lost.blob} of entry ${lost.seq} is lost`);
    }
    found.entries += chain.next - at.next;
    const goesOn = chain.next > at.next && chain.next < head.next;
    if (goesOn) return { phase: 'sessions', sid, at: { bad: at.bad, next: chain.next, prev: chain.prev } };
    const flaw = chain.rest();
    if (flaw !== undefined) return damaged(head, chain.next, flaw);
    const [bad] = at.bad;
    return bad === undefined
      ? { phase: 'sessions', sid }
      : damaged(head, chain.next, `the value ${bad} is not what was written`);
  }

  #withoutValue(sid: number, body: string, bad: readonly string[]): Entry | undefined {
    if (!body.includes('"blob"')) return undefined;
    const entries = JSON.parse(body) as Entry[];
    return entries.find(({ blob }) => blob !== undefined && (bad.includes(blob) || !this.#blobs.has(sid, blob)));
  }
}

/** The cursor at the beginning of a session. */
function opened(sid: number): VerifyCursor {
  return { phase: 'sessions', sid, at: { blob: '', bad: [], next: 0, prev: '' } };
}

function damaged({ name }: Owned, seq: number, note: string): Damage {
  return { kind: 'damaged', session: name, seq, note };
}
