/**
 * Where the owner listens: a Unix socket beside the database; for a path that is too long for one, in a runtime directory that
 * only this user can enter; on Windows a named pipe.
 */
import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { Fault } from '../../../journal/errors.js';
import { digest } from '../../../journal/record.js';
import { isOurs } from '../files.js';

/** The systems allow 104 to 108 bytes, the terminating zero included. */
const MAX_SOCKET_PATH_BYTES = 100;

function pipeName(database: string): string {
  return `\\\\.\\pipe\\rondo-${nameOf(database)}`;
}

/** A name for a database that has no room in a path. */
function nameOf(database: string): string {
  return Buffer.from(digest(database), 'base64url').toString('hex').slice(0, 32);
}

/** The address for a new owner; its directory is made if need be. */
export function addressFor(database: string): string {
  if (process.platform === 'win32') return pipeName(database);
  const beside = `${database}.sock`;
  if (fits(beside)) return beside;
  const directory = runtimeDirectories().find((candidate) => fits(join(candidate, `${nameOf(database)}.sock`)));
  if (directory === undefined) throw unusable(database, 'there is no runtime directory with a short path');
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (!isPrivateDirectory(directory)) {
    throw unusable(database, `${directory} is not a directory that only this user can enter`);
  }
  return join(directory, `${nameOf(database)}.sock`);
}

/** False for an address that an owner of this database would not have chosen. */
export function isAddressOf(database: string, address: string): boolean {
  if (process.platform === 'win32') return address === pipeName(database);
  if (address === `${database}.sock`) return true;
  if (!isAbsolute(address) || basename(address) !== `${nameOf(database)}.sock`) return false;
  return isPrivateDirectory(dirname(address));
}

function runtimeDirectories(): readonly string[] {
  const { XDG_RUNTIME_DIR: runtime = '' } = process.env;
  const user = `rondo-${process.getuid?.() ?? 'user'}`;
  const own = isAbsolute(runtime) ? [join(runtime, 'rondo')] : [];
  return [...own, join(tmpdir(), user), join('/tmp', user)];
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES;
}

function isPrivateDirectory(directory: string): boolean {
  const status = lstatSync(directory, { throwIfNoEntry: false });
  return status?.isDirectory() === true && isOurs(status) && (status.mode & 0o077) === 0;
}

function unusable(database: string, why: string): Fault {
  const message = `The path of ${database} is too long for a socket beside it, and ${why}. Choose a shorter path.`;
  return new Fault('STORE_FAILED', message, { path: database });
}
