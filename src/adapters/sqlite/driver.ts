/**
 * A common interface over two SQLite bindings: `node:sqlite` where the runtime has it, otherwise `libsql`. Invariants:
 * rows are read with `all()` only, because libsql's `get()` adds a key to the row. Text is selected through
 * `textColumn`, because libsql aborts the process on text of a damaged file that is not UTF-8. Integers are selected
 * through `integerColumn`, except for some keys, because node:sqlite throws on integers above 2^53.
 */
import { createRequire } from 'node:module';
import { Fault } from '../../base/errors.js';

/** A value in a result row, as either binding returns it. */
export type SqlValue = number | bigint | string | Uint8Array | ArrayBuffer | null;
/** A result row, by column name. */
export type Row = Readonly<Record<string, SqlValue>>;
/** A value that can be bound to a statement. */
export type SqlParam = number | string | null;

/** A prepared statement. */
export interface Statement {
  /** Executes the statement and returns the number of changed rows. */
  run(...params: SqlParam[]): number;
  /** Executes the statement and returns all result rows. */
  all(...params: SqlParam[]): readonly Row[];
}

/** An open connection to a SQLite database. */
export interface Driver {
  /** Executes SQL text and discards its result rows. */
  exec(sql: string): void;
  /** Compiles one SQL statement. */
  prepare(sql: string): Statement;
  /** Closes the connection. */
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

/**
 * Runs `load` without the experimental warning that Node 22 prints for `node:sqlite`. Other warnings are unaffected.
 */
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
  const module = withoutSqliteWarning(() => process.getBuiltinModule('node:sqlite')) as
    | { DatabaseSync?: NativeClass }
    | undefined;
  return module?.DatabaseSync;
}

function loadLibsql(path: string): NativeClass {
  try {
    return createRequire(import.meta.url)('libsql') as NativeClass;
  } catch (cause) {
    const message = `Cannot open ${path}: this version of Node has no node:sqlite, and the package "libsql" is not installed. Run "npm i libsql" or use Node >= 22.13.`;
    throw new Fault('STORE_FAILED', message, { path }, cause);
  }
}

/** Wraps a database of either binding. `spread` is true if the binding takes parameters as separate arguments. */
function wrapDatabase(native: NativeDatabase, spread: boolean): Driver {
  return {
    exec: (sql) => void native.exec(sql),
    prepare(sql) {
      const statement = native.prepare(sql);
      // libsql receives the parameters as one array. Spread, it copies them and mistakes a single null for an object.
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

/**
 * Opens a database file with the binding that this runtime offers. SQLite creates the file if it is absent. Throws if
 * there is neither binding.
 */
export function openDriver(path: string): Driver {
  const Builtin = loadNodeSqlite();
  if (Builtin !== undefined) return wrapDatabase(new Builtin(path), true);
  const Libsql = loadLibsql(path);
  return wrapDatabase(new Libsql(path), false);
}

/**
 * Returns a select expression for a text column that both bindings can read even from a damaged file; see `readText`.
 */
export function textColumn(column: string): string {
  return `CAST(${column} AS BLOB) AS ${column}`;
}

/** Returns a select expression for an integer column, clamped to the range from -1 to 2^53 - 1; see `readInteger`. */
export function integerColumn(column: string): string {
  return `min(max(${column}, -1), ${Number.MAX_SAFE_INTEGER}) AS ${column}`;
}

/** Reads a cell that was selected through `textColumn`. A cell that is neither text nor bytes reads as ''. */
export function readText(cell: SqlValue | undefined): string {
  if (typeof cell === 'string') return cell;
  if (cell instanceof Uint8Array) return Buffer.from(cell.buffer, cell.byteOffset, cell.byteLength).toString('utf8');
  if (cell instanceof ArrayBuffer) return Buffer.from(cell).toString('utf8');
  return '';
}

/** Reads a cell that was selected through `integerColumn`. Anything but a safe integer reads as -1. */
export function readInteger(cell: SqlValue | undefined): number {
  return typeof cell === 'number' && Number.isSafeInteger(cell) ? cell : -1;
}
