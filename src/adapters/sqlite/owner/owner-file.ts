/**
 * The record of the owner, a file beside the database: which process it is, where it listens, and the secret with which it
 * and its clients prove themselves to each other. It is believed only if it is a regular file of this user with mode
 * 0600, written for this very directory: what a clone, a copy or another user left there is not.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { directoryIdentityOf, identityAt, isOwnedByThisUser, writeNewFile } from '../files.js';
import type { ProcessId } from './process.js';
import { adjacentSocketAddress, isRuntimeSocketAddress } from './socket-address.js';

export interface OwnerInfo extends ProcessId {
  readonly socket: string;
  readonly secret: string;
}

/** The record as it is written: a socket beside the database has no path of its own, since the directory may be mounted elsewhere. */
interface OwnerFileContent extends OwnerInfo {
  readonly directory: string;
}

const MAX_OWNER_FILE_BYTES = 8192;
const ADJACENT_SOCKET = 'beside';

export function ownerFilePath(database: string): string {
  return `${database}.owner`;
}

/** The record of the last owner, if there is one that can be believed. */
export function readOwnerFile(database: string): OwnerInfo | undefined {
  try {
    const record = parseOwnerFile(readPrivateFile(ownerFilePath(database)), database);
    return record?.directory === directoryIdentityOf(database) ? record : undefined;
  } catch {
    return undefined;
  }
}

function readPrivateFile(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const status = fstatSync(descriptor);
    const isPrivate = process.platform === 'win32' || ((status.mode & 0o777) === 0o600 && isOwnedByThisUser(status));
    if (!status.isFile() || !isPrivate || status.size > MAX_OWNER_FILE_BYTES) throw new Error('not an owner record');
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

function parseOwnerFile(text: string, database: string): OwnerFileContent | undefined {
  const { pid, start, socket, secret, directory } = JSON.parse(text) as Partial<
    Record<keyof OwnerFileContent, unknown>
  >;
  if (!Number.isSafeInteger(pid) || Number(pid) <= 0 || typeof start !== 'string') return undefined;
  if (typeof secret !== 'string' || !/^[0-9a-f]{64}$/.test(secret)) return undefined;
  if (typeof socket !== 'string' || typeof directory !== 'string') return undefined;
  const address = socket === ADJACENT_SOCKET ? adjacentSocketAddress(database) : socket;
  if (socket !== ADJACENT_SOCKET && !isRuntimeSocketAddress(socket)) return undefined;
  return { pid: Number(pid), start, socket: address, secret, directory };
}

/** Replaces the record as a whole: a reader sees the old one or the new one. Returns what tells this one from any other. */
export function writeOwnerFile(database: string, record: OwnerInfo): string {
  const draft = `${ownerFilePath(database)}.${record.pid}`;
  const socket = record.socket === adjacentSocketAddress(database) ? ADJACENT_SOCKET : record.socket;
  rmSync(draft, { force: true });
  writeNewFile(draft, `${JSON.stringify({ ...record, socket, directory: directoryIdentityOf(database) })}\n`);
  const file = identityAt(draft);
  renameSync(draft, ownerFilePath(database));
  return file;
}

/** Removes the record that was written, unless another has replaced it since. */
export function removeOwnerFile(database: string, file: string): void {
  const path = ownerFilePath(database);
  if (identityAt(path) !== file) return;
  try {
    rmSync(path, { force: true });
  } catch {
    // A file that cannot be removed can be emptied, and is then not believed.
    closeSync(openSync(path, constants.O_WRONLY | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0)));
  }
}
