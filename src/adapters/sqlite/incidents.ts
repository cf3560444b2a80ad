/**
 * The log of damage and of removed sessions in the database. An incident (logged damage) stays open until it is
 * accepted or its session is removed, and then records who did that, when and why. A missing anchor is therefore not
 * forgotten when a new anchor is written. Invariants: a row is never deleted. An incident is closed once, except that
 * an abandoned one can be closed again, after its session was repaired or removed.
 */
import type { RecordHasher } from '../../journal/record.js';
import { type Driver, integerColumn, type Row, readInteger, readText, textColumn } from './driver.js';

/** Damage of a store or of one session. */
export interface Damage {
  /**
   * "lost tail": the entries from `seq` on are missing. "missing": the whole session is. "damaged": entry `seq` is not
   * what was written. "resurrected": a removed session is present again. "orphan": there are records without a session.
   * "anchor": the anchor is missing or incomplete, so a loss could go undetected. "file": the structure of the file is
   * broken, so it is read-only. "removal": a row of the log of removed sessions is not what was written.
   */
  readonly kind: 'lost tail' | 'missing' | 'damaged' | 'resurrected' | 'orphan' | 'anchor' | 'file' | 'removal';
  /** The damaged session; absent if the damage concerns the whole store. */
  readonly session?: string;
  /** The first entry that is lost or damaged. */
  readonly seq?: number;
  /** Number of entries that the session had. */
  readonly had?: number;
  /** Number of entries that the session still has. */
  readonly have?: number;
  /** When the last intact record before the damage was committed, in milliseconds since the epoch. */
  readonly since?: number;
  /** A description of the damage. */
  readonly note: string;
}

/** Who performs an operation on a store, and why. */
export interface Attribution {
  readonly by: string;
  readonly reason?: string;
}

/**
 * How an incident was closed. "continued": the loss was accepted, and the session continues with its remaining entries.
 * "abandoned": the damage was accepted, but remains; a damaged session stays unusable. "removed": the session was
 * removed.
 */
export type IncidentOutcome = 'continued' | 'abandoned' | 'removed';

/** Logged damage. */
export interface Incident extends Damage {
  readonly id: number;
  /** When the damage was found, in milliseconds since the epoch. */
  readonly foundAt: number;
  /** Who closed the incident, how and when; absent while it is open. */
  readonly closed?: Attribution & { readonly as: IncidentOutcome; readonly at: number };
}

/** The log entry of a removed session. */
export interface RemovedSession {
  readonly session: string;
  /** Number of entries that the session had. */
  readonly entries: number;
  /** Hash of the last record; empty if it was unreadable. */
  readonly head: string;
  /** When the session was removed, in milliseconds since the epoch. */
  readonly at: number;
  /** Who removed the session; empty if a program did so through the journal. */
  readonly by: string;
  readonly reason?: string;
}

/** How many removals were logged, and the end of the chain of their checksums, which depends on the key of the store. */
interface RemovalChain {
  readonly count: number;
  readonly end: string;
}

/** An incident with the sids under which its session may have rows. */
export interface IncidentRow {
  readonly incident: Incident;
  readonly sids: readonly number[];
}

/** Maximum number of listed closed incidents and of listed removals. */
const MAX_LISTED_ROWS = 100;

const INCIDENT_COLUMNS = [
  ...['id', 'found_at', 'closed_at'].map(integerColumn),
  ...['damage', 'sids', 'closed_as', 'closed_by', 'reason'].map(textColumn),
].join(', ');

const REMOVED_SESSION_COLUMNS = [
  ...['entries', 'removed_at'].map(integerColumn),
  ...['session', 'head', 'removed_by', 'reason'].map(textColumn),
].join(', ');

/**
 * Returns a key that is equal for findings of the same damage: kind, session and entry, or the note for damage of the
 * store.
 */
export function damageKeyOf({ kind, session, seq, note }: Damage): string {
  return JSON.stringify(session === undefined ? [kind, note] : [kind, session, seq ?? 0]);
}

