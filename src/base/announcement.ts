/**
 * Announcements between the processes of one user on Linux: names of sockets in the abstract namespace. No file
 * operation removes such a name, and the kernel drops it when its process ends. Any user, and any process in another
 * pid namespace (such as a sandboxed command with network access), can bind any name. An announcement is therefore
 * trusted only if a process of this user that is visible in /proc holds the name. That suffices: store files have mode
 * 0600, so only this user's processes matter, and root in a sandbox lacks the capability to read the files of others.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { createServer } from 'node:net';

/** A bound name. It is held until it is released or the process ends. */
interface HeldSocketName {
  release(): void;
}

/**
 * What is announced about a directory:
 * - `command`: a running command sees the directory and its contents;
 * - `hides`: the command sees nothing of this subdirectory;
 * - `covers`: the command sees the entries that this subdirectory had, except those of a store, and no new ones;
 * - `store`: a store is being created in the directory.
 */
export type AnnouncementKind = 'command' | 'hides' | 'covers' | 'store';

/** One announced directory, parsed from a socket name. */
export interface AnnouncedDirectory {
  readonly kind: AnnouncementKind;
  /** The process id in the name: claimed by the process that bound it, and not verified. */
  readonly pid: number;
  /** Common to all names of one announcement. */
  readonly announcementId: string;
  /** Device and inode of the directory, as `stat -c %d:%i` prints them. */
  readonly directory: string;
  /** The inode of the socket that holds the name. */
  readonly socketInode: string;
}

interface AbstractSocket {
  readonly name: string;
  readonly inode: string;
}

const UNIX_SOCKETS_PATH = '/proc/net/unix';
const ANNOUNCED_NAME_PATTERN = /^rondo-(command|hides|covers|store)-((\d+)-[0-9a-f]{16})-(\d+)-(\d+)$/;

/** Binds a name. Resolves to undefined if the name is bound already, and rejects with any other error. */
export function holdSocketName(name: string): Promise<HeldSocketName | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    // Exclusive: cluster workers would otherwise share one name.
    server.listen({ path: `\0${name}`, exclusive: true }, () => {
      server.unref();
      resolve({ release: () => void server.close() });
    });
  });
}

/**
 * Returns the inode of the socket that holds this name now; undefined if none does or the name is not one of Rondo's.
 */
export function socketInodeOf(name: string): string | undefined {
  return abstractSockets().find((socket) => socket.name === name)?.inode;
}

/**
 * True if a visible process of this user has the socket with this inode open. `expectedPid` is checked first. Throws on
 * a system without /proc.
 */
export function isHeldByUser(socketInode: string, expectedPid?: number): boolean {
  if (expectedPid !== undefined && processHasSocket(String(expectedPid), socketInode)) return true;
  return readdirSync('/proc').some((entry) => /^\d+$/.test(entry) && processHasSocket(entry, socketInode));
}

/** Returns the directories that any process announces, unverified. */
export function listAnnouncements(): readonly AnnouncedDirectory[] {
  // The kernel returns the table in chunks. If a socket closes between two chunks, another one can be skipped; it is
  // then in the second read.
  const sockets = new Map([...abstractSockets(), ...abstractSockets()].map((socket) => [socket.name, socket]));
  return [...sockets.values()].flatMap(({ name, inode }) => {
    const [, kind, announcementId = '', pid, device, directoryInode] = ANNOUNCED_NAME_PATTERN.exec(name) ?? [];
    if (kind === undefined) return [];
    const directory = `${device}:${directoryInode}`;
    return [{ kind: kind as AnnouncementKind, pid: Number(pid), announcementId, directory, socketInode: inode }];
  });
}

/**
 * True if a visible process of this user holds the announcement's name. Also true if the process that the name claims
 * belongs to this user and its descriptors are unreadable, so that the claim cannot be checked.
 */
export function isTrustedAnnouncement({ socketInode, pid }: AnnouncedDirectory): boolean {
  return isHeldByUser(socketInode, pid) || hasUnreadableDescriptors(pid);
}

/** A group of names that this process holds and releases together. */
export class Announcement {
  private readonly id = `${process.pid}-${randomBytes(8).toString('hex')}`;
  private heldNames: HeldSocketName[] = [];

  /**
   * Announces directories. Rejects if a name cannot be bound.
   * @param directories device and inode of each, as `stat -c %d:%i` prints them
   */
  async add(kind: AnnouncementKind, directories: Iterable<string>): Promise<void> {
    for (const directory of new Set(directories)) {
      const name = `rondo-${kind}-${this.id}-${directory.replace(':', '-')}`;
      const heldName = await holdSocketName(name);
      if (heldName !== undefined) this.heldNames.push(heldName);
    }
  }

  /** Releases all names. */
  release(): void {
    for (const name of this.heldNames.splice(0)) name.release();
  }
}

/**
 * Returns the sockets in the abstract namespace whose names start with `rondo-`; none on a system without
 * /proc/net/unix.
 */
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
    // The kernel prints trailing zero bytes of a name as `@`.
    return fields.length === 2 && inode !== undefined
      ? [{ name: `rondo-${fields[1]?.replace(/@+$/, '')}`, inode }]
      : [];
  });
}

/** True if a process of this user has the socket with this inode open. False if that cannot be read. */
function processHasSocket(pid: string, socket: string): boolean {
  const directory = `/proc/${pid}/fd`;
  try {
    const isOurs = statSync(`/proc/${pid}`).uid === process.getuid?.();
    return (
      isOurs && readdirSync(directory).some((fd) => readLinkIfPresent(`${directory}/${fd}`) === `socket:[${socket}]`)
    );
  } catch {
    return false;
  }
}

/**
 * True for a process of this user whose descriptors are unreadable, for example because its program has capabilities.
 * False for a process that does not exist.
 */
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

/**
 * Returns the target of a symbolic link, or undefined if it cannot be read, for example because the link no longer
 * exists.
 */
function readLinkIfPresent(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
