/**
 * The address at which the owner listens: a Unix socket next to the database or, if that path is too long for a socket,
 * in a runtime directory that only this user can enter; on Windows, a named pipe.
 */
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { Fault } from '../../../base/errors.js';
import { digestOfText } from '../../../journal/record.js';
import { DATA_MARKER, protectDirectory } from '../../../journal/store-files.js';
import { directoryIdentityOf, ensureFile, isOwnedByThisUser } from '../files.js';

/** Maximum length of the path of a socket. Platforms allow 104 to 108 bytes, including the terminating zero. */
const MAX_SOCKET_PATH_BYTES = 100;
const RUNTIME_SOCKET_NAME = /^[0-9a-f]{32}\.sock$/;

/** Returns a short name for a database. A different directory at the same path gives a different name. */
function databaseHashOf(database: string): string {
  const key = `${directoryIdentityOf(database)} ${database}`;
  return Buffer.from(digestOfText(key), 'base64url').toString('hex').slice(0, 32);
}

/** Returns the address next to a database, which may be too long for a socket; on Windows, the name of a pipe. */
export function adjacentSocketAddress(database: string): string {
  return process.platform === 'win32' ? `\\\\.\\pipe\\rondo-${databaseHashOf(database)}` : `${database}.sock`;
}

/** Returns the address for a new owner and creates its directory if necessary. Throws if no address is usable. */
export function socketAddressFor(database: string): string {
  const adjacent = adjacentSocketAddress(database);
  if (fitsSocketPath(adjacent)) return adjacent;
  const candidates = runtimeDirectories().map((directory) => join(directory, `${databaseHashOf(database)}.sock`));
  const address = candidates.filter(fitsSocketPath).find((candidate) => ensurePrivateDirectory(dirname(candidate)));
  if (address !== undefined) {
    hideFromTools(dirname(address));
    return address;
  }
  const tried = candidates.map((candidate) => dirname(candidate)).join(', ');
  const message = `The path of ${database} is too long for a socket beside it, and none of ${tried} is a directory that only this user can enter. Choose a shorter path.`;
  throw new Fault('STORE_FAILED', message, { path: database });
}

/** True if the address has the name of a runtime socket and its directory is private to this user. */
export function isRuntimeSocketAddress(address: string): boolean {
  return isAbsolute(address) && RUNTIME_SOCKET_NAME.test(basename(address)) && isPrivateDirectory(dirname(address));
}

/** Protects a directory of sockets from tools, like a data directory; see `DATA_MARKER`. */
function hideFromTools(directory: string): void {
  protectDirectory(directory);
  ensureFile(join(directory, DATA_MARKER));
}

/** Returns the directories for sockets whose database has a long path, in order of preference. */
function runtimeDirectories(): readonly string[] {
  const { XDG_RUNTIME_DIR: runtime = '' } = process.env;
  const user = `rondo-${process.getuid?.() ?? 'user'}`;
  const candidates = [join(runtime, 'rondo'), join(tmpdir(), user), join('/tmp', user)];
  return [...new Set(candidates.filter(isAbsolute))];
}

/** Creates a runtime directory if it is absent; false if it could not be created or is not private to this user. */
function ensurePrivateDirectory(directory: string): boolean {
  try {
    mkdirSync(directory, { mode: 0o700 });
    chmodSync(directory, 0o700);
  } catch {
    // The directory exists, or its parent is unusable. The check below decides.
  }
  return isPrivateDirectory(directory);
}

function fitsSocketPath(path: string): boolean {
  return Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES;
}

/** True if a path is a directory, not a symlink, that only this user can enter. */
function isPrivateDirectory(directory: string): boolean {
  try {
    const status = lstatSync(directory);
    return status.isDirectory() && isOwnedByThisUser(status) && (status.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
