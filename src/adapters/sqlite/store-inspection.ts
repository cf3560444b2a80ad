/**
 * What opening a store finds out about it: each session's head against its own checksum and against the anchor,
 * and, when the check is full, everything else (walk.ts). It reports and refuses; it repairs nothing.
 * Invariants: a session that lost something is refused until somebody accepts the loss, because going on from an
 * earlier entry could repeat effects; what the anchor knew of a refused session stays anchored.
 */
import { Fault } from '../../base/errors.js';
import { type AnchoredHead, type AnchorState, hashPrefixOf } from './anchor-file.js';
import { type Driver, integerColumn, readInteger } from './driver.js';
import { FullCheck, readFileFlaws } from './full-check.js';
import type { Damage, IncidentRow } from './incidents.js';
import { type LastRecord, MAX_SID, RecordTable } from './record-table.js';
import { parseSessionRow, SESSION_COLUMNS, type SessionHead, type SessionRow, sessionHeadOf } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

export type CheckLevel = 'heads' | 'full';

export interface CheckReport {
  readonly checked: CheckLevel;
  readonly damage: readonly Damage[];
}

/** A session that may not be used, and the sids under which its rows may be. */
export interface SessionRefusal {
  readonly fault: Fault;
  readonly sids: readonly number[];
}

export interface StoreHealth {
  readonly report: CheckReport;
  readonly refusals: Map<string, SessionRefusal>;
  /** Why nothing at all may be written, if so. */
  writeFault: Fault | undefined;
  /** Damage on record that nobody has accepted, and what was accepted and abandoned. */
  incidents: readonly IncidentRow[];
  /** What the anchor says from now on; its `commit` and `sid` are the highest ever used. */
  readonly anchorState: AnchorState;
}

/** A number over this was not counted up by commits: it is damage. */
const MAX_COMMIT_NUMBER = 2 ** 48;

const ADVICE_BY_DAMAGE_KIND: Partial<Record<Damage['kind'], (damage: Damage) => string>> = {
  'lost tail': ({ seq }) => `going on could repeat effects; open with accept: 'loss' to continue from entry ${seq}`,
  missing: () => `going on could repeat effects; open with accept: 'loss' to start it anew, or remove it`,
  resurrected: () => `remove it again, or open with accept: 'loss' to keep it`,
  damaged: () => 'restore the store from a backup, or remove the session',
};

/** The refusal of a session for its damage. */
export function refusalOf(damage: Damage, sids: readonly number[]): SessionRefusal {
  const { kind, session = '', seq = 0, note } = damage;
  const message = `Session "${session}" is refused from entry ${seq} on (${kind}): ${note}; ${ADVICE_BY_DAMAGE_KIND[kind]?.(damage) ?? ''}. See: rondo doctor`;
  return { fault: new Fault('STORE_DAMAGED', message, { ...damage }), sids };
}

/** True if a session with damage of this kind may not be used. */
export function isSessionRefused({ kind, session }: Damage): boolean {
  return session !== undefined && ADVICE_BY_DAMAGE_KIND[kind] !== undefined;
}

class StoreInspection {
  readonly damage: Damage[] = [];
  readonly refusals = new Map<string, SessionRefusal>();
  readonly #driver: Driver;
  readonly #path: string;
  readonly #records: RecordTable;
  readonly #fullCheck: FullCheck | undefined;
  readonly #anchorState: AnchorState;
  readonly #hasAnchor: boolean;
  readonly #acceptsLoss: boolean;
  readonly #newHeads = new Map<string, AnchoredHead>();
  readonly #seenSids = new Set<number>();
  /** The last records of the sessions that are looked at. */
  #lastRecords: ReadonlyMap<number, LastRecord> = new Map();
  #highestCommitNumber = 0;
  #highestSid = 0;

