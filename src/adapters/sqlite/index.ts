/** The durable store of one process: a journal, its large values and its snapshots in one SQLite file. */
export type { Check, Damage, Report } from './check.js';
export type { Stats } from './commits.js';
export type { Cell, Driver, Param, Row, Statement } from './driver.js';
export { openDriver } from './driver.js';
export { openSqlite, type SqliteOptions } from './open.js';
export type { Durability } from './owner.js';
export type { SqliteStore } from './store.js';
