/**
 * Recognizes the files of stores by their paths: everything in a data directory, and the databases of this process with
 * their companion files (`app.db-wal`, `app.db.owner`, …). Tools must not open them: closing any descriptor of a
 * database file drops the POSIX locks that SQLite holds on it in this process, and the `.owner` file contains a secret.
 * This file compares paths only and never reads the disk; both `/` and `\` are separators.
 */

/** The default data directory of a project. It is protected even if this process did not open its store. */
const DATA_DIRECTORY = '.rondo';

/** A file of this name marks its directory as a data directory, whatever the name of the directory. */
export const DATA_MARKER = '.rondo-data';

/** The suffixes of the database itself (none) and of its companion files. */
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

/** Returns a set that all loaded copies of this module share: POSIX locks belong to the process. */
function sharedPaths(key: symbol): Set<string> {
  const shared = globalThis as { [key: symbol]: Set<string> | undefined };
  const paths = shared[key] ?? new Set();
  shared[key] = paths;
  return paths;
}

/** Protects the store whose database has this real absolute path, until the process ends. */
export function protectStore(path: string): void {
  sharedPaths(DATABASES_KEY).add(path);
}

/** Protects the directory with this real absolute path and everything in it, until the process ends. */
export function protectDirectory(path: string): void {
  sharedPaths(DIRECTORIES_KEY).add(path);
}

/** Returns the real absolute paths of the data directories that this process uses or has used. */
export function protectedDirectories(): readonly string[] {
  return [...sharedPaths(DIRECTORIES_KEY)];
}

/** Returns the real absolute paths of the databases that this process uses or has used. */
export function protectedDatabases(): readonly string[] {
  return [...sharedPaths(DATABASES_KEY)];
}

/** Returns the paths of a database and of its companion files with fixed suffixes. */
export function storeFilesOf(path: string): readonly string[] {
  return STORE_FILE_SUFFIXES.map((suffix) => `${path}${suffix}`);
}

/** Returns the usual path of the key of a database: in the directory `keys` beside it. */
export function storeKeyFileOf(path: string): string {
  const [, directory = '', name = ''] = /^(.*[\\/])?([^\\/]*)$/s.exec(path) ?? [];
  return `${directory}keys/${name}.store-key`;
}

/**
 * Returns the path without the suffix of a companion file; undefined for a path without such a suffix. Only the path is
 * checked: neither file need exist.
 */
export function databasePathOf(path: string): string | undefined {
  const suffix = STORE_FILE_SUFFIXES.find((each) => each !== '' && path.endsWith(each));
  return suffix === undefined ? undefined : path.slice(0, -suffix.length);
}

/** True for a path with a segment `.rondo`, for a directory of `protectDirectory`, and for everything in them. */
export function isInDataDirectory(realPath: string): boolean {
  const path = normalizePath(realPath);
  // Some file systems are case-insensitive.
  if (path.toLowerCase().split('/').includes(DATA_DIRECTORY)) return true;
  for (const directory of sharedPaths(DIRECTORIES_KEY)) {
    const root = normalizePath(directory);
    if (path === root || path.startsWith(`${root}/`)) return true;
  }
  return false;
}

/** True for everything in a data directory, a marker file, a database of this process, and its companion files. */
export function isStoreFile(realPath: string): boolean {
  if (isInDataDirectory(realPath)) return true;
  const path = normalizePath(realPath);
  if (path.toLowerCase().endsWith(`/${DATA_MARKER}`)) return true;
  for (const database of sharedPaths(DATABASES_KEY)) {
    const databasePath = normalizePath(database);
    if (path.startsWith(databasePath) && isStoreFileSuffix(path.slice(databasePath.length))) return true;
  }
  return false;
}

/**
 * Returns those of the names in one directory whose `.anchor` or `.owner` companion is also there. Not every such file
 * is a database.
 */
export function namesWithAnchorOrOwner(names: readonly string[]): readonly string[] {
  const companions = names.filter((name) => /\.(?:anchor|owner)$/.test(name));
  if (companions.length === 0) return [];
  const all = new Set(names);
  return [...new Set(companions.map((name) => name.replace(/\.[^.]*$/, '')))].filter((name) => all.has(name));
}

/**
 * Returns the names in one directory that belong to stores of any process. A database is recognized by its `.anchor` or
 * `.owner` companion.
 *
 * @param isDatabase True if a file of this name is a database. Only its content shows that.
 */
export function storeFileNames(names: readonly string[], isDatabase: (name: string) => boolean): ReadonlySet<string> {
  const databases = namesWithAnchorOrOwner(names).filter(isDatabase);
  if (databases.length === 0) return new Set();
  return new Set(
    names.filter((name) =>
      databases.some((database) => name.startsWith(database) && isStoreFileSuffix(name.slice(database.length))),
    ),
  );
}

/**
 * True if a path that consists of a database's path and this suffix is the database itself or one of its companion
 * files. Any suffix that starts with `-` or `.` counts, if it stays in the same directory.
 */
function isStoreFileSuffix(suffix: string): boolean {
  return /^(?:[-.][^/]*)?$/.test(suffix);
}

/** Converts all separators to `/` and removes a trailing one. */
function normalizePath(path: string): string {
  return path.replace(/[\\/]+/g, '/').replace(/\/$/, '');
}
