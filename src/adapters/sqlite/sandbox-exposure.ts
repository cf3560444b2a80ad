/**
 * Delays a store until no sandboxed command can see its directory. Such a command could read the secret in the owner
 * file, or have planted files for the store to read. A command hides the stores that exist when it starts, so only a
 * store that is created later, or that the command does not hide, has to wait. Each side announces itself before it
 * looks for the other (base/announcement.ts), so at least one of them sees the other in any order of events. The store
 * then waits.
 */
import { lstatSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import {
  type AnnouncedDirectory,
  Announcement,
  isTrustedAnnouncement,
  listAnnouncements,
} from '../../base/announcement.js';
import { Fault } from '../../base/errors.js';
import { assertPathLength, resolveDatabasePath, type SqliteOptions } from './open-local-store.js';
import { toFault } from './sqlite-faults.js';

/** A database that no sandboxed command can see until it is released. */
interface UnexposedDatabase {
  /** The canonical path of the database. */
  readonly database: string;
  /** Ends the announcement of the store, so that commands no longer wait for it. */
  release(): void;
}

/** The directory of a database, or one of its parents. */
interface AncestorDirectory {
  readonly path: string;
  /** Device and inode number, separated by a colon. */
  readonly deviceAndInode: string;
}

const POLL_MS = 50;
const REPORT_AFTER_MS = 1000;
/** How long a store waits by default. The wait is bounded, because a process could hold an announcement forever. */
const MAX_WAIT_MS = 30_000;
/** Maximum number of attempts while the directory is replaced. A new directory takes two. */
const MAX_ATTEMPTS = 10;

/**
 * Waits until no sandboxed command can see the directory of this database, then creates the directory and secures the
 * files. Throws STORE_FAILED if that takes longer than `maxWaitMs`. Other platforms than Linux have no sandbox, and so
 * no wait.
 */
export async function waitUntilUnexposed(
  path: string,
  { notify }: Pick<SqliteOptions, 'notify'> = {},
  maxWaitMs: number = MAX_WAIT_MS,
): Promise<UnexposedDatabase> {
  if (process.platform !== 'linux') return { database: resolveDatabasePath(path), release: () => undefined };
  const begun = performance.now();
  for (let isReported = false; ; ) {
    const result = await tryToLocateUnexposed(path);
    if ('database' in result) return result;
    const waitedMs = performance.now() - begun;
    if (waitedMs > maxWaitMs) throw exposureFault(path, result);
    if (waitedMs > REPORT_AFTER_MS && !isReported) {
      isReported = true;
      notify?.(
        `Waiting to open ${path} until ${describeExposingCommand(result)} has ended, which would see the store.`,
      );
    }
    await setTimeout(POLL_MS);
  }
}

/** Returns the database, or the command that can see its directory. */
async function tryToLocateUnexposed(path: string): Promise<UnexposedDatabase | ExposingCommand> {
  assertPathLength(path);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const announcement = new Announcement();
    const release = (): void => announcement.release();
    try {
      const ancestors = ancestorDirectoriesOf(dirname(resolve(path)));
      const inodes = ancestors.map(({ deviceAndInode }) => deviceAndInode);
      // A complete store needs no announcement: a command that starts later recognizes and hides it.
      // guard: store-creation-announced
      if (!isRecognizableStore(path)) await announcement.add('store', inodes);
      const exposing = findExposingCommand(ancestors);
      const database = exposing === undefined ? resolveDatabasePath(path) : undefined;
      if (
        database !== undefined &&
        // guard: announced-directory-holds-the-store
        dirname(database) === ancestors[0]?.path
      )
        return { database, release };
      release();
      if (exposing !== undefined) return exposing;
      // The directory is new, so the next attempt announces the directory itself.
    } catch (error) {
      release();
      throw toFault(error, 'Opening', path);
    }
  }
  throw new Fault('STORE_FAILED', `${path} was not opened: its directory was replaced repeatedly. Try again.`, {
    path,
  });
}

/** A sandboxed command that can see the directory of a store. */
interface ExposingCommand {
  /** The directory that the command can see and that contains the store. */
  readonly root: AncestorDirectory;
  readonly command: AnnouncedDirectory;
}

/**
 * Returns a command that can see the first of these directories; undefined if there is none. `ancestors` are that
 * directory and its parents.
 */
function findExposingCommand(ancestors: readonly AncestorDirectory[]): ExposingCommand | undefined {
  const announcements = listAnnouncements();
  const [nearest] = ancestors;
  const isHiddenFrom = ({ announcementId }: AnnouncedDirectory): boolean =>
    announcements.some(
      (part) =>
        part.announcementId === announcementId &&
        ((part.kind === 'hides' && ancestors.some(({ deviceAndInode }) => deviceAndInode === part.directory)) ||
          (part.kind === 'covers' && part.directory === nearest?.deviceAndInode)),
    );
  for (const command of announcements) {
    if (command.kind !== 'command') continue;
    const root = ancestors.find(({ deviceAndInode }) => deviceAndInode === command.directory);
    // guard: store-waits-for-commands-that-see-it
    if (
      root !== undefined &&
      // guard: hidden-directory-delays-no-store
      !isHiddenFrom(command) &&
      // guard: only-trusted-announcement-delays-store
      isTrustedAnnouncement(command)
    )
      return { root, command };
  }
  return undefined;
}

/** True if the store is complete, so that commands recognize and hide it. */
function isRecognizableStore(path: string): boolean {
  const size = (file: string): number => lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size(path) > 0 && size(`${path}.anchor`) > 0;
}

/**
 * Returns the nearest existing directory at or above a path and its parents, except for the root of the file system,
 * which no command announces.
 */
function ancestorDirectoriesOf(directory: string): readonly AncestorDirectory[] {
  const status = statSync(directory, { bigint: true, throwIfNoEntry: false });
  if (status === undefined && dirname(directory) !== directory) return ancestorDirectoriesOf(dirname(directory));
  const ancestors: AncestorDirectory[] = [];
  for (let path = realpathSync(directory); path !== dirname(path); path = dirname(path)) {
    const { dev, ino } = statSync(path, { bigint: true });
    ancestors.push({ path, deviceAndInode: `${dev}:${ino}` });
  }
  return ancestors;
}

/** Describes a command in a message to the operator. */
function describeExposingCommand({ root, command: { pid } }: ExposingCommand): string {
  const who = pid === process.pid ? 'this process' : `process ${pid}`;
  return `a sandboxed command of ${who} in ${root.path}`;
}

function exposureFault(path: string, exposing: ExposingCommand): Fault {
  return new Fault(
    'STORE_FAILED',
    `${path} was not opened, as ${describeExposingCommand(exposing)} would see the store. ` +
      'Wait until that command has ended, or choose a directory outside of its roots.',
    { path, pid: exposing.command.pid },
  );
}
