/**
 * The files of the stores that this process uses: the database and the files that lie beside it under its name. Tools must
 * not open them. Closing any descriptor of a database file drops the POSIX locks that SQLite holds on it in the same
 * process, and the owner's file holds a secret. This file only compares paths as text; both `/` and `\` separate.
 */

/** The default data directory of a project. All of it belongs to a store, whether this process opened that store or not. */
const DATA_DIRECTORY = '.rondo';

const SUFFIXES = [
  '',
  '-wal',
  '-shm',
  '-journal',
  '.anchor',
  '.anchor.new',
  '.lock',
  '.lock-journal',
  '.lock-wal',
  '.lock-shm',
  '.owner',
  '.sock',
];

const REGISTRY = Symbol.for('rondo.store-files');

/** Shared by all copies of this module that are loaded: POSIX locks belong to the process. */
function registry(): Set<string> {
  const shared = globalThis as { [REGISTRY]?: Set<string> };
  shared[REGISTRY] ??= new Set();
  return shared[REGISTRY];
}

/** Protects the store whose database has this real absolute path, for as long as the process lives. */
export function protectStore(path: string): void {
  registry().add(path);
}

/** The real absolute paths of the databases that this process uses or has used. */
export function protectedPaths(): readonly string[] {
  return [...registry()];
}

/** The paths of a database and of the files beside it that have a fixed name. */
export function storeFilesOf(path: string): readonly string[] {
  return SUFFIXES.map((suffix) => `${path}${suffix}`);
}

/** The path of the database that a file of this name lies beside; undefined for any other name. */
export function databaseOf(path: string): string | undefined {
  const suffix = SUFFIXES.find((end) => end !== '' && path.endsWith(end));
  return suffix === undefined ? undefined : path.slice(0, -suffix.length);
}

/** True for a `.rondo` directory and all that is in it. */
export function isInDataDirectory(realPath: string): boolean {
  return normalized(realPath).split('/').includes(DATA_DIRECTORY);
}

/** True for a database that this process uses, for the files beside it under its name, and for all that is in a `.rondo`. */
export function isStoreFile(realPath: string): boolean {
  if (isInDataDirectory(realPath)) return true;
  const path = normalized(realPath);
  for (const database of registry()) {
    const own = normalized(database);
    if (path.startsWith(own) && /^(?:[-.][^/]*)?$/.test(path.slice(own.length))) return true;
  }
  return false;
}

/** With one kind of separator, and none at the end. */
function normalized(path: string): string {
  return path.replace(/[\\/]+/g, '/').replace(/\/$/, '');
}
