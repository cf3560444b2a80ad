/** The maintenance of a store in the process that owns it. Damage that is found after the opening is recorded and refused here. */
import { setImmediate } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import { type Findings, isRefused, refusalOf } from './check.js';
import type { Commits } from './commits.js';
import { canContinue, isOpen } from './damage-record.js';
import { type Driver, whole, wholeOf } from './driver.js';
import { readFault } from './failure.js';
import type { Head, Heads } from './heads.js';
import {
  type Closure,
  type Damage,
  type Incident,
  Incidents,
  keyOf,
  type Recorded,
  type Removal,
  type Word,
} from './incidents.js';
import type { Maintenance, StoreRecord } from './maintenance.js';
import { START, Verifier, type VerifyCursor, type VerifyStep } from './verify.js';
import { markBroken } from './walk.js';
import type { Writes } from './writes.js';

export interface MaintenanceParts {
  readonly driver: Driver;
  readonly path: string;
  readonly commits: Commits;
  readonly writes: Writes;
  readonly heads: Heads;
  /** What is refused, and why nothing may be written; shared with the store. */
  readonly findings: Findings;
}

export class LocalMaintenance implements Maintenance {
  readonly #parts: MaintenanceParts;
  readonly #rows: Incidents;
  /** Made when it is first used: most processes verify nothing. */
  #verifying: Verifier | undefined;
  /** Damage that is being recorded. */
  readonly #pending = new Map<string, Promise<void>>();

  constructor(parts: MaintenanceParts) {
    this.#parts = parts;
    this.#rows = new Incidents(parts.driver);
  }

