/**
 * The store in the process that owns it: the ports of the kernel over one SQLite file. It only puts together: what is written
 * goes through the group commit, what is read is verified, and a session with damage is refused before either.
 */
import { Fault } from '../../base/errors.js';
import { type Draft, digest, draftOf } from '../../journal/record.js';
import type { Blobs, Journal, Listed, Snapshots } from '../../journal/store.js';
import type { Anchor } from './anchor.js';
import { BlobRows } from './blobs.js';
import type { Findings, Report } from './check.js';
import { Commits, final, type Stats } from './commits.js';
import { abandon, disconnect } from './connection.js';
import type { Driver } from './driver.js';
import { faultOf, readFault } from './failure.js';
import { Heads, headOf, ownedColumns, ownedOf } from './heads.js';
import { LocalMaintenance } from './local-maintenance.js';
import type { ProcessId } from './owner/process.js';
import { peersIn } from './peer-rows.js';
import { Presence } from './presence.js';
import { readEntries, type Source, yieldToLoop } from './read.js';
import { Records } from './records.js';
import { SnapshotRows } from './snapshot.js';
import { Writes } from './writes.js';

export interface StoreParts {
  readonly driver: Driver;
  readonly path: string;
  readonly anchor: Anchor;
  readonly findings: Findings;
  readonly now: () => number;
  /** Which owner of the database this process is, counted from the first. */
  readonly epoch: number;
}

/** Sessions that are listed without a chance to yield to the event loop. */
const LISTED_AT_ONCE = 500;

/** SQLite takes no text over 10^9 bytes; no character has more than three. */
const longest = 3 * 10 ** 8;

function checkName(session: string): void {
  if (session.length > 0 && session.length <= 256 && !/[\p{Cc}\p{Cs}]/u.test(session)) return;
  const message = `${JSON.stringify(session.slice(0, 64))} cannot name a session: a name has 1 to 256 characters and no control characters.`;
  throw new Fault('STORE_FAILED', message, { session: session.slice(0, 64) });
}

/**
 * Failures of the chores at the end that lose nothing: there is no room for them, or a connection of this process that could not be closed
 * before has the file too. All that was acknowledged is in the WAL.
 */
const harmless: ReadonlySet<string> = new Set(['STORE_FULL', 'STORE_OWNED']);

export class LocalStore {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly snapshots: Snapshots;
  readonly maintenance: LocalMaintenance;
  /** What opening the store found. */
  readonly report: Report;
  /** Called when the file is found not to be this process's any more. */
  onLost: () => void = () => {};
  /** Called when all of a commit was acknowledged, before the sessions of this process go on. */
  onAcknowledged: () => void = () => {};
  readonly #path: string;
  readonly #driver: Driver;
  readonly #anchor: Anchor;
  readonly #findings: Findings;
  readonly #records: Records;
  readonly #heads: Heads;
  readonly #writes: Writes;
  readonly #presence: Presence;
  readonly #commits: Commits;
  #closing: Promise<void> | undefined;

  constructor({ driver, path, anchor, findings, now, epoch }: StoreParts) {
    const { commit, sid } = findings.fold;
    this.#path = path;
    this.#driver = driver;
    this.#anchor = anchor;
    this.#findings = findings;
    this.report = findings.report;
    this.#records = new Records(driver);
    this.#heads = new Heads(driver, this.#records);
    this.#writes = new Writes({ driver, heads: this.#heads, records: this.#records, sid, epoch });
    this.#presence = new Presence(path);
    const { writes, presence } = { writes: this.#writes, presence: this.#presence };
    const lost = (): void => this.onLost();
    const acknowledged = (): void => this.onAcknowledged();
    this.#commits = new Commits({ driver, path, writes, anchor, now, commit, presence, lost, acknowledged });
    this.maintenance = new LocalMaintenance({
      driver,
      path,
      commits: this.#commits,
      writes,
      heads: this.#heads,
      findings,
    });
    this.journal = this.#journal();
    this.blobs = this.#blobs(new BlobRows(driver));
    this.snapshots = this.#snapshots(new SnapshotRows(driver));
  }

  stats(): Stats {
    return this.#commits.stats();
  }

  /** Why nothing is accepted any more, if so. */
  get stopped(): Fault | undefined {
    return this.#commits.stopped;
  }

  /** The processes that held leases under the last owner, by their ids. */
  peers(): ReadonlyMap<string, ProcessId> {
    return this.#reading(() => peersIn(this.#driver));
  }

  addPeer(id: string, process: ProcessId): Promise<void> {
    return this.#commits.push(() => this.#writes.addPeer(id, process), false);
  }

  removePeer(id: string): Promise<void> {
    return this.#commits.push(() => this.#writes.removePeer(id), false);
  }

  /** Writes an append whose entries are JSON text already. Judged inside the commit: this is the hot path. */
  append(draft: Draft): Promise<void> {
    return new Promise((resolve, reject) => this.enqueue(draft, resolve, reject));
  }

  /** The same for a client of the owner: it needs no promise, and each would cost it microseconds. */
  enqueue(draft: Draft, acknowledge: () => void, reject: (fault: Fault) => void): void {
    const perform = (): (() => void) => {
      this.#writable(draft.session);
      this.#writes.append(draft);
      // guard: acknowledged-after-commit
      return acknowledge;
    };
    this.#commits.enqueue({ perform, reject, single: true });
  }

  /** This process listens from now on, or no longer. */
  listening(isOn: boolean): void {
    this.#presence.listening(isOn);
  }

  /** True if the session has entries behind this one. */
  hasAfter(session: string, seq: number): boolean {
    return (this.#heads.find(session)?.next ?? 0) > seq + 1;
  }

  /** Commits what is queued, at once. */
  flush(): void {
    this.#commits.flush();
  }

  /** Commits what is queued, then gives the file back; what comes later is refused. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#commits.flush();
    const failed = this.#commits.stopped !== undefined;
    const lost = this.#lost();
    this.#commits.stop(new Fault('STORE_CLOSED', `${this.#path} was closed. Open it again.`, { path: this.#path }));
    this.#presence.close();
    if (lost) return this.#leave();
    const chores = [() => failed || this.#anchor.compact(), () => this.#anchor.close(), () => disconnect(this.#driver)];
    const faults = chores.map((chore) => this.#attempt(chore));
    const fault = faults.find((found) => found !== undefined && !harmless.has(found.code));
    if (fault !== undefined) throw fault;
  }

  /** True if the files are not this process's any more: removed, replaced, or with another owner. */
  #lost(): boolean {
    const { stopped } = this.#commits;
    if (stopped !== undefined && final.has(stopped.code)) return true;
    try {
      this.#presence.assert();
      this.#writes.assertOwner();
      return false;
    } catch (error) {
      return error instanceof Fault && final.has(error.code);
    }
  }

  /** Nothing is touched any more that is not this process's. */
  #leave(): void {
    this.#anchor.close();
    abandon(this.#driver, this.#path);
  }

  #attempt(chore: () => unknown): Fault | undefined {
    try {
      chore();
      return undefined;
    } catch (error) {
      return faultOf(error, 'Closing', this.#path);
    }
  }

  #journal(): Journal {
    const source: Source = {
      path: this.#path,
      heads: this.#heads,
      records: this.#records,
      guard: (session) => this.#readable(session),
      // guard: damage-of-reads-recorded
      failed: (error) => this.maintenance.noteFault(error),
      yieldedAt: 0,
    };
    return {
      claim: async (session) => {
        checkName(session);
        this.#writable(session);
        return this.#commits.push(() => this.#writes.claim(session), true);
      },
      append: (batch) => {
        try {
          return this.append(draftOf(batch));
        } catch (fault) {
          return Promise.reject(fault);
        }
      },
      read: (session, from) => readEntries(source, session, from),
      list: () => this.#list(source),
      remove: async (session) => void (await this.maintenance.remove(session)),
    };
  }

