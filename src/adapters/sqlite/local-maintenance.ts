/** The maintenance of a store in the process that owns it. Damage that is found after the opening is recorded and refused here. */
import { setImmediate } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { CommitQueue } from './commit-queue.js';
import { type Driver, integerColumn, readInteger } from './driver.js';
import { markBroken } from './full-check.js';
import {
  type Attribution,
  type Damage,
  damageKeyOf,
  type Incident,
  type IncidentOutcome,
  type IncidentRow,
  IncidentTable,
  type RemovedSession,
} from './incidents.js';
import type { Maintenance, MaintenanceLog } from './maintenance.js';
import { canContinueAfter, isOpenIncident } from './record-incidents.js';
import type { SessionHead, SessionHeads } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';
import { isSessionRefused, refusalOf, type StoreHealth } from './store-inspection.js';
import { StoreVerifier, VERIFY_START, type VerifyCursor, type VerifyStep } from './store-verifier.js';
import type { TransactionWriter } from './transaction-writer.js';

export interface LocalMaintenanceDeps {
  readonly driver: Driver;
  readonly path: string;
  readonly commits: CommitQueue;
  readonly writes: TransactionWriter;
  readonly heads: SessionHeads;
  /** What is refused, and why nothing may be written; shared with the store. */
  readonly health: StoreHealth;
}

export class LocalMaintenance implements Maintenance {
  readonly #deps: LocalMaintenanceDeps;
  readonly #incidentTable: IncidentTable;
  /** Made when it is first used: most processes verify nothing. */
  #cachedVerifier: StoreVerifier | undefined;
  /** Damage that is being recorded. */
  readonly #pendingIncidents = new Map<string, Promise<void>>();

  constructor(parts: LocalMaintenanceDeps) {
    this.#deps = parts;
    this.#incidentTable = new IncidentTable(parts.driver);
  }

