/**
 * What opening a store finds out about it: each session's head against its own checksum and against the anchor,
 * and, when the check is full, everything else (walk.ts). It reports and refuses; it repairs nothing.
 * Invariants: a session that lost something is refused until somebody accepts the loss, because going on from an
 * earlier entry could repeat effects; what the anchor knew of a refused session stays anchored.
 */
import { Fault } from '../../base/errors.js';
import { type Anchored, type Fold, shortHash } from './anchor.js';
import { type Driver, whole, wholeOf } from './driver.js';
import { readFault } from './failure.js';
import { type Head, headOf, type Owned, ownedColumns, ownedOf } from './heads.js';
import type { Damage, Recorded } from './incidents.js';
import { lastSid, Records, type Tail } from './records.js';
import { fileFlaws, Walk } from './walk.js';

export type Check = 'heads' | 'full';

export interface Report {
  readonly checked: Check;
  readonly damage: readonly Damage[];
}

/** A session that may not be used, and the sids under which its rows may be. */
export interface Refusal {
  readonly fault: Fault;
  readonly sids: readonly number[];
}

export interface Findings {
  readonly report: Report;
  readonly refusals: Map<string, Refusal>;
  /** Why nothing at all may be written, if so. */
  unwritable: Fault | undefined;
  /** Damage on record that nobody has accepted, and what was accepted and abandoned. */
  record: readonly Recorded[];
  /** What the anchor says from now on; its `commit` and `sid` are the highest ever used. */
  readonly fold: Fold;
}

/** A number over this was not counted up by commits: it is damage. */
const lastCommit = 2 ** 48;

const way: Partial<Record<Damage['kind'], (damage: Damage) => string>> = {
  'lost tail': ({ seq }) => `going on could repeat effects; open with accept: 'loss' to continue from entry ${seq}`,
  missing: () => `going on could repeat effects; open with accept: 'loss' to start it anew, or remove it`,
  resurrected: () => `remove it again, or open with accept: 'loss' to keep it`,
  damaged: () => 'restore the store from a backup, or remove the session',
};

/** The refusal of a session for its damage. */
export function refusalOf(damage: Damage, sids: readonly number[]): Refusal {
  const { kind, session = '', seq = 0, note } = damage;
  const message = `Session "${session}" is refused from entry ${seq} on (${kind}): ${note}; ${way[kind]?.(damage) ?? ''}. See: rondo doctor`;
  return { fault: new Fault('STORE_DAMAGED', message, { ...damage }), sids };
}

/** True if a session with damage of this kind may not be used. */
export function isRefused({ kind, session }: Damage): boolean {
  return session !== undefined && way[kind] !== undefined;
}

class Inspection {
  readonly damage: Damage[] = [];
  readonly refusals = new Map<string, Refusal>();
  readonly #driver: Driver;
  readonly #path: string;
  readonly #records: Records;
  readonly #walk: Walk | undefined;
  readonly #was: Fold;
  readonly #known: boolean;
  readonly #accept: boolean;
  readonly #heads = new Map<string, Anchored>();
  readonly #sids = new Set<number>();
  /** The last records of the sessions that are looked at. */
  #tails: ReadonlyMap<number, Tail> = new Map();
  #commit = 0;
  #sid = 0;

  constructor(driver: Driver, path: string, was: Fold | undefined, accept: boolean, walk: Walk | undefined) {
    this.#path = path;
    this.#driver = driver;
    this.#records = new Records(driver);
    this.#known = was !== undefined;
    this.#was = was ?? { heads: new Map(), commit: 0, at: 0, sid: 0, flaws: [] };
    this.#accept = accept;
    this.#walk = walk;
  }

