/**
 * The name of a database in the abstract socket namespace of Linux, which no file operation can drop. Any user can bind
 * any name there, so a name that is held by a process of another user is ignored.
 */
import { basename } from 'node:path';
import { holdSocketName, isHeldByUser, socketInodeOf } from '../../../base/announcement.js';
import { digestOfText } from '../../../journal/record.js';
import { directoryIdentityOf } from '../files.js';
import type { OwnerLock } from './lock.js';

/** Stands for a name that cannot be held. */
const NO_LOCK: OwnerLock = { release: () => {} };

/** Returns the name, without the leading zero byte of the abstract namespace. */
export function abstractNameOf(database: string): string {
  return `rondo-${process.getuid?.()}-${digestOfText(`${directoryIdentityOf(database)} ${basename(database)}`)}`;
}

/**
 * Takes the name of a database; undefined if this user already holds it, in this process or another. Returns a lock
 * without effect if a process of another user holds the name, and on other platforms than Linux.
 */
export async function tryToHoldName(database: string): Promise<OwnerLock | undefined> {
  if (process.platform !== 'linux') return NO_LOCK;
  const name = abstractNameOf(database);
  return (await holdSocketName(name)) ?? (isHeldByOtherUser(name) ? NO_LOCK : undefined);
}

/** True if the name is held, but not by a process of this user. */
function isHeldByOtherUser(name: string): boolean {
  const socket = socketInodeOf(name);
  // Without a socket the name was released meanwhile. The next attempt can take it.
  return socket !== undefined && !isHeldByUser(socket);
}
