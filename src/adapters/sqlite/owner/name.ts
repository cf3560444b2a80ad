/**
 * The name of a database among the processes of a Linux machine: a socket in the abstract namespace, which no file operation can
 * drop. Any user can take any name there, so a name that a process of another user has does not count.
 */
import { basename } from 'node:path';
import { holdName as hold, isHeldByUser, socketNamed } from '../../../base/announcement.js';
import { digest } from '../../../journal/record.js';
import { directoryOf } from '../files.js';
import type { OwnerLock } from './lock.js';

const NOTHING: OwnerLock = { release: () => {} };

/** The name, without the zero that marks the abstract namespace. */
export function nameOf(database: string): string {
  return `rondo-${process.getuid?.()}-${digest(`${directoryOf(database)} ${basename(database)}`)}`;
}

/** Holds the name of a database; undefined if another process of this user has it. */
export async function holdName(database: string): Promise<OwnerLock | undefined> {
  if (process.platform !== 'linux') return NOTHING;
  const name = nameOf(database);
  return (await hold(name)) ?? (isForeign(name) ? NOTHING : undefined);
}

/** True if the name is taken, and by no process of this user. */
function isForeign(name: string): boolean {
  const socket = socketNamed(name);
  // Nobody has it any more; whoever asks again finds it free.
  return socket !== undefined && !isHeldByUser(socket);
}
