/**
 * The name of a database among the processes of a Linux machine: a socket in the abstract namespace, which no file operation can
 * drop. Any user can take any name there, so a name that a process of another user has does not count.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { basename } from 'node:path';
import { digest } from '../../../journal/record.js';
import { directoryOf, isOurs } from '../files.js';
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
  const server: Server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(isForeign(name) ? NOTHING : undefined);
      else reject(error);
    });
    server.listen({ path: `\0${name}` }, () => {
      server.unref();
      resolve({ release: () => void server.close() });
    });
  });
}

/** True if the name is taken, and by no process of this user. */
function isForeign(name: string): boolean {
  const line = readFileSync('/proc/net/unix', 'latin1')
    .split('\n')
    .find((entry) => entry.includes(` @${name}`));
  // Nobody has it any more; whoever asks again finds it free.
  if (line === undefined) return false;
  const socket = `socket:[${line.split(/\s+/)[6]}]`;
  const processes = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  return !processes.some((pid) => has(pid, socket));
}

function has(pid: string, socket: string): boolean {
  const directory = `/proc/${pid}/fd`;
  try {
    return (
      isOurs(statSync(`/proc/${pid}`)) && readdirSync(directory).some((one) => linkAt(`${directory}/${one}`) === socket)
    );
  } catch {
    return false;
  }
}

/** Where a link leads; undefined if it is gone. */
function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
