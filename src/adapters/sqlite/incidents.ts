/**
 * The record of damage, in the database: what was found stays on it until somebody accepts it by name or removes the session, and
 * then it says who did, when and why. An anchor that was missing once is therefore not forgotten when a fresh one is written.
 * Invariants: a row is never deleted; it is closed once, except that what was abandoned can still be repaired and continued.
 */
import { type Driver, integerColumn, type Row, readInteger, readText, textColumn } from './driver.js';

export interface Damage {
  /**
   * "lost tail": entries from `seq` on are gone. "missing": the whole session is. "damaged": entry `seq` is not what
   * was written. "resurrected": a removed session is back. "orphan": records without a session. "anchor": what the
   * anchor cannot vouch for. "file": SQLite's own structure is broken, nothing can be written.
   */
  readonly kind: 'lost tail' | 'missing' | 'damaged' | 'resurrected' | 'orphan' | 'anchor' | 'file';
  readonly session?: string;
  /** The first entry that is lost or damaged. */
  readonly seq?: number;
  /** How many entries there were, and are. */
  readonly had?: number;
  readonly have?: number;
  /** When the last good record before it was committed. */
  readonly since?: number;
  readonly note: string;
}

/** Who decides, and why. */
export interface Attribution {
  readonly by: string;
  readonly reason?: string;
}

/**
 * What became of it. "continued": the loss was accepted, and the session goes on with what is left. "abandoned": it was accepted, but
 * what is left cannot be used. "removed": its session was removed.
 */
export type IncidentOutcome = 'continued' | 'abandoned' | 'removed';

/** Damage on record. */
export interface Incident extends Damage {
  readonly id: number;
  /** Milliseconds since the epoch. */
  readonly foundAt: number;
  readonly closed?: Attribution & { readonly as: IncidentOutcome; readonly at: number };
}

/** A session that was removed: what is left of it. */
export interface RemovedSession {
  readonly session: string;
  readonly entries: number;
  /** Hash of its last record; empty if that could not be read. */
  readonly head: string;
  readonly at: number;
  /** Empty if the library removed it without saying for whom. */
  readonly by: string;
  readonly reason?: string;
}

/** An incident with the numbers under which rows of its session may be. */
export interface IncidentRow {
  readonly incident: Incident;
  readonly sids: readonly number[];
}

/** How many closed incidents and removals are listed. */
const MAX_LISTED_ROWS = 100;

const INCIDENT_COLUMNS = [
  ...['id', 'found_at', 'closed_at'].map(integerColumn),
  ...['damage', 'sids', 'closed_as', 'closed_by', 'reason'].map(textColumn),
].join(', ');

const REMOVED_SESSION_COLUMNS = [
  ...['entries', 'removed_at'].map(integerColumn),
  ...['session', 'head', 'removed_by', 'reason'].map(textColumn),
].join(', ');

/** What makes two findings the same damage. A session's is known by where it begins, the store's by its description. */
export function damageKeyOf({ kind, session, seq, note }: Damage): string {
  return JSON.stringify(session === undefined ? [kind, note] : [kind, session, seq ?? 0]);
}

function parseIncidentRow(row: Row): IncidentRow {
  const damage = JSON.parse(readText(row.damage)) as Damage;
  const [as, reason] = [readText(row.closed_as), readText(row.reason)];
  const incident = { ...damage, id: readInteger(row.id), foundAt: readInteger(row.found_at) };
  const sids = JSON.parse(readText(row.sids)) as number[];
  if (as === '') return { incident, sids };
  const word = { by: readText(row.closed_by), ...(reason !== '' && { reason }) };
  return {
    incident: { ...incident, closed: { as: as as IncidentOutcome, at: readInteger(row.closed_at), ...word } },
    sids,
  };
}

function parseRemovedSession(row: Row): RemovedSession {
  const reason = readText(row.reason);
  return {
    session: readText(row.session),
    entries: readInteger(row.entries),
    head: readText(row.head),
    at: readInteger(row.removed_at),
    by: readText(row.removed_by),
    ...(reason !== '' && { reason }),
  };
}

const OUTSTANDING_CONDITION = "incidents.closed_as IN ('', 'abandoned')";

/** The rows. What writes must be called inside a transaction. All of it is rare, so no statement is kept. */
export class IncidentTable {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** What nobody has accepted, and what was accepted and abandoned. */
  listOutstanding(): readonly IncidentRow[] {
    return this.#select(`${OUTSTANDING_CONDITION} ORDER BY incidents.id`);
  }

  find(ids: readonly number[]): readonly IncidentRow[] {
    return ids.flatMap((id) => this.#select('incidents.id = ?', id));
  }

  /** What was closed last, the newest first. */
  listClosed(): readonly Incident[] {
    const rows = this.#select(
      `incidents.closed_as <> '' ORDER BY incidents.closed_at DESC, incidents.id DESC LIMIT ${MAX_LISTED_ROWS}`,
    );
    return rows.map(({ incident }) => incident);
  }

  /** The removals, the newest first. */
  listRemovedSessions(): readonly RemovedSession[] {
    const sql = `SELECT ${REMOVED_SESSION_COLUMNS} FROM tombstones ORDER BY tombstones.id DESC LIMIT ${MAX_LISTED_ROWS}`;
    return this.#driver.prepare(sql).all().map(parseRemovedSession);
  }

  /** The last removal of a session. */
  findRemovedSession(session: string): RemovedSession | undefined {
    const sql = `SELECT ${REMOVED_SESSION_COLUMNS} FROM tombstones WHERE tombstones.session = ? ORDER BY tombstones.id DESC LIMIT 1`;
    const [row] = this.#driver.prepare(sql).all(session);
    return row && parseRemovedSession(row);
  }

  add(damage: Damage, sids: readonly number[], foundAt: number): IncidentRow {
    const sql = `INSERT INTO incidents (id, damage, sids, found_at, closed_as, closed_at, closed_by, reason)
      VALUES (?, ?, ?, ?, '', 0, '', '')`;
    const id = this.#lastId() + 1;
    this.#driver.prepare(sql).run(id, JSON.stringify(damage), JSON.stringify(sids), foundAt);
    return { incident: { ...damage, id, foundAt }, sids };
  }

  close(ids: Iterable<number>, as: IncidentOutcome, { by, reason = '' }: Attribution, at: number): void {
    const sql = `UPDATE incidents SET closed_as = ?, closed_at = ?, closed_by = ?, reason = ? WHERE id = ? AND ${OUTSTANDING_CONDITION}`;
    for (const id of ids) this.#driver.prepare(sql).run(as, at, by, reason, id);
  }

  addRemovedSession({ session, entries, head, at, by, reason = '' }: RemovedSession): void {
    const sql =
      'INSERT INTO tombstones (session, entries, head, removed_at, removed_by, reason) VALUES (?, ?, ?, ?, ?, ?)';
    this.#driver.prepare(sql).run(session, entries, head, at, by, reason);
  }

  #select(where: string, ...params: readonly number[]): readonly IncidentRow[] {
    return this.#driver
      .prepare(`SELECT ${INCIDENT_COLUMNS} FROM incidents WHERE ${where}`)
      .all(...params)
      .map(parseIncidentRow);
  }

  #lastId(): number {
    const [row] = this.#driver
      .prepare(`SELECT ${integerColumn('id')} FROM incidents ORDER BY incidents.id DESC LIMIT 1`)
      .all();
    return Math.max(0, readInteger(row?.id));
  }
}
