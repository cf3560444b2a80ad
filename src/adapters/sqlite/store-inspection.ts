/**
 * The check when a store is opened: each session's head (its row and last record) against its checksums and against the
 * anchor (anchor-file.ts) and, in a full check, everything else (full-check.ts). The inspection reports damage and
 * refuses sessions; it repairs nothing. Invariants: a session with a loss is refused until the loss is accepted,
 * because continuing from an earlier entry could repeat effects. The anchored head of a refused session stays anchored.
 */
import { Fault } from '../../base/errors.js';
import type { RecordHasher } from '../../journal/record.js';
import { type AnchoredHead, type AnchorState, hashPrefixOf } from './anchor-file.js';
import { type Driver, integerColumn, readInteger } from './driver.js';
import { FullCheck, readFileFlaws, readSchemaFlaws } from './full-check.js';
import { type Damage, type IncidentRow, IncidentTable } from './incidents.js';
import { type LastRecord, MAX_SID, RecordTable } from './record-table.js';
import { parseSessionRow, SESSION_COLUMNS, type SessionHead, type SessionRow, sessionHeadOf } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

/** What is checked when a store is opened. "heads": the end of every session. "full": all entries and blobs as well. */
export type CheckLevel = 'heads' | 'full';

/** The result of the check when a store was opened. */
export interface CheckReport {
  readonly checked: CheckLevel;
  /** Damage that was found, and earlier damage that was not accepted. Damage that was accepted earlier is omitted. */
  readonly damage: readonly Damage[];
}

/** Why a session may not be used. */
interface SessionRefusal {
  readonly fault: Fault;
  /** The sids under which the session may have rows. */
  readonly sids: readonly number[];
}

/** The state of an open store with respect to damage. */
export interface StoreHealth {
  readonly report: CheckReport;
  /** Sessions that may not be used, by name. */
  readonly refusals: Map<string, SessionRefusal>;
  /** Why the whole store is read-only; undefined if it is writable. */
  writeFault: Fault | undefined;
  /** Incidents that are open, or closed as abandoned: accepted, while the damage remains. */
  incidents: readonly IncidentRow[];
  /** The content of the new anchor. Its commit number and sid are the highest ever used. */
  readonly anchorState: AnchorState;
}

/** Commits never reach this number. A record with this or a higher number does not count. */
const MAX_COMMIT_NUMBER = 2 ** 48;

/** What to do about each kind of damage that refuses its session. Other kinds refuse no session. */
const ADVICE_BY_DAMAGE_KIND: Partial<Record<Damage['kind'], (damage: Damage) => string>> = {
  'lost tail': ({ seq }) => `continuing could repeat effects; open with accept: 'loss' to continue from entry ${seq}`,
  missing: () =>
    `continuing could repeat effects; open with accept: 'loss' to start it again from the beginning, or remove it`,
  resurrected: () => `remove it again, or open with accept: 'loss' to keep it`,
  damaged: () => 'restore the store from a backup, or remove the session',
};

/** Returns the refusal of a session with this damage. */
export function refusalOf(damage: Damage, sids: readonly number[]): SessionRefusal {
  const { kind, session = '', seq = 0, note } = damage;
  const message = `Session "${session}" is refused from entry ${seq} on (${kind}): ${note}; ${ADVICE_BY_DAMAGE_KIND[kind]?.(damage) ?? ''}. See: rondo doctor`;
  return { fault: new Fault('STORE_DAMAGED', message, { ...damage }), sids };
}

/** True if this damage belongs to a session and refuses it. */
export function isSessionRefused({ kind, session }: Damage): boolean {
  return session !== undefined && ADVICE_BY_DAMAGE_KIND[kind] !== undefined;
}

/** Options of `inspectStore`. */
interface InspectOptions {
  readonly check: CheckLevel;
  /** True if losses are accepted. */
  readonly accept: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly hasher: RecordHasher;
}

/** One inspection of an open store. */
class StoreInspection {
  readonly damage: Damage[] = [];
  readonly refusals = new Map<string, SessionRefusal>();
  private readonly driver: Driver;
  private readonly path: string;
  private readonly records: RecordTable;
  private readonly fullCheck: FullCheck | undefined;
  private readonly anchorState: AnchorState;
  private readonly hasAnchor: boolean;
  private readonly acceptsLoss: boolean;
  private readonly newHeads = new Map<string, AnchoredHead>();
  private readonly seenSids = new Set<number>();
  /** The last records of the current page of sessions, by sid. */
  private lastRecords: ReadonlyMap<number, LastRecord> = new Map();
  private highestCommitNumber = 0;
  private highestSid = 0;