  constructor(
    driver: Driver,
    path: string,
    was: AnchorState | undefined,
    accept: boolean,
    walk: FullCheck | undefined,
  ) {
    this.#path = path;
    this.#driver = driver;
    this.#records = new RecordTable(driver);
    this.#hasAnchor = was !== undefined;
    this.#anchorState = was ?? { heads: new Map(), lastCommitNumber: 0, lastCommittedAt: 0, highestSid: 0, flaws: [] };
    this.#acceptsLoss = accept;
    this.#fullCheck = walk;
  }

  run(now: number): AnchorState {
    const statement = this.#driver.prepare(
      `SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT 500`,
    );
    const lost = this.#readUnindexedSids();
    const removed = this.#readUnanchoredRemovals();
    let after = 0;
    for (let before = -1; after !== before; ) {
      before = after;
      const page = statement.all(after).map(parseSessionRow);
      after = Math.max(after, ...page.map(({ owned }) => owned.sid));
      this.#lastRecords = this.#readLastRecords(before, after);
      for (const { owned, sound } of page) this.#inspectRow(owned, sound, lost.has(owned.sid), now);
    }
    for (const [name, was] of this.#anchorState.heads) {
      if (!this.#seenSids.has(was.sid) && !removed.has(was.sid)) this.#inspectMissing(name, was);
    }
    this.#inspectOrphans();
    this.#inspectAnchor();
    // A damaged number must not use up all that could still be given.
    const given = [
      this.#anchorState.highestSid,
      this.#records.highestSid(),
      this.#readAutoincrement(),
      this.#highestSid,
    ].filter((sid) => sid < MAX_SID);
    const commit = Math.max(this.#anchorState.lastCommitNumber, this.#highestCommitNumber);
    return {
      heads: this.#newHeads,
      lastCommitNumber: commit,
      lastCommittedAt: now,
      highestSid: Math.max(0, ...given),
      flaws: [],
    };
  }

  #inspectRow(owned: SessionRow, sound: boolean, lost: boolean, now: number): void {
    this.#seenSids.add(owned.sid);
    const anchored = this.#anchorState.heads.get(owned.name);
    const { head, flaw } = this.#readHead(owned, anchored);
    if (sound) {
      this.#highestSid = Math.max(this.#highestSid, owned.sid);
      this.#highestCommitNumber = Math.max(
        this.#highestCommitNumber,
        head.commitNumber < MAX_COMMIT_NUMBER ? head.commitNumber : owned.commitNumber,
      );
    }
    const damage = !sound
      ? this.#checksumDamage(owned)
      : lost
        ? this.#unindexedDamage(head)
        : (flaw ?? this.#anchorMismatchDamage(head, anchored));
    const broken = sound && !lost ? this.#fullCheck?.checkSession(head) : undefined;
    const found = broken === undefined ? damage : this.#chainBreakDamage(head, broken, damage);
    if (found !== undefined && this.#reportDamage(found, [owned.sid, ...(anchored ? [anchored.sid] : [])])) {
      const was = this.#anchorState.heads.get(found.session ?? '');
      if (was !== undefined) this.#newHeads.set(found.session ?? '', was);
      return;
    }
    const { sid, next, hash, commitNumber } = head;
    const at = anchored?.commitNumber === commitNumber ? anchored.committedAt : now;
    this.#newHeads.set(head.name, { sid, next, hashPrefix: hashPrefixOf(hash), commitNumber, committedAt: at });
  }

