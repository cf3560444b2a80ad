/**
 * The shim over the two SQLite bindings: `node:sqlite` where the runtime has it, else `libsql`.
 * Invariants: rows are read with `all()` only (libsql's `get()` adds a key of its own); text and integers from a
 * table are read through `textOf` / `wholeOf` columns, because libsql ends the process on text that is not UTF-8
 * and node:sqlite throws on integers over 2^53, and a damaged file can hold both.
 */
import { createRequire } from 'node:module';
import { Fault } from '../../base/errors.js';

export type SqlValue = number | bigint | string | Uint8Array | ArrayBuffer | null;
export type Row = Readonly<Record<string, SqlValue>>;
export type SqlParam = number | string | null;

export interface Statement {
  /** Runs it and tells how many rows it changed. */
  run(...params: SqlParam[]): number;
  all(...params: SqlParam[]): readonly Row[];
}

export interface Driver {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

interface NativeStatement {
  run(...params: unknown[]): { readonly changes: number | bigint };
  all(...params: unknown[]): unknown[];
}

interface NativeDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): NativeStatement;
  close(): unknown;
}

type NativeClass = new (path: string) => NativeDatabase;

/** Loads without the one warning that Node 22 prints for its SQLite; every other warning passes. */
function withoutSqliteWarning<T>(load: () => T): T {
  const emit = process.emitWarning;
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]): void => {
    if (!String(warning).includes('SQLite is an experimental feature'))
      Reflect.apply(emit, process, [warning, ...rest]);
  }) as typeof emit;
  try {
    return load();
  } finally {
    process.emitWarning = emit;
  }
}

function loadNodeSqlite(): NativeClass | undefined {
  const found = withoutSqliteWarning(() => process.getBuiltinModule('node:sqlite')) as
    | { DatabaseSync?: NativeClass }
    | undefined;
  return found?.DatabaseSync;
}

function loadLibsql(path: string): NativeClass {
  try {
    return createRequire(import.meta.url)('libsql') as NativeClass;
  } catch (cause) {
    const message = `Cannot open ${path}: this Node has no node:sqlite and the package "libsql" is not installed. Run "npm i libsql" or use Node >= 22.13.`;
    throw new Fault('STORE_FAILED', message, { path }, cause);
  }
}

function wrapDatabase(native: NativeDatabase, spread: boolean): Driver {
  return {
    exec: (sql) => void native.exec(sql),
    prepare(sql) {
      const statement = native.prepare(sql);
      // libsql takes the parameters as one array; spread, it would copy them and mistake a lone null for an object.
      if (!spread) {
        return {
          run: (...params) => Number(statement.run(params).changes),
          all: (...params) => statement.all(params) as Row[],
        };
      }
      return {
        run: (...params) => Number(statement.run(...params).changes),
        all: (...params) => statement.all(...params) as Row[],
      };
    },
    close: () => void native.close(),
  };
}

/** Opens the file with what this runtime offers; the file is made if it is absent. */
export function openDriver(path: string): Driver {
  const Builtin = loadNodeSqlite();
  if (Builtin !== undefined) return wrapDatabase(new Builtin(path), true);
  const Libsql = loadLibsql(path);
  return wrapDatabase(new Libsql(path), false);
}

/** A column of text as an expression that any binding can read, whatever the file holds; see `text`. */
export function textColumn(column: string): string {
  return `CAST(${column} AS BLOB) AS ${column}`;
}

/** A column of whole numbers, clamped so that any binding can read it, whatever the file holds; see `whole`. */
export function integerColumn(column: string): string {
  return `min(max(${column}, -1), ${Number.MAX_SAFE_INTEGER}) AS ${column}`;
}

export function readText(cell: SqlValue | undefined): string {
  if (typeof cell === 'string') return cell;
  if (cell instanceof Uint8Array) return Buffer.from(cell.buffer, cell.byteOffset, cell.byteLength).toString('utf8');
  if (cell instanceof ArrayBuffer) return Buffer.from(cell).toString('utf8');
  return '';
}

export function readInteger(cell: SqlValue | undefined): number {
  return typeof cell === 'number' && Number.isSafeInteger(cell) ? cell : -1;
}
