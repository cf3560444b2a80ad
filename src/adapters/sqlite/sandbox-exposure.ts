/**
 * Before a process uses a store, no sandboxed command may see the directory of the store: it could read the secret in the record of
 * the owner, or have planted what it wants to be believed. A command hides the stores that are there when it begins, so only a
 * store that is created later has to wait for it, and one that is not among those that it hides. Both sides announce what they do
 * before they look (base/announcement.ts), so one of them sees the other, whatever the order; the store gives way.
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

/** A database that no sandboxed command sees, until it is released. */
export interface UnexposedDatabase {
  readonly database: string;
  release(): void;
}

/** A directory on the way to a database. */
interface AncestorDirectory {
  readonly path: string;
  /** Device and inode. */
  readonly deviceAndInode: string;
}

const POLL_MS = 50;
const REPORT_AFTER_MS = 1000;
/** A name could be held for ever; this bounds what that costs. */
const MAX_WAIT_MS = 30_000;
/** A new directory takes two. */
const MAX_ATTEMPTS = 10;

/** Waits until no sandboxed command sees the directory of this database, and makes the directory. Only Linux has sandboxes. */
export async function waitUntilUnexposed(
  path: string,
  { notify }: Pick<SqliteOptions, 'notify'> = {},
  patienceMs: number = MAX_WAIT_MS,
): Promise<UnexposedDatabase> {
  if (process.platform !== 'linux') return { database: resolveDatabasePath(path), release: () => undefined };
  const begun = performance.now();
  for (let isReported = false; ; ) {
    const tried = await tryToLocateUnexposed(path);
    if ('database' in tried) return tried;
    const waited = performance.now() - begun;
    if (waited > patienceMs) throw exposureFault(path, tried);
    if (waited > REPORT_AFTER_MS && !isReported) {
      isReported = true;
      notify?.(`Waiting to open ${path} until ${describeExposingCommand(tried)} has ended, which would see the store.`);
    }
    await setTimeout(POLL_MS);
  }
}

/** The database, or the command that sees its directory. */
async function tryToLocateUnexposed(path: string): Promise<UnexposedDatabase | ExposingCommand> {
  assertPathLength(path);
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    const announcement = new Announcement();
    const release = (): void => announcement.release();
    try {
      const places = ancestorDirectoriesOf(dirname(resolve(path)));
      const directories = places.map(({ deviceAndInode }) => deviceAndInode);
      // A command that begins later recognises a store that is complete.
      // guard: store-creation-announced
      if (!isRecognizableStore(path)) await announcement.add('store', directories);
      const command = findExposingCommand(places);
      const database = command === undefined ? resolveDatabasePath(path) : undefined;
      if (
        database !== undefined &&
        // guard: announced-directory-holds-the-store
        dirname(database) === places[0]?.path
      )
        return { database, release };
      release();
      if (command !== undefined) return command;
      // The directory is new, so it has to be announced itself.
    } catch (error) {
      release();
      throw toFault(error, 'Opening', path);
    }
  }
  throw new Fault('STORE_FAILED', `${path} was not opened: its directory is replaced again and again.`, { path });
}

interface ExposingCommand {
  readonly place: AncestorDirectory;
  readonly command: AnnouncedDirectory;
}

/** A command that sees the first of these directories, and the one that it was given. */
function findExposingCommand(places: readonly AncestorDirectory[]): ExposingCommand | undefined {
  const all = listAnnouncements();
  const [nearest] = places;
  const isHiddenFrom = ({ announcementId }: AnnouncedDirectory): boolean =>
    all.some(
      (part) =>
        part.announcementId === announcementId &&
        ((part.kind === 'hides' && places.some(({ deviceAndInode }) => deviceAndInode === part.directory)) ||
          (part.kind === 'covers' && part.directory === nearest?.deviceAndInode)),
    );
  for (const command of all) {
    if (command.kind !== 'command') continue;
    const place = places.find(({ deviceAndInode }) => deviceAndInode === command.directory);
    // guard: store-waits-for-commands-that-see-it
    if (
      place !== undefined &&
      // guard: hidden-directory-delays-no-store
      !isHiddenFrom(command) &&
      // guard: only-trusted-announcement-delays-store
      isTrustedAnnouncement(command)
    )
      return { place, command };
  }
  return undefined;
}

/** True for a store that commands recognise. */
function isRecognizableStore(path: string): boolean {
  const size = (file: string): number => lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size(path) > 0 && size(`${path}.anchor`) > 0;
}

/** The nearest directory that is there, and those above it but for the whole file system, which no command is given. */
function ancestorDirectoriesOf(directory: string): readonly AncestorDirectory[] {
  const status = statSync(directory, { bigint: true, throwIfNoEntry: false });
  if (status === undefined && dirname(directory) !== directory) return ancestorDirectoriesOf(dirname(directory));
  const places: AncestorDirectory[] = [];
  for (let path = realpathSync(directory); path !== dirname(path); path = dirname(path)) {
    const { dev, ino } = statSync(path, { bigint: true });
    places.push({ path, deviceAndInode: `${dev}:${ino}` });
  }
  return places;
}

/** The command, for people. */
function describeExposingCommand({ place, command: { pid } }: ExposingCommand): string {
  const who = pid === process.pid ? 'this process' : `process ${pid}`;
  return `a sandboxed command of ${who} in ${place.path}`;
}

function exposureFault(path: string, tried: ExposingCommand): Fault {
  return new Fault(
    'STORE_FAILED',
    `${path} was not opened, as ${describeExposingCommand(tried)} would see the store. ` +
      'Wait until that command has ended, or choose a directory outside of its roots.',
    { path, pid: tried.command.pid },
  );
}