  run(now: number): Fold {
    const statement = this.#driver.prepare(
      `SELECT ${ownedColumns} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT 500`,
    );
    const lost = this.#unindexed();
    const removed = this.#removed();
    let after = 0;
    for (let before = -1; after !== before; ) {
      before = after;
      const page = statement.all(after).map(ownedOf);
      after = Math.max(after, ...page.map(({ owned }) => owned.sid));
      this.#tails = this.#tailsOf(before, after);
      for (const { owned, sound } of page) this.#row(owned, sound, lost.has(owned.sid), now);
    }
    for (const [name, was] of this.#was.heads) {
      if (!this.#sids.has(was.sid) && !removed.has(was.sid)) this.#missing(name, was);
    }
    this.#orphans();
    this.#anchor();
    // A damaged number must not use up all that could still be given.
    const given = [this.#was.sid, this.#records.lastSid(), this.#sequence(), this.#sid].filter((sid) => sid < lastSid);
    const commit = Math.max(this.#was.commit, this.#commit);
    return { heads: this.#heads, commit, at: now, sid: Math.max(0, ...given), flaws: [] };
  }

  #row(owned: Owned, sound: boolean, lost: boolean, now: number): void {
    this.#sids.add(owned.sid);
    const anchored = this.#was.heads.get(owned.name);
    const { head, flaw } = this.#read(owned, anchored);
    if (sound) {
      this.#sid = Math.max(this.#sid, owned.sid);
      this.#commit = Math.max(this.#commit, head.commit < lastCommit ? head.commit : owned.commit);
    }
    const damage = !sound
      ? this.#unsound(owned)
      : lost
        ? this.#nameless(head)
        : (flaw ?? this.#headDamage(head, anchored));
    const broken = sound && !lost ? this.#walk?.session(head) : undefined;
    const found = broken === undefined ? damage : this.#breakOf(head, broken, damage);
    if (found !== undefined && this.#refuse(found, [owned.sid, ...(anchored ? [anchored.sid] : [])])) {
      const was = this.#was.heads.get(found.session ?? '');
      if (was !== undefined) this.#heads.set(found.session ?? '', was);
      return;
    }
    const { sid, next, hash, commit } = head;
    const at = anchored?.commit === commit ? anchored.at : now;
    this.#heads.set(head.name, { sid, next, head: shortHash(hash), commit, at });
  }

  /** None if one of them cannot be read: each is then read by itself. */
  #tailsOf(after: number, last: number): ReadonlyMap<number, Tail> {
    try {
      return this.#records.tails(after, last);
    } catch {
      return new Map();
    }
  }

  /** Where a session ends, and what is wrong with its last record unless the anchor vouches for it. */
  #read(owned: Owned, was: Anchored | undefined): { readonly head: Head; readonly flaw?: Damage } {
    let head: Head | undefined;
    const damaged = (seq: number, note: string): Damage => ({ kind: 'damaged', session: owned.name, seq, note });
    try {
      const tail = this.#tails.get(owned.sid) ?? this.#records.tail(owned.sid);
      head = headOf(owned, tail);
      if (tail === undefined || (was?.next === head.next && was.head === shortHash(head.hash))) return { head };
      const flaw = this.#records.flawOf(owned.sid, tail);
      return flaw === undefined ? { head } : { head, flaw: damaged(tail.first, flaw) };
    } catch (error) {
      head ??= headOf(owned, undefined);
      return { head, flaw: damaged(head.next, readFault(error, this.#path).message) };
    }
  }

  /** Reports a damage; true if its session may not be used. */
  #refuse(damage: Damage, sids: readonly number[]): boolean {
    this.damage.push(damage);
    if (this.#accept && damage.kind !== 'damaged') return false;
    this.refusals.set(damage.session ?? '', refusalOf(damage, sids));
    return true;
  }

  #breakOf(head: Head, { seq, since, note }: { seq: number; since?: number; note: string }, also?: Damage): Damage {
    const had = Math.max(head.next, also?.had ?? 0);
    const damage: Damage = { kind: 'damaged', session: head.name, seq, had, note };
    return since === undefined ? damage : { ...damage, since };
  }

  #unsound({ sid, name }: Owned): Damage {
    const known = [...this.#was.heads].find(([, was]) => was.sid === sid);
    const note = 'the checksum of its row does not fit';
    const damage: Damage = { kind: 'damaged', session: known?.[0] ?? name, seq: 0, note };
    return known === undefined ? damage : { ...damage, had: known[1].next };
  }

  #nameless(head: Head): Damage {
    const note = 'it cannot be found by its name any more';
    return { kind: 'damaged', session: head.name, seq: 0, had: head.next, note };
  }

  #headDamage(head: Head, was: Anchored | undefined): Damage | undefined {
    const session = head.name;
    if (!this.#known) return undefined;
    if (was === undefined || was.sid !== head.sid) {
      // A commit that the anchor does not know yet: the process ended between COMMIT and the anchor's line.
      if (head.commit > this.#was.commit) return undefined;
      // With a line gone from the anchor itself, it does not know better than the database.
      if (this.#was.flaws.length > 0) return undefined;
      const note = was ? 'an earlier session of its name is in its place' : 'it was removed before, and is back';
      return { kind: 'resurrected', session, seq: 0, have: head.next, note };
    }
    if (head.next < was.next) return this.#lost(head, was);
    if (head.next > was.next || shortHash(head.hash) === was.head) return undefined;
    const note = 'its last record is not the one that was anchored';
    return { kind: 'damaged', session, seq: Math.max(0, head.next - 1), had: was.next, have: head.next, note };
  }

  #lost(head: Head, was: Anchored): Damage {
    const at = head.next === 0 ? undefined : this.#records.before(head.sid, head.next - 1)?.at;
    const damage: Damage = {
      kind: 'lost tail',
      session: head.name,
      seq: head.next,
      had: was.next,
      have: head.next,
      note: `entries ${head.next} to ${was.next - 1}, written until ${new Date(was.at).toISOString()}, are gone`,
    };
    return at === undefined ? damage : { ...damage, since: at };
  }

  #missing(session: string, was: Anchored): void {
    // A session of this name with another sid was judged as a row.
    if (this.#heads.has(session) || this.refusals.has(session)) return;
    const note = `all of it, ${was.next} entries written until ${new Date(was.at).toISOString()}, is gone`;
    const damage: Damage = { kind: 'missing', session, seq: 0, had: was.next, have: 0, note };
    if (this.#refuse(damage, [was.sid])) this.#heads.set(session, was);
  }

  #orphans(): void {
    for (const sid of this.#walk?.orphans(this.#sids) ?? []) {
      const name = [...this.#was.heads].find(([, was]) => was.sid === sid)?.[0];
      const damage: Damage = {
        kind: 'orphan',
        note: `there are records of session number ${sid}, but no such session`,
      };
      this.damage.push(name === undefined ? damage : { ...damage, session: name });
    }
  }

  #anchor(): void {
    const report = (note: string): void => void this.damage.push({ kind: 'anchor', note });
    const open = 'whether anything was lost since cannot be told';
    if (!this.#known && this.#sids.size > 0) report(`the anchor file is missing: ${open}`);
    if (this.#was.flaws.length > 0) report(`the anchor file is damaged (${this.#was.flaws.join('; ')}): ${open}`);
    else if (this.#known && this.#commit > this.#was.commit + 1) {
      report(`the anchor file ends at commit ${this.#was.commit}, the store at ${this.#commit}: ${open}`);
    }
  }

  /** Sessions whose removal the anchor does not know yet: the process ended between COMMIT and the anchor's line. */
  #removed(): ReadonlySet<number> {
    const rows = this.#driver.prepare(`SELECT ${wholeOf('sid')}, ${wholeOf('commit_no')} FROM removals`).all();
    const late = rows.filter((row) => whole(row.commit_no) > this.#was.commit);
    for (const row of late) this.#commit = Math.max(this.#commit, whole(row.commit_no));
    return new Set(late.map((row) => whole(row.sid)));
  }

  /** Rows that the index over the names does not find: claiming such a name would start it anew. */
  #unindexed(): ReadonlySet<number> {
    const rows = this.#driver
      .prepare(
        `SELECT sid FROM sessions AS s NOT INDEXED WHERE NOT EXISTS (SELECT 1 FROM sessions AS t
         INDEXED BY sqlite_autoindex_sessions_1 WHERE t.name = s.name AND +t.sid = s.sid)`,
      )
      .all();
    return new Set(rows.map((row) => whole(row.sid)));
  }

  #sequence(): number {
    const [row] = this.#driver.prepare(`SELECT ${wholeOf('seq')} FROM sqlite_sequence WHERE name = 'sessions'`).all();
    return Math.max(0, whole(row?.seq));
  }
}

/** Checks an open store against its anchor. Throws what SQLite throws when the sessions cannot be read at all. */
export function inspect(
  driver: Driver,
  path: string,
  was: Fold | undefined,
  options: { readonly check: Check; readonly accept: boolean; readonly now: number },
): Findings {
  const full = options.check === 'full';
  const flaws = full ? fileFlaws(driver) : [];
  const inspection = new Inspection(driver, path, was, options.accept, full ? new Walk(driver, path) : undefined);
  const fold = inspection.run(options.now);
  const { damage, refusals } = inspection;
  if (flaws.length > 0) damage.unshift({ kind: 'file', note: flaws.join('; ') });
  const message = `${path} has a broken structure and can only be read: ${flaws[0]}. Restore it from a backup, or copy its sessions to a new store.`;
  const unwritable = flaws.length === 0 ? undefined : new Fault('STORE_DAMAGED', message, { path });
  return { report: { checked: options.check, damage }, refusals, unwritable, record: [], fold };
}