  /** None if one of them cannot be read: each is then read by itself. */
  #readLastRecords(after: number, last: number): ReadonlyMap<number, LastRecord> {
    try {
      return this.#records.readLastRecords(after, last);
    } catch {
      return new Map();
    }
  }

  /** Where a session ends, and what is wrong with its last record unless the anchor vouches for it. */
  #readHead(owned: SessionRow, was: AnchoredHead | undefined): { readonly head: SessionHead; readonly flaw?: Damage } {
    let head: SessionHead | undefined;
    const damaged = (seq: number, note: string): Damage => ({ kind: 'damaged', session: owned.name, seq, note });
    try {
      const tail = this.#lastRecords.get(owned.sid) ?? this.#records.readLastRecord(owned.sid);
      head = sessionHeadOf(owned, tail);
      if (tail === undefined || (was?.next === head.next && was.hashPrefix === hashPrefixOf(head.hash)))
        return { head };
      const flaw = this.#records.findLastRecordFlaw(owned.sid, tail);
      return flaw === undefined ? { head } : { head, flaw: damaged(tail.first, flaw) };
    } catch (error) {
      head ??= sessionHeadOf(owned, undefined);
      return { head, flaw: damaged(head.next, toReadFault(error, this.#path).message) };
    }
  }

  /** Reports a damage; true if its session may not be used. */
  #reportDamage(damage: Damage, sids: readonly number[]): boolean {
    this.damage.push(damage);
    if (this.#acceptsLoss && damage.kind !== 'damaged') return false;
    this.refusals.set(damage.session ?? '', refusalOf(damage, sids));
    return true;
  }

  #chainBreakDamage(
    head: SessionHead,
    { seq, since, note }: { seq: number; since?: number; note: string },
    also?: Damage,
  ): Damage {
    const had = Math.max(head.next, also?.had ?? 0);
    const damage: Damage = { kind: 'damaged', session: head.name, seq, had, note };
    return since === undefined ? damage : { ...damage, since };
  }

  #checksumDamage({ sid, name }: SessionRow): Damage {
    const known = [...this.#anchorState.heads].find(([, was]) => was.sid === sid);
    const note = 'the checksum of its row does not fit';
    const damage: Damage = { kind: 'damaged', session: known?.[0] ?? name, seq: 0, note };
    return known === undefined ? damage : { ...damage, had: known[1].next };
  }

  #unindexedDamage(head: SessionHead): Damage {
    const note = 'it cannot be found by its name any more';
    return { kind: 'damaged', session: head.name, seq: 0, had: head.next, note };
  }

  #anchorMismatchDamage(head: SessionHead, was: AnchoredHead | undefined): Damage | undefined {
    const session = head.name;
    if (!this.#hasAnchor) return undefined;
    if (was === undefined || was.sid !== head.sid) {
      // A commit that the anchor does not know yet: the process ended between COMMIT and the anchor's line.
      if (head.commitNumber > this.#anchorState.lastCommitNumber) return undefined;
      // With a line gone from the anchor itself, it does not know better than the database.
      if (this.#anchorState.flaws.length > 0) return undefined;
      const note = was ? 'an earlier session of its name is in its place' : 'it was removed before, and is back';
      return { kind: 'resurrected', session, seq: 0, have: head.next, note };
    }
    if (head.next < was.next) return this.#lostTailDamage(head, was);
    if (head.next > was.next || hashPrefixOf(head.hash) === was.hashPrefix) return undefined;
    const note = 'its last record is not the one that was anchored';
    return { kind: 'damaged', session, seq: Math.max(0, head.next - 1), had: was.next, have: head.next, note };
  }

  #lostTailDamage(head: SessionHead, was: AnchoredHead): Damage {
    const at = head.next === 0 ? undefined : this.#records.findAtOrBefore(head.sid, head.next - 1)?.at;
    const damage: Damage = {
      kind: 'lost tail',
      session: head.name,
      seq: head.next,
      had: was.next,
      have: head.next,
      note: `entries ${head.next} to ${was.next - 1}, written until ${new Date(was.committedAt).toISOString()}, are gone`,
    };
    return at === undefined ? damage : { ...damage, since: at };
  }

  #inspectMissing(session: string, was: AnchoredHead): void {
    // A session of this name with another sid was judged as a row.
    if (this.#newHeads.has(session) || this.refusals.has(session)) return;
    const note = `all of it, ${was.next} entries written until ${new Date(was.committedAt).toISOString()}, is gone`;
    const damage: Damage = { kind: 'missing', session, seq: 0, had: was.next, have: 0, note };
    if (this.#reportDamage(damage, [was.sid])) this.#newHeads.set(session, was);
  }

  #inspectOrphans(): void {
    for (const sid of this.#fullCheck?.findOrphanSids(this.#seenSids) ?? []) {
      const name = [...this.#anchorState.heads].find(([, was]) => was.sid === sid)?.[0];
      const damage: Damage = {
        kind: 'orphan',
        note: `there are records of session number ${sid}, but no such session`,
      };
      this.damage.push(name === undefined ? damage : { ...damage, session: name });
    }
  }

  #inspectAnchor(): void {
    const report = (note: string): void => void this.damage.push({ kind: 'anchor', note });
    const open = 'whether anything was lost since cannot be told';
    if (!this.#hasAnchor && this.#seenSids.size > 0) report(`the anchor file is missing: ${open}`);
    if (this.#anchorState.flaws.length > 0)
      report(`the anchor file is damaged (${this.#anchorState.flaws.join('; ')}): ${open}`);
    else if (this.#hasAnchor && this.#highestCommitNumber > this.#anchorState.lastCommitNumber + 1) {
      report(
        `the anchor file ends at commit ${this.#anchorState.lastCommitNumber}, the store at ${this.#highestCommitNumber}: ${open}`,
      );
    }
  }

  /** Sessions whose removal the anchor does not know yet: the process ended between COMMIT and the anchor's line. */
  #readUnanchoredRemovals(): ReadonlySet<number> {
    const rows = this.#driver
      .prepare(`SELECT ${integerColumn('sid')}, ${integerColumn('commit_no')} FROM removals`)
      .all();
    const late = rows.filter((row) => readInteger(row.commit_no) > this.#anchorState.lastCommitNumber);
    for (const row of late) this.#highestCommitNumber = Math.max(this.#highestCommitNumber, readInteger(row.commit_no));
    return new Set(late.map((row) => readInteger(row.sid)));
  }

  /** Rows that the index over the names does not find: claiming such a name would start it anew. */
  #readUnindexedSids(): ReadonlySet<number> {
    const rows = this.#driver
      .prepare(
        `SELECT sid FROM sessions AS s NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM sessions AS t
         INDEXED BY sqlite_autoindex_sessions_1 WHERE t.name = s.name AND +t.sid = s.sid)`,
      )
      .all();
    return new Set(rows.map((row) => readInteger(row.sid)));
  }

  #readAutoincrement(): number {
    const [row] = this.#driver
      .prepare(`SELECT ${integerColumn('seq')} FROM sqlite_sequence WHERE name = 'sessions'`)
      .all();
    return Math.max(0, readInteger(row?.seq));
  }
}

/** Checks an open store against its anchor. Throws what SQLite throws when the sessions cannot be read at all. */
export function inspectStore(
  driver: Driver,
  path: string,
  was: AnchorState | undefined,
  options: { readonly check: CheckLevel; readonly accept: boolean; readonly now: number },
): StoreHealth {
  const full = options.check === 'full';
  const flaws = full ? readFileFlaws(driver) : [];
  const inspection = new StoreInspection(
    driver,
    path,
    was,
    options.accept,
    full ? new FullCheck(driver, path) : undefined,
  );
  const fold = inspection.run(options.now);
  const { damage, refusals } = inspection;
  if (flaws.length > 0) damage.unshift({ kind: 'file', note: flaws.join('; ') });
  const message = `${path} has a broken structure and can only be read: ${flaws[0]}. Restore it from a backup, or copy its sessions to a new store.`;
  const unwritable = flaws.length === 0 ? undefined : new Fault('STORE_DAMAGED', message, { path });
  return {
    report: { checked: options.check, damage },
    refusals,
    writeFault: unwritable,
    incidents: [],
    anchorState: fold,
  };
}
