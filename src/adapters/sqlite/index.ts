/** The durable store of one machine: a journal, its large values and its snapshots in one SQLite file, shared by processes. */
export type { Check, Report } from './check.js';
export type { Stats } from './commits.js';
export type { Durability } from './connection.js';
export type { Cell, Driver, Param, Row, Statement } from './driver.js';
export { openDriver } from './driver.js';
export type { Closure, Damage, Incident, Removal, Word } from './incidents.js';
export type { Maintenance, StoreRecord } from './maintenance.js';
export type { SqliteOptions } from './open.js';
export { openSqlite, type SqliteStore } from './store.js';
export type { VerifyCursor, VerifyStep } from './verify.js';
