/** The durable store of one machine: journals, blobs and snapshots in one SQLite file that several processes share. */

export type { CommitStats } from './commit-queue.js';
export type { Durability } from './connection.js';
export type { Driver, Row, SqlParam, SqlValue, Statement } from './driver.js';
export { openDriver } from './driver.js';
export type { Attribution, Damage, Incident, IncidentOutcome, RemovedSession } from './incidents.js';
export type { Maintenance, MaintenanceLog } from './maintenance.js';
export type { SqliteOptions } from './open-local-store.js';
export { openSqlite, type SqliteStore } from './store.js';
export type { CheckLevel, CheckReport } from './store-inspection.js';
export type { VerifyCursor, VerifyStep } from './store-verifier.js';