  get #verifier(): StoreVerifier {
    const { driver, path } = this.#deps;
    this.#cachedVerifier ??= new StoreVerifier(driver, path);
    return this.#cachedVerifier;
  }

  async readLog(): Promise<MaintenanceLog> {
    return this.#withReadFaults(() => {
      const damage = this.#incidentTable.listOutstanding().filter(isOpenIncident);
      return {
        damage: damage.map(({ incident }) => incident),
        closed: this.#incidentTable.listClosed(),
        removals: this.#incidentTable.listRemovedSessions(),
      };
    });
  }

  async verify(cursor: VerifyCursor = VERIFY_START, alone = true): Promise<VerifyStep> {
    const { health, driver } = this.#deps;
    const step = this.#withReadFaults(() => this.#verifier.step(cursor, alone));
    const broken = step.damage.find(({ kind }) => kind === 'file');
    if (broken !== undefined && health.writeFault === undefined) {
      markBroken(driver, true);
      health.writeFault = this.#brokenStructureFault(broken);
    }
    for (const damage of step.damage) await this.#recordDamage(damage);
    return { ...step, damage: step.damage.filter((damage) => !this.#isAbandoned(damage)) };
  }

  async accept(ids: readonly number[], word: Attribution): Promise<readonly Incident[]> {
    this.#assertWritable();
    const { commits, writes, health } = this.#deps;
    const meant = health.incidents.filter(({ incident }) => ids.includes(incident.id));
    const unusable = new Set<string>();
    for (const { incident, sids } of meant) {
      if (incident.kind === 'damaged' && !(await this.#isRepaired(incident, sids)))
        unusable.add(incident.session ?? '');
    }
    const closureOf = ({ incident }: IncidentRow): IncidentOutcome =>
      unusable.has(incident.session ?? '') || !(canContinueAfter(incident) || incident.kind === 'damaged')
        ? 'abandoned'
        : 'continued';
    const left = health.incidents.filter((item) => !meant.includes(item) || closureOf(item) === 'abandoned');
    const isFree = (session: string): boolean => !left.some(({ incident }) => incident.session === session);
    const sessions = new Set(meant.flatMap(({ incident }) => incident.session ?? []));
    await commits.submit(() => {
      for (const item of meant)
        this.#incidentTable.close([item.incident.id], closureOf(item), word, writes.committedAt);
      // What the anchor says of them from now on is what is left.
      for (const session of sessions) if (isFree(session)) writes.anchorSession(session);
    }, false);
    const closed = this.#incidentTable.find(ids);
    const byId = new Map(closed.map((item) => [item.incident.id, item]));
    health.incidents = left.map((item) => byId.get(item.incident.id) ?? item);
    for (const session of sessions) if (isFree(session)) health.refusals.delete(session);
    return closed.map(({ incident }) => incident);
  }

  /** Removing is the one thing that may be done to a session that is refused. */
  async remove(session: string, word: Attribution = { by: '' }): Promise<RemovedSession | undefined> {
    this.#assertWritable();
    const { commits, writes, health } = this.#deps;
    const head = this.#findHead(session);
    await Promise.all(this.#pendingIncidents.values());
    const refusal = health.refusals.get(session);
    const mine = health.incidents.filter(({ incident }) => incident.session === session);
    if (head === undefined && refusal === undefined) return this.#incidentTable.findRemovedSession(session);
    const sids = refusal && [...new Set([...refusal.sids, ...this.#sidsOf(session)])];
    const had = Math.max(0, ...mine.map(({ incident }) => incident.had ?? 0));
    await commits.submit(() => {
      const removal = { session, entries: head?.next ?? had, head: head?.hash ?? '', at: writes.committedAt, ...word };
      writes.remove(session, sids);
      this.#incidentTable.close(
        mine.map(({ incident }) => incident.id),
        'removed',
        word,
        writes.committedAt,
      );
      this.#incidentTable.addRemovedSession(removal);
    }, false);
    health.refusals.delete(session);
    health.incidents = health.incidents.filter((item) => !mine.includes(item));
    return this.#incidentTable.findRemovedSession(session);
  }

  /** Records damage that a read came upon; the session is refused from here on. */
  recordReadFault(error: unknown): void {
    if (!(error instanceof Fault) || error.code !== 'STORE_DAMAGED') return;
    const {
      session,
      seq = 0,
      flaw = error.message,
    } = (error.data ?? {}) as { session?: string; seq?: number; flaw?: string };
    if (session === undefined || this.#deps.health.refusals.has(session)) return;
    void this.#recordDamage({ kind: 'damaged', session, seq, note: flaw });
  }

  /** Resolves once the damage is on record. What cannot be recorded is refused all the same, until the store is opened again. */
  #recordDamage(damage: Damage): Promise<void> {
    const key = damageKeyOf(damage);
    const { health } = this.#deps;
    if (health.incidents.some(({ incident }) => damageKeyOf(incident) === key)) return Promise.resolve();
    const pending =
      this.#pendingIncidents.get(key) ?? this.#addIncident(damage).finally(() => this.#pendingIncidents.delete(key));
    this.#pendingIncidents.set(key, pending);
    return pending;
  }

  async #addIncident(damage: Damage): Promise<void> {
    const { commits, writes, health } = this.#deps;
    const { session } = damage;
    const sids = session === undefined ? [] : this.#sidsOf(session);
    if (session !== undefined && isSessionRefused(damage)) health.refusals.set(session, refusalOf(damage, sids));
    if (health.writeFault !== undefined) return;
    try {
      const added = await commits.submit(() => this.#incidentTable.add(damage, sids, writes.committedAt), false);
      health.incidents = [...health.incidents, added];
    } catch {
      // The commits have stopped or the disk is full; the next full check finds it again.
    }
  }

  #isAbandoned(damage: Damage): boolean {
    const known = this.#deps.health.incidents.find(({ incident }) => damageKeyOf(incident) === damageKeyOf(damage));
    return known !== undefined && !isOpenIncident(known);
  }

  /** True if a session that was damaged is whole: it was repaired. */
  async #isRepaired({ session = '' }: Damage, sids: readonly number[]): Promise<boolean> {
    const head = this.#findHead(session);
    if (head === undefined || !sids.includes(head.sid)) return false;
    const walk = this.#verifier.verifySession(head.sid);
    for (;;) {
      const { done, value } = this.#withReadFaults(() => walk.next());
      if (done === true) return value === undefined;
      await setImmediate();
    }
  }

  #findHead(session: string): SessionHead | undefined {
    const { heads } = this.#deps;
    try {
      return heads.find(session);
    } catch (error) {
      this.recordReadFault(error);
      return undefined;
    }
  }

  #sidsOf(session: string): readonly number[] {
    try {
      const sql = `SELECT ${integerColumn('sid')} FROM sessions WHERE sessions.name = ?`;
      return this.#deps.driver
        .prepare(sql)
        .all(session)
        .map((row) => readInteger(row.sid));
    } catch {
      return [];
    }
  }

  #brokenStructureFault({ note }: Damage): Fault {
    const { path } = this.#deps;
    const message = `${path} has a broken structure and can only be read: ${note}. Restore it from a backup.`;
    return new Fault('STORE_DAMAGED', message, { path });
  }

  #assertWritable(): void {
    const { commits, health } = this.#deps;
    if (commits.stopFault !== undefined) throw commits.stopFault;
    if (health.writeFault !== undefined) throw health.writeFault;
  }

  #withReadFaults<T>(read: () => T): T {
    const { commits, path } = this.#deps;
    if (commits.stopFault !== undefined) throw commits.stopFault;
    try {
      return read();
    } catch (error) {
      throw toReadFault(error, path);
    }
  }
}