  get #verifier(): Verifier {
    const { driver, path } = this.#parts;
    this.#verifying ??= new Verifier(driver, path);
    return this.#verifying;
  }

  async record(): Promise<StoreRecord> {
    return this.#reading(() => {
      const damage = this.#rows.standing().filter(isOpen);
      return {
        damage: damage.map(({ incident }) => incident),
        closed: this.#rows.closed(),
        removals: this.#rows.removals(),
      };
    });
  }

  async verify(cursor: VerifyCursor = START, alone = true): Promise<VerifyStep> {
    const { findings, driver } = this.#parts;
    const step = this.#reading(() => this.#verifier.step(cursor, alone));
    const broken = step.damage.find(({ kind }) => kind === 'file');
    if (broken !== undefined && findings.unwritable === undefined) {
      markBroken(driver, true);
      findings.unwritable = this.#unwritable(broken);
    }
    for (const damage of step.damage) await this.#note(damage);
    return { ...step, damage: step.damage.filter((damage) => !this.#isAbandoned(damage)) };
  }

  async accept(ids: readonly number[], word: Word): Promise<readonly Incident[]> {
    this.#assertWritable();
    const { commits, writes, findings } = this.#parts;
    const meant = findings.record.filter(({ incident }) => ids.includes(incident.id));
    const unusable = new Set<string>();
    for (const { incident, sids } of meant) {
      if (incident.kind === 'damaged' && !(await this.#isWhole(incident, sids))) unusable.add(incident.session ?? '');
    }
    const closureOf = ({ incident }: Recorded): Closure =>
      unusable.has(incident.session ?? '') || !(canContinue(incident) || incident.kind === 'damaged')
        ? 'abandoned'
        : 'continued';
    const left = findings.record.filter((item) => !meant.includes(item) || closureOf(item) === 'abandoned');
    const isFree = (session: string): boolean => !left.some(({ incident }) => incident.session === session);
    const sessions = new Set(meant.flatMap(({ incident }) => incident.session ?? []));
    await commits.push(() => {
      for (const item of meant) this.#rows.close([item.incident.id], closureOf(item), word, writes.at);
      // What the anchor says of them from now on is what is left.
      for (const session of sessions) if (isFree(session)) writes.anchor(session);
    }, false);
    const closed = this.#rows.find(ids);
    const byId = new Map(closed.map((item) => [item.incident.id, item]));
    findings.record = left.map((item) => byId.get(item.incident.id) ?? item);
    for (const session of sessions) if (isFree(session)) findings.refusals.delete(session);
    return closed.map(({ incident }) => incident);
  }

  /** Removing is the one thing that may be done to a session that is refused. */
  async remove(session: string, word: Word = { by: '' }): Promise<Removal | undefined> {
    this.#assertWritable();
    const { commits, writes, findings } = this.#parts;
    const head = this.#headOf(session);
    await Promise.all(this.#pending.values());
    const refusal = findings.refusals.get(session);
    const mine = findings.record.filter(({ incident }) => incident.session === session);
    if (head === undefined && refusal === undefined) return this.#rows.removal(session);
    const sids = refusal && [...new Set([...refusal.sids, ...this.#sidsOf(session)])];
    const had = Math.max(0, ...mine.map(({ incident }) => incident.had ?? 0));
    await commits.push(() => {
      const removal = { session, entries: head?.next ?? had, head: head?.hash ?? '', at: writes.at, ...word };
      writes.remove(session, sids);
      this.#rows.close(
        mine.map(({ incident }) => incident.id),
        'removed',
        word,
        writes.at,
      );
      this.#rows.bury(removal);
    }, false);
    findings.refusals.delete(session);
    findings.record = findings.record.filter((item) => !mine.includes(item));
    return this.#rows.removal(session);
  }

  /** Records damage that a read came upon; the session is refused from here on. */
  noteFault(error: unknown): void {
    if (!(error instanceof Fault) || error.code !== 'STORE_DAMAGED') return;
    const {
      session,
      seq = 0,
      flaw = error.message,
    } = (error.data ?? {}) as { session?: string; seq?: number; flaw?: string };
    if (session === undefined || this.#parts.findings.refusals.has(session)) return;
    void this.#note({ kind: 'damaged', session, seq, note: flaw });
  }

  /** Resolves once the damage is on record. What cannot be recorded is refused all the same, until the store is opened again. */
  #note(damage: Damage): Promise<void> {
    const key = keyOf(damage);
    const { findings } = this.#parts;
    if (findings.record.some(({ incident }) => keyOf(incident) === key)) return Promise.resolve();
    const pending = this.#pending.get(key) ?? this.#add(damage).finally(() => this.#pending.delete(key));
    this.#pending.set(key, pending);
    return pending;
  }

  async #add(damage: Damage): Promise<void> {
    const { commits, writes, findings } = this.#parts;
    const { session } = damage;
    const sids = session === undefined ? [] : this.#sidsOf(session);
    if (session !== undefined && isRefused(damage)) findings.refusals.set(session, refusalOf(damage, sids));
    if (findings.unwritable !== undefined) return;
    try {
      const added = await commits.push(() => this.#rows.add(damage, sids, writes.at), false);
      findings.record = [...findings.record, added];
    } catch {
      // The commits have stopped or the disk is full; the next full check finds it again.
    }
  }

  #isAbandoned(damage: Damage): boolean {
    const known = this.#parts.findings.record.find(({ incident }) => keyOf(incident) === keyOf(damage));
    return known !== undefined && !isOpen(known);
  }

  /** True if a session that was damaged is whole: it was repaired. */
  async #isWhole({ session = '' }: Damage, sids: readonly number[]): Promise<boolean> {
    const head = this.#headOf(session);
    if (head === undefined || !sids.includes(head.sid)) return false;
    const walk = this.#verifier.session(head.sid);
    for (;;) {
      const { done, value } = this.#reading(() => walk.next());
      if (done === true) return value === undefined;
      await setImmediate();
    }
  }

  #headOf(session: string): Head | undefined {
    const { heads } = this.#parts;
    try {
      return heads.find(session);
    } catch (error) {
      this.noteFault(error);
      return undefined;
    }
  }

  #sidsOf(session: string): readonly number[] {
    try {
      const sql = `SELECT ${wholeOf('sid')} FROM sessions WHERE sessions.name = ?`;
      return this.#parts.driver
        .prepare(sql)
        .all(session)
        .map((row) => whole(row.sid));
    } catch {
      return [];
    }
  }

  #unwritable({ note }: Damage): Fault {
    const { path } = this.#parts;
    const message = `${path} has a broken structure and can only be read: ${note}. Restore it from a backup.`;
    return new Fault('STORE_DAMAGED', message, { path });
  }

  #assertWritable(): void {
    const { commits, findings } = this.#parts;
    if (commits.stopped !== undefined) throw commits.stopped;
    if (findings.unwritable !== undefined) throw findings.unwritable;
  }

  #reading<T>(read: () => T): T {
    const { commits, path } = this.#parts;
    if (commits.stopped !== undefined) throw commits.stopped;
    try {
      return read();
    } catch (error) {
      throw readFault(error, path);
    }
  }
}
