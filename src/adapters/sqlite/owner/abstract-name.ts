/**
 * The name of a database among the processes of a Linux machine: a socket in the abstract namespace, which no file operation can
 * drop. Any user can take any name there, so a name that a process of another user has does not count.
 */
import { basename } from 'node:path';
import { holdSocketName as hold, isHeldByUser, socketInodeOf } from '../../../base/announcement.js';
import { digestOfText } from '../../../journal/record.js';
import { directoryIdentityOf } from '../files.js';
import type { OwnerLock } from './lock.js';

const NO_LOCK: OwnerLock = { release: () => {} };

/** The name, without the zero that marks the abstract namespace. */
export function abstractNameOf(database: string): string {
  return `rondo-${process.getuid?.()}-${digestOfText(`${directoryIdentityOf(database)} ${basename(database)}`)}`;
}

/** Holds the name of a database; undefined if another process of this user has it. */
export async function tryToHoldName(database: string): Promise<OwnerLock | undefined> {
  if (process.platform !== 'linux') return NO_LOCK;
  const name = abstractNameOf(database);
  return (await hold(name)) ?? (isHeldByOtherUser(name) ? NO_LOCK : undefined);
}

/** True if the name is taken, and by no process of this user. */
function isHeldByOtherUser(name: string): boolean {
  const socket = socketInodeOf(name);
  // Nobody has it any more; whoever asks again finds it free.
  return socket !== undefined && !isHeldByUser(socket);
}
