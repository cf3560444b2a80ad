/**
 * What the processes of one user on a Linux machine announce to each other: names of sockets in the abstract namespace. No file
 * operation removes such a name, and the kernel drops it when its process ends, however it ends. Any user can take any name, and so
 * can a process of another pid namespace, for example a command in a sandbox with network. So a name counts only if a
 * process of this user that can be seen in /proc holds it: nothing else has to be believed, because the files of a store have
 * mode 0600, and root in a sandbox has no capability to read those of others.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { createServer } from 'node:net';

/** A name that is held until it is released or the process ends. */
export interface HeldSocketName {
  release(): void;
}

/**
 * What is announced about a directory: a command sees it with all that is in it (`command`), except this part of it (`hides`) or the
 * files in this part (`covers`); or a store is being created in it (`store`).
 */
export type AnnouncementKind = 'command' | 'hides' | 'covers' | 'store';

export interface AnnouncedDirectory {
  readonly kind: AnnouncementKind;
  /** The process that holds the name, as that process calls itself. */
  readonly pid: number;
  /** What all names of one announcement share. */
  readonly announcementId: string;
  /** Device and inode of the directory, as `stat -c %d:%i` prints them. */
  readonly directory: string;
  readonly socketInode: string;
}

interface AbstractSocket {
  readonly name: string;
  readonly inode: string;
}

const UNIX_SOCKETS_PATH = '/proc/net/unix';
const ANNOUNCED_NAME_PATTERN = /^rondo-(command|hides|covers|store)-((\d+)-[0-9a-f]{16})-(\d+)-(\d+)$/;

/** Holds a name; undefined if it is taken. */
export function holdSocketName(name: string): Promise<HeldSocketName | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    // Exclusive: workers of a cluster would otherwise share one name.
    server.listen({ path: `\0${name}`, exclusive: true }, () => {
      server.unref();
      resolve({ release: () => void server.close() });
    });
  });
}

/** The socket that has this name now. */
export function socketInodeOf(name: string): string | undefined {
  return abstractSockets().find((socket) => socket.name === name)?.inode;
}

/** True if a process of this user has this socket, which the process `likely` is asked for first. */
export function isHeldByUser(socket: string, likely?: number): boolean {
  if (likely !== undefined && processHasSocket(String(likely), socket)) return true;
  return readdirSync('/proc').some((entry) => /^\d+$/.test(entry) && processHasSocket(entry, socket));
}

/** The announcements of all processes, without a check of who holds them. */
export function listAnnouncements(): readonly AnnouncedDirectory[] {
  // Between two parts of the list an entry can be left out if another one ends. It is in the next list.
  const sockets = new Map([...abstractSockets(), ...abstractSockets()].map((socket) => [socket.name, socket]));
  return [...sockets.values()].flatMap(({ name, inode }) => {
    const [, kind, announcementId = '', pid, device, file] = ANNOUNCED_NAME_PATTERN.exec(name) ?? [];
    if (kind === undefined) return [];
    const directory = `${device}:${file}`;
    return [{ kind: kind as AnnouncementKind, pid: Number(pid), announcementId, directory, socketInode: inode }];
  });
}

/** True if the announcement counts: see above. */
export function isTrustedAnnouncement({ socketInode, pid }: AnnouncedDirectory): boolean {
  return isHeldByUser(socketInode, pid) || hasUnreadableDescriptors(pid);
}

/** Names of this process that are released together. */
export class Announcement {
  private readonly id = `${process.pid}-${randomBytes(8).toString('hex')}`;
  private heldNames: HeldSocketName[] = [];

  /** @param directories device and inode of each, as `stat -c %d:%i` prints them. */
  async add(kind: AnnouncementKind, directories: Iterable<string>): Promise<void> {
    for (const directory of new Set(directories)) {
      const name = `rondo-${kind}-${this.id}-${directory.replace(':', '-')}`;
      const held = await holdSocketName(name);
      if (held !== undefined) this.heldNames.push(held);
    }
  }

  release(): void {
    for (const name of this.heldNames.splice(0)) name.release();
  }
}

/** The named sockets of the abstract namespace; none where the system does not list them. */
function abstractSockets(): readonly AbstractSocket[] {
  let table: string;
  try {
    table = readFileSync(UNIX_SOCKETS_PATH, 'latin1');
  } catch {
    return [];
  }
  if (!table.includes(' @rondo-')) return [];
  return table.split('\n').flatMap((line) => {
    const fields = line.split(' @rondo-');
    const inode = /(\d+) *$/.exec(fields[0] ?? '')?.[1];
    // Zeros at the end of a name are printed as `@`.
    return fields.length === 2 && inode !== undefined
      ? [{ name: `rondo-${fields[1]?.replace(/@+$/, '')}`, inode }]
      : [];
  });
}

function processHasSocket(pid: string, socket: string): boolean {
  const directory = `/proc/${pid}/fd`;
  try {
    const isOurs = statSync(`/proc/${pid}`).uid === process.getuid?.();
    return (
      isOurs && readdirSync(directory).some((one) => readLinkIfPresent(`${directory}/${one}`) === `socket:[${socket}]`)
    );
  } catch {
    return false;
  }
}

/** True for a process of this user whose descriptors are not shown, for example because its program has capabilities. */
function hasUnreadableDescriptors(pid: number): boolean {
  try {
    readdirSync(`/proc/${pid}/fd`);
    return false;
  } catch {
    return /^Uid:\s+(\d+)/m.exec(readProcStatus(pid))?.[1] === String(process.getuid?.());
  }
}

function readProcStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'latin1');
  } catch {
    return '';
  }
}

/** Where a link leads; undefined if it is gone. */
function readLinkIfPresent(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
