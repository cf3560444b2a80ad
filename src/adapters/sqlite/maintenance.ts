/**
 * An operator's tasks on a store, from any process that has it open: read its log, verify it, accept a loss, remove a
 * session.
 */
import type { Attribution, Incident, RemovedSession } from './incidents.js';
import type { VerifyCursor, VerifyStep } from './store-verifier.js';

/** The log of a store: damage and removals. */
export interface MaintenanceLog {
  /** Open incidents: damage that was not accepted, and whose session was not removed. */
  readonly damage: readonly Incident[];
  /** Incidents that were accepted or whose session was removed, the most recently closed first, at most 100. */
  readonly closed: readonly Incident[];
  /** Removed sessions, the most recently removed first, at most 100. */
  readonly removals: readonly RemovedSession[];
}

/** Maintenance of a store. Every operation may be repeated. */
export interface Maintenance {
  /** Returns the log of the store. */
  readLog(): Promise<MaintenanceLog>;
  /**
   * Runs one step of the full check and logs the damage that it finds. Pass the cursor of the previous step to
   * continue. Without a cursor, the check starts.
   */
  verify(cursor?: VerifyCursor): Promise<VerifyStep>;
  /**
   * Accepts damage by the ids of its incidents, and returns the incidents with these ids; unknown ids are ignored. A
   * session without other incidents whose remaining entries are intact can then be used again.
   */
  accept(ids: readonly number[], attribution: Attribution): Promise<readonly Incident[]>;
  /**
   * Removes a session, damaged or not, and returns the log entry of the removal. If there is no such session, returns
   * the entry of its last removal; undefined if it was never removed.
   */
  remove(session: string, attribution: Attribution): Promise<RemovedSession | undefined>;
}