  constructor(
    driver: Driver,
    path: string,
    anchorState: AnchorState | undefined,
    { accept, hasher }: InspectOptions,
    fullCheck: FullCheck | undefined,
  ) {
    this.path = path;
    this.driver = driver;
    this.records = new RecordTable(driver, hasher);
    this.hasAnchor = anchorState !== undefined;
    this.anchorState = anchorState ?? {
      heads: new Map(),
      lastCommitNumber: 0,
      lastCommittedAt: 0,
      highestSid: 0,
      flaws: [],
    };
    this.acceptsLoss = accept;
    this.fullCheck = fullCheck;
  }

  /** Inspects all sessions and the anchor, and returns the content of the new anchor. */
  run(now: number): AnchorState {
    const statement = this.driver.prepare(
      `SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT 500`,
    );
    const unindexedSids = this.readUnindexedSids();
    const removedSids = this.readUnanchoredRemovals();
    let after = 0;
    for (let before = -1; after !== before; ) {
      before = after;
      const page = statement.all(after).map((row) => parseSessionRow(this.records.hasher, row));
      after = Math.max(after, ...page.map(({ sessionRow }) => sessionRow.sid));
      this.lastRecords = this.readLastRecords(before, after);
      for (const { sessionRow, isIntact } of page)
        this.inspectRow(sessionRow, isIntact, unindexedSids.has(sessionRow.sid), now);
    }
    for (const [name, anchored] of this.anchorState.heads) {
      if (!this.seenSids.has(anchored.sid) && !removedSids.has(anchored.sid)) this.inspectMissing(name, anchored);
    }
    this.inspectOrphans();
    this.inspectAnchor();
    // A damaged sid must not exhaust the range of sids.
    const usedSids = [
      this.anchorState.highestSid,
      this.records.highestSid(),
      this.readAutoincrement(),
      this.highestSid,
    ].filter((sid) => sid < MAX_SID);
    const commit = Math.max(this.anchorState.lastCommitNumber, this.highestCommitNumber);
    return {
      heads: this.newHeads,
      lastCommitNumber: commit,
      lastCommittedAt: now,
      highestSid: Math.max(0, ...usedSids),
      flaws: [],
    };
  }

  /** Reports the damage of one session, and adds its head, or the anchored one if it is refused, to the new anchor. */
  private inspectRow(row: SessionRow, isIntact: boolean, isUnindexed: boolean, now: number): void {
    this.seenSids.add(row.sid);
    const anchored = this.anchorState.heads.get(row.name);
    const { head, flaw } = this.readHead(row, anchored);
    if (isIntact) {
      this.highestSid = Math.max(this.highestSid, row.sid);
      this.highestCommitNumber = Math.max(
        this.highestCommitNumber,
        head.commitNumber < MAX_COMMIT_NUMBER ? head.commitNumber : row.commitNumber,
      );
    }
    const headDamage = !isIntact
      ? this.checksumDamage(row)
      : isUnindexed
        ? this.unindexedDamage(head)
        : (flaw ?? this.anchorMismatchDamage(head, anchored));
    const chainBreak = isIntact && !isUnindexed ? this.fullCheck?.checkSession(head) : undefined;
    const damage = chainBreak === undefined ? headDamage : this.chainBreakDamage(head, chainBreak, headDamage);
    if (damage !== undefined && this.reportDamage(damage, [row.sid, ...(anchored ? [anchored.sid] : [])])) {
      const oldHead = this.anchorState.heads.get(damage.session ?? '');
      if (oldHead !== undefined) this.newHeads.set(damage.session ?? '', oldHead);
      return;
    }
    const { sid, next, hash, commitNumber } = head;
    const at = anchored?.commitNumber === commitNumber ? anchored.committedAt : now;
    this.newHeads.set(head.name, { sid, next, hashPrefix: hashPrefixOf(hash), commitNumber, committedAt: at });
  }

  /** Returns the last records of a page of sessions; empty if one is unreadable, and then each is read alone. */
  private readLastRecords(after: number, last: number): ReadonlyMap<number, LastRecord> {
    try {
      return this.records.readLastRecords(after, last);
    } catch {
      return new Map();
    }
  }

