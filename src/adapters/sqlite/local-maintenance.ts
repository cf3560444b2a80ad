/**
 * Maintenance of a store in the process that owns it. Damage that is found after the store was opened is logged here,
 * and its session is refused.
 */
import { setImmediate } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { RecordHasher } from '../../journal/record.js';
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

/** What local maintenance works with. */
interface LocalMaintenanceDeps {
  readonly driver: Driver;
  readonly path: string;
  readonly commitQueue: CommitQueue;
  readonly writer: TransactionWriter;
  readonly heads: SessionHeads;
  readonly hasher: RecordHasher;
  /** Refused sessions and the read-only state. The object is shared with the store and updated here. */
  readonly health: StoreHealth;
}

/** Maintenance in the owner of a store. */
export class LocalMaintenance implements Maintenance {
  private readonly deps: LocalMaintenanceDeps;
  private readonly incidentTable: IncidentTable;
  /** Created on first use, because most processes verify nothing. */
  private cachedVerifier: StoreVerifier | undefined;
  /** Damage that is being logged, by its key. */
  private readonly pendingIncidents = new Map<string, Promise<void>>();

  constructor(deps: LocalMaintenanceDeps) {
    this.deps = deps;
    this.incidentTable = new IncidentTable(deps.driver, deps.hasher);
  }

  private get verifier(): StoreVerifier {
    const { driver, path, hasher } = this.deps;
    this.cachedVerifier ??= new StoreVerifier(driver, path, hasher);
    return this.cachedVerifier;
  }

  async readLog(): Promise<MaintenanceLog> {
    return this.withReadFaults(() => {
      const damage = this.incidentTable.listOutstanding().filter(isOpenIncident);
      return {
        damage: damage.map(({ incident }) => incident),
        closed: this.incidentTable.listClosed(),
        removals: this.incidentTable.listRemovedSessions(),
      };
    });
  }

  /**
   * Runs one step of the full check. `isExclusive` is true if no other process waits for this one; the structure of a
   * large file is checked only then. A broken structure makes the store read-only. Abandoned damage is not returned.
   */
  async verify(cursor: VerifyCursor = VERIFY_START, isExclusive = true): Promise<VerifyStep> {
    const { health, driver } = this.deps;
    const step = this.withReadFaults(() => this.verifier.step(cursor, isExclusive));
    const structureDamage = step.damage.find(({ kind }) => kind === 'file');
    if (structureDamage !== undefined && health.writeFault === undefined) {
      markBroken(driver, true);
      health.writeFault = this.brokenStructureFault(structureDamage);
    }
    for (const damage of step.damage) await this.recordDamage(damage);
    return { ...step, damage: step.damage.filter((damage) => !this.isAbandoned(damage)) };
  }

  async accept(ids: readonly number[], attribution: Attribution): Promise<readonly Incident[]> {
    this.assertWritable();
    const { commitQueue, writer, health } = this.deps;
    const accepted = health.incidents.filter(({ incident }) => ids.includes(incident.id));
    const unusable = new Set<string>();
    for (const { incident, sids } of accepted) {
      if (incident.kind === 'damaged' && !(await this.isRepaired(incident, sids))) unusable.add(incident.session ?? '');
    }
    const outcomeOf = ({ incident }: IncidentRow): IncidentOutcome =>
      unusable.has(incident.session ?? '') || !(canContinueAfter(incident) || incident.kind === 'damaged')
        ? 'abandoned'
        : 'continued';
    const remaining = health.incidents.filter((item) => !accepted.includes(item) || outcomeOf(item) === 'abandoned');
    const isUsable = (session: string): boolean => !remaining.some(({ incident }) => incident.session === session);
    const sessions = new Set(accepted.flatMap(({ incident }) => incident.session ?? []));
    await commitQueue.submit(() => {
      for (const item of accepted)
        this.incidentTable.close([item.incident.id], outcomeOf(item), attribution, writer.commitTimeMs);
      // The anchor now records the remaining entries as the end of the session.
      for (const session of sessions) if (isUsable(session)) writer.anchorSession(session);
    }, false);
    const closed = this.incidentTable.find(ids);
    const byId = new Map(closed.map((item) => [item.incident.id, item]));
    health.incidents = remaining.map((item) => byId.get(item.incident.id) ?? item);
    for (const session of sessions) if (isUsable(session)) health.refusals.delete(session);
    return closed.map(({ incident }) => incident);
  }

