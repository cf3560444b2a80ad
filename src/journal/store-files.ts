/**
 * What belongs to a store, as text: data directories with all that is in them, and the databases that this process uses, with
 * the files that lie beside them under their names. Tools must not open these. Closing any descriptor of a database file
 * drops the POSIX locks that SQLite holds on it in the same process, and the owner's file holds a secret. This file only
 * compares paths; both `/` and `\` separate.
 */

/** The default data directory of a project. All of it belongs to a store, whether this process opened that store or not. */
const DATA_DIRECTORY = '.rondo';

/** A file of this name makes the directory it lies in a data directory, whatever the directory is called. */
export const DATA_MARKER = '.rondo-data';

const STORE_FILE_SUFFIXES = [
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

const DATABASES_KEY = Symbol.for('rondo.store-files');
const DIRECTORIES_KEY = Symbol.for('rondo.data-directories');

/** Shared by all copies of this module that are loaded: POSIX locks belong to the process. */
function sharedPaths(kind: symbol): Set<string> {
  const shared = globalThis as { [kind: symbol]: Set<string> | undefined };
  const known = shared[kind] ?? new Set();
  shared[kind] = known;
  return known;
}

/** Protects the store whose database has this real absolute path, for as long as the process lives. */
export function protectStore(path: string): void {
  sharedPaths(DATABASES_KEY).add(path);
}

/** Protects a directory with this real absolute path and all that is in it, for as long as the process lives. */
export function protectDirectory(path: string): void {
  sharedPaths(DIRECTORIES_KEY).add(path);
}

/** The real absolute paths of the data directories that this process uses or has used. */
export function protectedDirectories(): readonly string[] {
  return [...sharedPaths(DIRECTORIES_KEY)];
}

/** The real absolute paths of the databases that this process uses or has used. */
export function protectedDatabases(): readonly string[] {
  return [...sharedPaths(DATABASES_KEY)];
}

/** The paths of a database and of the files beside it that have a fixed name. */
export function storeFilesOf(path: string): readonly string[] {
  return STORE_FILE_SUFFIXES.map((suffix) => `${path}${suffix}`);
}

/** The path of the database that a file of this name lies beside; undefined for any other name. */
export function databasePathOf(path: string): string | undefined {
  const suffix = STORE_FILE_SUFFIXES.find((end) => end !== '' && path.endsWith(end));
  return suffix === undefined ? undefined : path.slice(0, -suffix.length);
}

/** True for a data directory, as far as its path tells, and for all that is in it. */
export function isInDataDirectory(realPath: string): boolean {
  const path = normalizePath(realPath);
  // Some file systems do not tell upper case from lower case.
  if (path.toLowerCase().split('/').includes(DATA_DIRECTORY)) return true;
  for (const directory of sharedPaths(DIRECTORIES_KEY)) {
    const own = normalizePath(directory);
    if (path === own || path.startsWith(`${own}/`)) return true;
  }
  return false;
}

/** True for what is in a data directory, the marker of one, a database that this process uses, and the files beside it. */
export function isStoreFile(realPath: string): boolean {
  if (isInDataDirectory(realPath)) return true;
  const path = normalizePath(realPath);
  if (path.toLowerCase().endsWith(`/${DATA_MARKER}`)) return true;
  for (const database of sharedPaths(DATABASES_KEY)) {
    const own = normalizePath(database);
    if (path.startsWith(own) && isStoreFileSuffix(path.slice(own.length))) return true;
  }
  return false;
}

/** The names in one directory beside which an anchor or the record of an owner lies: those of databases, and of files that are none. */
export function namesWithAnchorOrOwner(names: readonly string[]): readonly string[] {
  const records = names.filter((name) => /\.(?:anchor|owner)$/.test(name));
  if (records.length === 0) return [];
  const all = new Set(names);
  return [...new Set(records.map((name) => name.replace(/\.[^.]*$/, '')))].filter((name) => all.has(name));
}

/**
 * The names in one directory that belong to stores, by the files that lie beside each other: a database of any process is
 * known by the anchor or the owner's record beside it.
 * @param isDatabase whether a file of this name is a database, which only its content tells.
 */
export function storeFileNames(names: readonly string[], isDatabase: (name: string) => boolean): ReadonlySet<string> {
  const databases = namesWithAnchorOrOwner(names).filter(isDatabase);
  if (databases.length === 0) return new Set();
  return new Set(
    names.filter((name) => databases.some((own) => name.startsWith(own) && isStoreFileSuffix(name.slice(own.length)))),
  );
}

/** What follows the path of a database in the paths of the files beside it. */
function isStoreFileSuffix(rest: string): boolean {
  return /^(?:[-.][^/]*)?$/.test(rest);
}

/** With one kind of separator, and none at the end. */
function normalizePath(path: string): string {
  return path.replace(/[\\/]+/g, '/').replace(/\/$/, '');
}
