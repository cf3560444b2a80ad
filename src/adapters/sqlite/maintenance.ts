/** What an operator does to a store, in whichever process it is open: look at its record, verify it, accept a loss, remove a session. */
import type { Attribution, Incident, RemovedSession } from './incidents.js';
import type { VerifyCursor, VerifyStep } from './store-verifier.js';

/** The record of a store. */
export interface MaintenanceLog {
  /** Damage that nobody has accepted. */
  readonly damage: readonly Incident[];
  /** What was accepted or ended with its session, the newest first. */
  readonly closed: readonly Incident[];
  /** Sessions that were removed, the newest first. */
  readonly removals: readonly RemovedSession[];
}

/** The maintenance of a store. Each operation may be repeated. */
export interface Maintenance {
  readLog(): Promise<MaintenanceLog>;
  /** One step of the full check: begins without a cursor, goes on with that of the last step. Damage that it finds goes on record. */
  verify(cursor?: VerifyCursor): Promise<VerifyStep>;
  /** Accepts damage by its ids. What is left of a session can be used again, if it can be read. */
  accept(ids: readonly number[], word: Attribution): Promise<readonly Incident[]>;
  /** Removes a session, damaged or not; a record of that stays. Undefined if there is none. */
  remove(session: string, word: Attribution): Promise<RemovedSession | undefined>;
}
