/**
 * Before a process uses a store, no sandboxed command may see the directory of the store: it could read the secret in the record of
 * the owner, or have planted what it wants to be believed. A command hides the stores that are there when it begins, so only a
 * store that is created later has to wait for it, and one that is not among those that it hides. Both sides announce what they do
 * before they look (base/announcement.ts), so one of them sees the other, whatever the order; the store gives way.
 */
import { lstatSync, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type Announced, Announcement, announcements, isTrusted } from '../../base/announcement.js';
import { Fault } from '../../base/errors.js';
import { faultOf } from './failure.js';
import { assertPathLength, locate, type SqliteOptions } from './open.js';

/** A database that no sandboxed command sees, until it is released. */
export interface Admission {
  readonly database: string;
  release(): void;
}

/** A directory on the way to a database. */
interface Place {
  readonly path: string;
  /** Device and inode. */
  readonly directory: string;
}

const POLL_MS = 50;
const REPORT_MS = 1000;
/** A name could be held for ever; this bounds what that costs. */
const PATIENCE_MS = 30_000;
/** A new directory takes two. */
const MAX_ROUNDS = 10;

/** Waits until no sandboxed command sees the directory of this database, and makes the directory. Only Linux has sandboxes. */
export async function admit(
  path: string,
  { notify }: Pick<SqliteOptions, 'notify'> = {},
  patienceMs: number = PATIENCE_MS,
): Promise<Admission> {
  if (process.platform !== 'linux') return { database: locate(path), release: () => undefined };
  const begun = performance.now();
  for (let isReported = false; ; ) {
    const tried = await attempt(path);
    if ('database' in tried) return tried;
    const waited = performance.now() - begun;
    if (waited > patienceMs) throw seen(path, tried);
    if (waited > REPORT_MS && !isReported) {
      isReported = true;
      notify?.(`Waiting to open ${path} until ${commandOf(tried)} has ended, which would see the store.`);
    }
    await setTimeout(POLL_MS);
  }
}

/** The database, or the command that sees its directory. */
async function attempt(path: string): Promise<Admission | Seen> {
  assertPathLength(path);
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const announcement = new Announcement();
    const release = (): void => announcement.release();
    try {
      const places = placesOf(dirname(resolve(path)));
      const directories = places.map(({ directory }) => directory);
      // A command that begins later recognises a store that is complete.
      // guard: store-creation-announced
      if (!isComplete(path)) await announcement.add('store', directories);
      const command = commandIn(places);
      const database = command === undefined ? locate(path) : undefined;
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
      throw faultOf(error, 'Opening', path);
    }
  }
  throw new Fault('STORE_FAILED', `${path} was not opened: its directory is replaced again and again.`, { path });
}

interface Seen {
  readonly place: Place;
  readonly command: Announced;
}

/** A command that sees the first of these directories, and the one that it was given. */
function commandIn(places: readonly Place[]): Seen | undefined {
  const all = announcements();
  const [nearest] = places;
  const isHiddenFrom = ({ announcement }: Announced): boolean =>
    all.some(
      (part) =>
        part.announcement === announcement &&
        ((part.kind === 'hides' && places.some(({ directory }) => directory === part.directory)) ||
          (part.kind === 'covers' && part.directory === nearest?.directory)),
    );
  for (const command of all) {
    if (command.kind !== 'command') continue;
    const place = places.find(({ directory }) => directory === command.directory);
    // guard: store-waits-for-commands-that-see-it
    if (
      place !== undefined &&
      // guard: hidden-directory-delays-no-store
      !isHiddenFrom(command) &&
      // guard: only-trusted-announcement-delays-store
      isTrusted(command)
    )
      return { place, command };
  }
  return undefined;
}

/** True for a store that commands recognise. */
function isComplete(path: string): boolean {
  const size = (file: string): number => lstatSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return size(path) > 0 && size(`${path}.anchor`) > 0;
}

/** The nearest directory that is there, and those above it but for the whole file system, which no command is given. */
function placesOf(directory: string): readonly Place[] {
  const status = statSync(directory, { bigint: true, throwIfNoEntry: false });
  if (status === undefined && dirname(directory) !== directory) return placesOf(dirname(directory));
  const places: Place[] = [];
  for (let path = realpathSync(directory); path !== dirname(path); path = dirname(path)) {
    const { dev, ino } = statSync(path, { bigint: true });
    places.push({ path, directory: `${dev}:${ino}` });
  }
  return places;
}

/** The command, for people. */
function commandOf({ place, command: { pid } }: Seen): string {
  const who = pid === process.pid ? 'this process' : `process ${pid}`;
  return `a sandboxed command of ${who} in ${place.path}`;
}

function seen(path: string, tried: Seen): Fault {
  return new Fault(
    'STORE_FAILED',
    `${path} was not opened, as ${commandOf(tried)} would see the store. ` +
      'Wait until that command has ended, or choose a directory outside of its roots.',
    { path, pid: tried.command.pid },
  );
}