function parseIncidentRow(row: Row): IncidentRow {
  const damage = JSON.parse(readText(row.damage)) as Damage;
  const [as, reason] = [readText(row.closed_as), readText(row.reason)];
  const incident = { ...damage, id: readInteger(row.id), foundAt: readInteger(row.found_at) };
  const sids = JSON.parse(readText(row.sids)) as number[];
  if (as === '') return { incident, sids };
  const attribution = { by: readText(row.closed_by), ...(reason !== '' && { reason }) };
  return {
    incident: { ...incident, closed: { as: as as IncidentOutcome, at: readInteger(row.closed_at), ...attribution } },
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

/**
 * Reads and writes incidents and removals. Writes must be called inside a transaction. Calls are rare, so statements
 * are not cached.
 */
export class IncidentTable {
  private readonly driver: Driver;
  private readonly hasher: RecordHasher;

  constructor(driver: Driver, hasher: RecordHasher) {
    this.driver = driver;
    this.hasher = hasher;
  }

  /** Returns the incidents that are open or abandoned. */
  listOutstanding(): readonly IncidentRow[] {
    return this.select(`${OUTSTANDING_CONDITION} ORDER BY incidents.id`);
  }

  /** Returns the incidents with these ids. */
  find(ids: readonly number[]): readonly IncidentRow[] {
    return ids.flatMap((id) => this.select('incidents.id = ?', id));
  }

  /** Returns the most recently closed incidents, newest first. */
  listClosed(): readonly Incident[] {
    const rows = this.select(
      `incidents.closed_as <> '' ORDER BY incidents.closed_at DESC, incidents.id DESC LIMIT ${MAX_LISTED_ROWS}`,
    );
    return rows.map(({ incident }) => incident);
  }

  /** Returns the most recent removals, newest first. */
  listRemovedSessions(): readonly RemovedSession[] {
    const sql = `SELECT ${REMOVED_SESSION_COLUMNS} FROM tombstones ORDER BY tombstones.id DESC LIMIT ${MAX_LISTED_ROWS}`;
    return this.driver.prepare(sql).all().map(parseRemovedSession);
  }

  /** Returns the last removal of a session; undefined if it was never removed. */
  findRemovedSession(session: string): RemovedSession | undefined {
    const sql = `SELECT ${REMOVED_SESSION_COLUMNS} FROM tombstones WHERE tombstones.session = ? ORDER BY tombstones.id DESC LIMIT 1`;
    const [row] = this.driver.prepare(sql).all(session);
    return row && parseRemovedSession(row);
  }

  /** Logs damage as an open incident and returns it. */
  add(damage: Damage, sids: readonly number[], foundAt: number): IncidentRow {
    const sql = `INSERT INTO incidents (id, damage, sids, found_at, closed_as, closed_at, closed_by, reason)
      VALUES (?, ?, ?, ?, '', 0, '', '')`;
    const id = this.lastId() + 1;
    this.driver.prepare(sql).run(id, JSON.stringify(damage), JSON.stringify(sids), foundAt);
    return { incident: { ...damage, id, foundAt }, sids };
  }

  /** Closes those of these incidents that are open or abandoned. `at` is in milliseconds since the epoch. */
  close(ids: Iterable<number>, as: IncidentOutcome, { by, reason = '' }: Attribution, at: number): void {
    const sql = `UPDATE incidents SET closed_as = ?, closed_at = ?, closed_by = ?, reason = ? WHERE id = ? AND ${OUTSTANDING_CONDITION}`;
    for (const id of ids) this.driver.prepare(sql).run(as, at, by, reason, id);
  }

  /** Logs the removal of a session. */
  addRemovedSession({ session, entries, head, at, by, reason = '' }: RemovedSession): void {
    const sql =
      'INSERT INTO tombstones (session, entries, head, removed_at, removed_by, reason) VALUES (?, ?, ?, ?, ?, ?)';
    this.driver.prepare(sql).run(session, entries, head, at, by, reason);
    const [row] = this.removalRows('ORDER BY tombstones.id DESC LIMIT 1');
    if (row === undefined) return;
    this.signRemoval(row);
    const chain = this.readRemovalChain();
    if (chain !== undefined) this.writeRemovalChain(this.nextInChain(chain, this.checksumOf(row)));
  }

  /** Writes the checksums of all removals: those that an earlier version logged have none. */
  signRemovals(): void {
    for (const row of this.removalRows('')) this.signRemoval(row);
  }

  /** Begins the chain of the removals with those that are logged. */
  chainRemovals(): void {
    this.writeRemovalChain(this.chainOf(this.removalRows('ORDER BY tombstones.id')));
  }

  /** Returns the damage of the log of removals: rows that were added, changed or deleted. */
  findForgedRemovals(): readonly Damage[] {
    const rows = this.removalRows('ORDER BY tombstones.id');
    // guard: forged-removal-noticed
    const forged = rows.filter((row) => readText(row.checksum) !== this.checksumOf(row));
    const damage = forged.map((row): Damage => {
      const note = `the removal ${readInteger(row.id)} in its log, of session "${readText(row.session)}", is not what was written`;
      return { kind: 'removal', note };
    });
    const chain = this.readRemovalChain();
    if (chain === undefined) return damage;
    const deleted = chain.count - rows.length;
    const isBroken = deleted > 0 || (forged.length === 0 && this.chainOf(rows).end !== chain.end);
    const note = deleted > 0 ? `${deleted} of its rows were deleted` : 'its end is not what was written';
    // guard: deleted-removal-noticed
    return isBroken ? [...damage, { kind: 'removal', note: `the log of removed sessions: ${note}` }] : damage;
  }

  private chainOf(rows: readonly Row[]): RemovalChain {
    let chain = this.nextInChain({ count: -1, end: '' }, '');
    for (const row of rows) chain = this.nextInChain(chain, readText(row.checksum));
    return chain;
  }

  private nextInChain({ count, end }: RemovalChain, checksum: string): RemovalChain {
    const text = JSON.stringify(['chain', count + 1, end, checksum]);
    return { count: count + 1, end: this.hasher.checksumOf('removal', text, () => '') };
  }

  /** Returns where the chain of the removals ends; undefined if the store has no key. */
  private readRemovalChain(): RemovalChain | undefined {
    try {
      const [row] = this.driver.prepare(`SELECT ${textColumn('removals')} FROM protection`).all();
      const [count = '', end = ''] = readText(row?.removals).split(' ');
      return row === undefined ? undefined : { count: Number(count), end };
    } catch {
      return undefined;
    }
  }

  private writeRemovalChain({ count, end }: RemovalChain): void {
    this.driver.prepare('UPDATE protection SET removals = ? WHERE id = 1').run(`${count} ${end}`);
  }

  private removalRows(rest: string): readonly Row[] {
    const columns = `${integerColumn('id')}, ${REMOVED_SESSION_COLUMNS}, ${textColumn('checksum')}`;
    return this.driver.prepare(`SELECT ${columns} FROM tombstones ${rest}`).all();
  }

  private signRemoval(row: Row): void {
    const sql = 'UPDATE tombstones SET checksum = ? WHERE id = ?';
    this.driver.prepare(sql).run(this.checksumOf(row), readInteger(row.id));
  }

  private checksumOf(row: Row): string {
    return this.hasher.checksumOf('removal', JSON.stringify([readInteger(row.id), parseRemovedSession(row)]), () => '');
  }

  private select(where: string, ...params: readonly number[]): readonly IncidentRow[] {
    return this.driver
      .prepare(`SELECT ${INCIDENT_COLUMNS} FROM incidents WHERE ${where}`)
      .all(...params)
      .map(parseIncidentRow);
  }

  private lastId(): number {
    const [row] = this.driver
      .prepare(`SELECT ${integerColumn('id')} FROM incidents ORDER BY incidents.id DESC LIMIT 1`)
      .all();
    return Math.max(0, readInteger(row?.id));
  }
}
