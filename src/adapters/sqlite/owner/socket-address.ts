/**
 * Where the owner listens: a Unix socket beside the database; for a path that is too long for one, in a runtime directory that
 * only this user can enter; on Windows a named pipe.
 */
import { chmodSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { Fault } from '../../../base/errors.js';
import { digestOfText } from '../../../journal/record.js';
import { DATA_MARKER, protectDirectory } from '../../../journal/store-files.js';
import { directoryIdentityOf, ensureFile, isOwnedByThisUser } from '../files.js';

/** The systems allow 104 to 108 bytes, the terminating zero included. */
const MAX_SOCKET_PATH_BYTES = 100;
const RUNTIME_SOCKET_NAME = /^[0-9a-f]{32}\.sock$/;

/** A name for a database that has no room in a path; another directory in the same place gives another name. */
function databaseHashOf(database: string): string {
  const place = `${directoryIdentityOf(database)} ${database}`;
  return Buffer.from(digestOfText(place), 'base64url').toString('hex').slice(0, 32);
}

/** The address beside a database, if there is room for it. */
export function adjacentSocketAddress(database: string): string {
  return process.platform === 'win32' ? `\\\\.\\pipe\\rondo-${databaseHashOf(database)}` : `${database}.sock`;
}

/** The address for a new owner; its directory is made if need be. */
export function socketAddressFor(database: string): string {
  const beside = adjacentSocketAddress(database);
  if (fitsSocketPath(beside)) return beside;
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

/** True for an address in a runtime directory of this user. */
export function isRuntimeSocketAddress(address: string): boolean {
  return isAbsolute(address) && RUNTIME_SOCKET_NAME.test(basename(address)) && isPrivateDirectory(dirname(address));
}

/** Sockets are as little for tools as what is in a data directory; see `DATA_MARKER`. */
function hideFromTools(directory: string): void {
  protectDirectory(directory);
  ensureFile(join(directory, DATA_MARKER));
}

function runtimeDirectories(): readonly string[] {
  const { XDG_RUNTIME_DIR: runtime = '' } = process.env;
  const user = `rondo-${process.getuid?.() ?? 'user'}`;
  const all = [join(runtime, 'rondo'), join(tmpdir(), user), join('/tmp', user)];
  return [...new Set(all.filter(isAbsolute))];
}

/** Makes a runtime directory unless it is there; false if it cannot be used. */
function ensurePrivateDirectory(directory: string): boolean {
  try {
    mkdirSync(directory, { mode: 0o700 });
    chmodSync(directory, 0o700);
  } catch {
    // It is there already, or its parent cannot be used: what counts is what is there now.
  }
  return isPrivateDirectory(directory);
}

function fitsSocketPath(path: string): boolean {
  return Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES;
}

function isPrivateDirectory(directory: string): boolean {
  try {
    const status = lstatSync(directory);
    return status.isDirectory() && isOwnedByThisUser(status) && (status.mode & 0o077) === 0;
  } catch {
    return false;
  }
}
