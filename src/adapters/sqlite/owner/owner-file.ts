/**
 * The owner file next to the database: which process is the owner, where it listens, and the secret with which owner
 * and clients authenticate each other. The file is trusted only if it is a regular file of this user with mode 0600 (on
 * Windows, any regular file) that was written for this very directory. A file from a clone, a copy or another user is
 * ignored.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { directoryIdentityOf, identityAt, isOwnedByThisUser, writeNewFile } from '../files.js';
import type { ProcessId } from './process.js';
import { adjacentSocketAddress, isRuntimeSocketAddress } from './socket-address.js';

/** The owner of a store. */
export interface OwnerInfo extends ProcessId {
  /** The address at which the owner listens. */
  readonly socket: string;
  /** The shared secret, 32 bytes in hex. */
  readonly secret: string;
  /** When the last full check of the store began, in milliseconds since the epoch. Files of earlier versions have none. */
  readonly checkedAt?: number;
}

/**
 * The content of the file. A socket next to the database is stored as `ADJACENT_SOCKET`, without its path, because the
 * directory may be mounted elsewhere.
 */
interface OwnerFileContent extends OwnerInfo {
  /** Identity of the directory for which the file was written. */
  readonly directory: string;
}

const MAX_OWNER_FILE_BYTES = 8192;
const ADJACENT_SOCKET = 'beside';

/** Returns the path of the owner file. */
function ownerFilePath(database: string): string {
  return `${database}.owner`;
}

/** Returns the last owner; undefined if there is no owner file, or it is not trusted. */
export function readOwnerFile(database: string): OwnerInfo | undefined {
  try {
    const content = parseOwnerFile(readPrivateFile(ownerFilePath(database)), database);
    return content?.directory === directoryIdentityOf(database) ? content : undefined;
  } catch {
    return undefined;
  }
}

/** Reads a small regular file. Throws if it is a symlink, too large, or not private to this user. */
function readPrivateFile(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const status = fstatSync(descriptor);
    const isPrivate = process.platform === 'win32' || ((status.mode & 0o777) === 0o600 && isOwnedByThisUser(status));
    if (!status.isFile() || !isPrivate || status.size > MAX_OWNER_FILE_BYTES) throw new Error('not an owner file');
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

/** Parses the content of an owner file; undefined if a member is invalid. Throws if it is not JSON. */
function parseOwnerFile(text: string, database: string): OwnerFileContent | undefined {
  const { pid, start, socket, secret, directory, checkedAt } = JSON.parse(text) as Partial<
    Record<keyof OwnerFileContent, unknown>
  >;
  if (!Number.isSafeInteger(pid) || Number(pid) <= 0 || typeof start !== 'string') return undefined;
  if (typeof secret !== 'string' || !/^[0-9a-f]{64}$/.test(secret)) return undefined;
  if (typeof socket !== 'string' || typeof directory !== 'string') return undefined;
  const address = socket === ADJACENT_SOCKET ? adjacentSocketAddress(database) : socket;
  if (socket !== ADJACENT_SOCKET && !isRuntimeSocketAddress(socket)) return undefined;
  const info = { pid: Number(pid), start, socket: address, secret, directory };
  return Number.isSafeInteger(checkedAt) ? { ...info, checkedAt: Number(checkedAt) } : info;
}

/** Replaces the owner file atomically and returns the identity of the new file. */
export function writeOwnerFile(database: string, owner: OwnerInfo): string {
  const temporaryPath = `${ownerFilePath(database)}.${owner.pid}`;
  const socket = owner.socket === adjacentSocketAddress(database) ? ADJACENT_SOCKET : owner.socket;
  rmSync(temporaryPath, { force: true });
  writeNewFile(temporaryPath, `${JSON.stringify({ ...owner, socket, directory: directoryIdentityOf(database) })}\n`);
  const identity = identityAt(temporaryPath);
  renameSync(temporaryPath, ownerFilePath(database));
  return identity;
}

/** Removes the owner file, unless it has another identity because another process has replaced it. */
export function removeOwnerFile(database: string, identity: string): void {
  const path = ownerFilePath(database);
  if (identityAt(path) !== identity) return;
  try {
    rmSync(path, { force: true });
  } catch {
    // A file that cannot be removed is emptied, and an empty file is ignored.
    closeSync(openSync(path, constants.O_WRONLY | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0)));
  }
}