  /**
   * Returns the head of a session, and the damage of its last record if there is any. A record that matches the anchor
   * is not verified. If the last record cannot be found, the head is that of an empty session.
   */
  private readHead(
    row: SessionRow,
    anchored: AnchoredHead | undefined,
  ): { readonly head: SessionHead; readonly flaw?: Damage } {
    let head: SessionHead | undefined;
    const damaged = (seq: number, note: string): Damage => ({ kind: 'damaged', session: row.name, seq, note });
    try {
      const lastRecord = this.lastRecords.get(row.sid) ?? this.records.readLastRecord(row.sid);
      head = sessionHeadOf(row, lastRecord);
      const isAnchored = anchored?.next === head.next && anchored.hashPrefix === hashPrefixOf(head.hash);
      if (lastRecord === undefined || isAnchored) return { head };
      const flaw = this.records.findLastRecordFlaw(row.sid, lastRecord);
      return flaw === undefined ? { head } : { head, flaw: damaged(lastRecord.first, flaw) };
    } catch (error) {
      head ??= sessionHeadOf(row, undefined);
      return { head, flaw: damaged(head.next, toReadFault(error, this.path).message) };
    }
  }

  /** Reports the damage of a session. Refuses the session and returns true unless the damage is an accepted loss. */
  private reportDamage(damage: Damage, sids: readonly number[]): boolean {
    this.damage.push(damage);
    if (this.acceptsLoss && damage.kind !== 'damaged') return false;
    this.refusals.set(damage.session ?? '', refusalOf(damage, sids));
    return true;
  }

  private chainBreakDamage(
    head: SessionHead,
    { seq, since, note }: { seq: number; since?: number; note: string },
    headDamage?: Damage,
  ): Damage {
    const had = Math.max(head.next, headDamage?.had ?? 0);
    const damage: Damage = { kind: 'damaged', session: head.name, seq, had, note };
    return since === undefined ? damage : { ...damage, since };
  }

  private checksumDamage({ sid, name }: SessionRow): Damage {
    const anchored = [...this.anchorState.heads].find(([, head]) => head.sid === sid);
    const note = 'the checksum of its row does not match';
    const damage: Damage = { kind: 'damaged', session: anchored?.[0] ?? name, seq: 0, note };
    return anchored === undefined ? damage : { ...damage, had: anchored[1].next };
  }

  private unindexedDamage(head: SessionHead): Damage {
    const note = 'it can no longer be found by its name';
    return { kind: 'damaged', session: head.name, seq: 0, had: head.next, note };
  }

  /** Returns the damage that the anchor shows; undefined if the head matches the anchor or is newer. */
  private anchorMismatchDamage(head: SessionHead, anchored: AnchoredHead | undefined): Damage | undefined {
    const session = head.name;
    if (!this.hasAnchor) return undefined;
    if (anchored === undefined || anchored.sid !== head.sid) {
      // The anchor lacks this commit: the process ended between COMMIT and the write to the anchor.
      if (head.commitNumber > this.anchorState.lastCommitNumber) return undefined;
      // An anchor that lost a line is no evidence against the database.
      if (this.anchorState.flaws.length > 0) return undefined;
      const note = anchored ? 'an earlier session of its name is in its place' : 'it was removed before, and is back';
      return { kind: 'resurrected', session, seq: 0, have: head.next, note };
    }
    if (head.next < anchored.next) return this.lostTailDamage(head, anchored);
    if (head.next > anchored.next || hashPrefixOf(head.hash) === anchored.hashPrefix) return undefined;
    const note = 'its last record is not the one that was anchored';
    return { kind: 'damaged', session, seq: Math.max(0, head.next - 1), had: anchored.next, have: head.next, note };
  }

  private lostTailDamage(head: SessionHead, anchored: AnchoredHead): Damage {
    const at = head.next === 0 ? undefined : this.records.findAtOrBefore(head.sid, head.next - 1)?.at;
    const damage: Damage = {
      kind: 'lost tail',
      session: head.name,
      seq: head.next,
      had: anchored.next,
      have: head.next,
      note: `entries ${head.next} to ${anchored.next - 1}, written until ${new Date(anchored.committedAt).toISOString()}, are gone`,
    };
    return at === undefined ? damage : { ...damage, since: at };
  }

