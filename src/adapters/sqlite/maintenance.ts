/**
 * An operator's tasks on a store, from any process that has it open: read its log, verify it, accept a loss, remove a
 * session.
 */
import type { Attribution, Incident, RemovedSession } from './incidents.js';
import type { VerifyCursor, VerifyStep } from './store-verifier.js';

/** The log of a store: damage and removals. */
export interface MaintenanceLog {
  /** Damage that was not accepted. */
  readonly damage: readonly Incident[];
  /** Incidents that were accepted or whose session was removed, newest first. */
  readonly closed: readonly Incident[];
  /** Removed sessions, newest first. */
  readonly removals: readonly RemovedSession[];
}

/** Maintenance of a store. Every operation may be repeated. */
export interface Maintenance {
  /** Returns the log of the store. */
  readLog(): Promise<MaintenanceLog>;
  /**
   * Runs one step of the full check and logs the damage that it finds. Pass the cursor of the previous step to
   * continue.
   */
  verify(cursor?: VerifyCursor): Promise<VerifyStep>;
  /**
   * Accepts damage by the ids of its incidents. A session whose remaining entries are intact can then be used again.
   */
  accept(ids: readonly number[], attribution: Attribution): Promise<readonly Incident[]>;
  /** Removes a session, damaged or not, and logs the removal. Returns undefined if there is no such session. */
  remove(session: string, attribution: Attribution): Promise<RemovedSession | undefined>;
}