  /** Removes a session, even a refused one; see `Maintenance.remove`. Throws if the store is read-only. */
  async remove(session: string, attribution: Attribution = { by: '' }): Promise<RemovedSession | undefined> {
    this.assertWritable();
    const { commitQueue, writer, health } = this.deps;
    const head = this.findHead(session);
    await Promise.all(this.pendingIncidents.values());
    const refusal = health.refusals.get(session);
    const sessionIncidents = health.incidents.filter(({ incident }) => incident.session === session);
    if (head === undefined && refusal === undefined) return this.incidentTable.findRemovedSession(session);
    const sids = refusal && [...new Set([...refusal.sids, ...this.sidsOf(session)])];
    const had = Math.max(0, ...sessionIncidents.map(({ incident }) => incident.had ?? 0));
    await commitQueue.submit(() => {
      const entries = head?.next ?? had;
      const removal = { session, entries, head: head?.hash ?? '', at: writer.commitTimeMs, ...attribution };
      writer.remove(session, sids);
      this.incidentTable.close(
        sessionIncidents.map(({ incident }) => incident.id),
        'removed',
        attribution,
        writer.commitTimeMs,
      );
      this.incidentTable.addRemovedSession(removal);
    }, false);
    health.refusals.delete(session);
    health.incidents = health.incidents.filter((item) => !sessionIncidents.includes(item));
    return this.incidentTable.findRemovedSession(session);
  }

  /** Logs the damage of a session that a read found, and refuses the session from now on. Ignores other errors. */
  recordReadFault(error: unknown): void {
    if (!(error instanceof Fault) || error.code !== 'STORE_DAMAGED') return;
    const {
      session,
      seq = 0,
      flaw = error.message,
    } = (error.data ?? {}) as { session?: string; seq?: number; flaw?: string };
    if (session === undefined || this.deps.health.refusals.has(session)) return;
    void this.recordDamage({ kind: 'damaged', session, seq, note: flaw });
  }

  /**
   * Logs damage that is not logged yet, and refuses its session. Resolves once that is done. If it cannot be logged,
   * the session is refused until the store is opened again.
   */
  private recordDamage(damage: Damage): Promise<void> {
    const key = damageKeyOf(damage);
    const { health } = this.deps;
    if (health.incidents.some(({ incident }) => damageKeyOf(incident) === key)) return Promise.resolve();
    const pending =
      this.pendingIncidents.get(key) ?? this.addIncident(damage).finally(() => this.pendingIncidents.delete(key));
    this.pendingIncidents.set(key, pending);
    return pending;
  }

  private async addIncident(damage: Damage): Promise<void> {
    const { commitQueue, writer, health } = this.deps;
    const { session } = damage;
    const sids = session === undefined ? [] : this.sidsOf(session);
    if (session !== undefined && isSessionRefused(damage)) health.refusals.set(session, refusalOf(damage, sids));
    if (health.writeFault !== undefined) return;
    try {
      const added = await commitQueue.submit(() => this.incidentTable.add(damage, sids, writer.commitTimeMs), false);
      health.incidents = [...health.incidents, added];
    } catch {
      // The commit queue has stopped or the disk is full. The next full check finds the damage again.
    }
  }

  /** True if this damage was accepted and remains. */
  private isAbandoned(damage: Damage): boolean {
    const logged = this.deps.health.incidents.find(({ incident }) => damageKeyOf(incident) === damageKeyOf(damage));
    return logged !== undefined && !isOpenIncident(logged);
  }

  /** True if a session that was damaged is intact again. */
  private async isRepaired({ session = '' }: Damage, sids: readonly number[]): Promise<boolean> {
    const head = this.findHead(session);
    if (head === undefined || !sids.includes(head.sid)) return false;
    const verification = this.verifier.verifySession(head.sid);
    for (;;) {
      const { done, value } = this.withReadFaults(() => verification.next());
      if (done === true) return value === undefined;
      await setImmediate();
    }
  }

  /** Returns the head of a session; undefined if there is none or it is damaged, which is logged. */
  private findHead(session: string): SessionHead | undefined {
    const { heads } = this.deps;
    try {
      return heads.find(session);
    } catch (error) {
      this.recordReadFault(error);
      return undefined;
    }
  }

  /** Returns the numbers of the rows with this name; empty if they cannot be read. */
  private sidsOf(session: string): readonly number[] {
    try {
      const sql = `SELECT ${integerColumn('sid')} FROM sessions WHERE sessions.name = ?`;
      return this.deps.driver
        .prepare(sql)
        .all(session)
        .map((row) => readInteger(row.sid));
    } catch {
      return [];
    }
  }

  private brokenStructureFault({ note }: Damage): Fault {
    const { path } = this.deps;
    const message = `${path} has a broken structure and can only be read: ${note}. Restore it from a backup.`;
    return new Fault('STORE_DAMAGED', message, { path });
  }

  private assertWritable(): void {
    const { commitQueue, health } = this.deps;
    if (commitQueue.stopFault !== undefined) throw commitQueue.stopFault;
    if (health.writeFault !== undefined) throw health.writeFault;
  }

  private withReadFaults<T>(read: () => T): T {
    const { commitQueue, path } = this.deps;
    if (commitQueue.stopFault !== undefined) throw commitQueue.stopFault;
    try {
      return read();
    } catch (error) {
      throw toReadFault(error, path);
    }
  }
}