  private inspectMissing(session: string, anchored: AnchoredHead): void {
    // A session of this name with another sid was already inspected.
    if (this.newHeads.has(session) || this.refusals.has(session)) return;
    const note = `all of it, ${anchored.next} entries written until ${new Date(anchored.committedAt).toISOString()}, is gone`;
    const damage: Damage = { kind: 'missing', session, seq: 0, had: anchored.next, have: 0, note };
    if (this.reportDamage(damage, [anchored.sid])) this.newHeads.set(session, anchored);
  }

  private inspectOrphans(): void {
    for (const sid of this.fullCheck?.findOrphanSids(this.seenSids) ?? []) {
      const name = [...this.anchorState.heads].find(([, head]) => head.sid === sid)?.[0];
      const damage: Damage = {
        kind: 'orphan',
        note: `there are records of session number ${sid}, but no such session`,
      };
      this.damage.push(name === undefined ? damage : { ...damage, session: name });
    }
  }

  private inspectAnchor(): void {
    const report = (note: string): void => void this.damage.push({ kind: 'anchor', note });
    const consequence = 'whether anything was lost since cannot be told';
    if (!this.hasAnchor && this.seenSids.size > 0) report(`the anchor file is missing: ${consequence}`);
    if (this.anchorState.flaws.length > 0)
      report(`the anchor file is damaged (${this.anchorState.flaws.join('; ')}): ${consequence}`);
    else if (this.hasAnchor && this.highestCommitNumber > this.anchorState.lastCommitNumber + 1) {
      report(
        `the anchor file ends at commit ${this.anchorState.lastCommitNumber}, the store at ${this.highestCommitNumber}: ${consequence}`,
      );
    }
  }

  /**
   * Returns the sids of removals that the anchor lacks, because the process ended between COMMIT and the write to the
   * anchor. Counts their commit numbers as used.
   */
  private readUnanchoredRemovals(): ReadonlySet<number> {
    const rows = this.driver
      .prepare(`SELECT ${integerColumn('sid')}, ${integerColumn('commit_no')} FROM removals`)
      .all();
    const unanchored = rows.filter((row) => readInteger(row.commit_no) > this.anchorState.lastCommitNumber);
    for (const row of unanchored)
      this.highestCommitNumber = Math.max(this.highestCommitNumber, readInteger(row.commit_no));
    return new Set(unanchored.map((row) => readInteger(row.sid)));
  }

  /**
   * Returns the sids of rows that the index on names does not contain. A claim of such a name would create a second
   * session.
   */
  private readUnindexedSids(): ReadonlySet<number> {
    const rows = this.driver
      .prepare(
        `SELECT sid FROM sessions AS s NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM sessions AS t
         INDEXED BY sqlite_autoindex_sessions_1 WHERE t.name = s.name AND +t.sid = s.sid)`,
      )
      .all();
    return new Set(rows.map((row) => readInteger(row.sid)));
  }

  /** Returns the highest sid that SQLite has recorded for the table; 0 if there is none. */
  private readAutoincrement(): number {
    const [row] = this.driver
      .prepare(`SELECT ${integerColumn('seq')} FROM sqlite_sequence WHERE name = 'sessions'`)
      .all();
    return Math.max(0, readInteger(row?.seq));
  }
}

/**
 * Checks an open store against its anchor. Throws the error of SQLite if the sessions, their names, the removals or the
 * highest session number cannot be read.
 */
export function inspectStore(
  driver: Driver,
  path: string,
  anchorState: AnchorState | undefined,
  options: InspectOptions,
): StoreHealth {
  const isFull = options.check === 'full';
  const flaws = isFull ? readFileFlaws(driver) : readSchemaFlaws(driver);
  const inspection = new StoreInspection(
    driver,
    path,
    anchorState,
    options,
    isFull ? new FullCheck(driver, path, options.hasher) : undefined,
  );
  const newAnchorState = inspection.run(options.now);
  const { damage, refusals } = inspection;
  if (isFull) damage.push(...new IncidentTable(driver, options.hasher).findForgedRemovals());
  if (flaws.length > 0) damage.unshift({ kind: 'file', note: flaws.join('; ') });
  const message = `${path} has a broken structure and can only be read: ${flaws[0]}. Restore it from a backup, or copy its sessions to a new store.`;
  const writeFault = flaws.length === 0 ? undefined : new Fault('STORE_DAMAGED', message, { path });
  return {
    report: { checked: options.check, damage },
    refusals,
    writeFault,
    incidents: [],
    anchorState: newAnchorState,
  };
}