  #blobs(rows: BlobRows): Blobs {
    return {
      put: async (session, name, text) => {
        this.#writable(session);
        const head = this.#reading(() => this.#heads.find(session));
        if (head === undefined) {
          throw new Fault('STALE_WRITER', `Session "${session}" is not there: claim it before it is written.`, {
            session,
          });
        }
        if (text.length > longest || digest(text) !== name) {
          const flaw = text.length > longest ? 'is too large' : 'does not fit its digest';
          throw new Fault('STORE_FAILED', `The value ${name} of session "${session}" ${flaw}.`, {
            session,
            digest: name,
          });
        }
        this.#commits.stage(head.sid, name, text);
      },
      get: async (session, name) => {
        this.#readable(session);
        return this.#reading(() => {
          const head = this.#heads.find(session);
          return head && (this.#commits.staged(head.sid, name) ?? rows.get(session, head.sid, name));
        });
      },
    };
  }

  #snapshots(rows: SnapshotRows): Snapshots {
    return {
      load: async (session) => {
        this.#readable(session);
        const head = this.#reading(() => this.#heads.find(session));
        return head && rows.load(head.sid);
      },
      save: async (session, snapshot) => {
        this.#writable(session);
        return this.#commits.push(() => this.#writes.save(session, snapshot), true);
      },
    };
  }

  /** A session that is refused is listed too: whoever takes up all sessions must meet its Fault. */
  async #list(source: Source): Promise<readonly Listed[]> {
    this.#running();
    const { refusals } = this.#findings;
    const sql = `SELECT ${ownedColumns} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT ${LISTED_AT_ONCE}`;
    const statement = this.#reading(() => this.#driver.prepare(sql));
    const listed: Listed[] = [];
    let after = 0;
    for (let before = -1; after !== before; ) {
      await yieldToLoop(source);
      this.#running();
      before = after;
      this.#reading(() => {
        const rows = statement.all(before).map(ownedOf);
        after = Math.max(before, ...rows.map(({ owned }) => owned.sid));
        const tails = this.#records.tails(before, after);
        for (const { owned, sound } of rows) {
          const { sid, name } = owned;
          if (sound && !refusals.has(name)) listed.push({ session: name, next: headOf(owned, tails.get(sid)).next });
        }
      });
    }
    return [...listed, ...Array.from(refusals.keys(), (session) => ({ session, next: 0 }))];
  }

  #running(): void {
    if (this.#commits.stopped !== undefined) throw this.#commits.stopped;
  }

  #unbroken(): void {
    if (this.#findings.unwritable !== undefined) throw this.#findings.unwritable;
  }

  #readable(session: string): void {
    this.#running();
    const refusal = this.#findings.refusals.get(session);
    if (refusal !== undefined) throw refusal.fault;
  }

  #writable(session: string): void {
    this.#readable(session);
    this.#unbroken();
  }

  #reading<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      const fault = readFault(error, this.#path);
      this.maintenance.noteFault(fault);
      throw fault;
    }
  }
}
