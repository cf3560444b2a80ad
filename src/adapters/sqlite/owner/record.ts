/**
 * The record of the owner, a file beside the database: which process it is, where it listens, and the secret with which it
 * and its clients prove themselves to each other. It is believed only if it is a regular file of this user with mode
 * 0600, written for this very directory: what a clone, a copy or another user left there is not.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { directoryOf, identityAt, isOurs, writeNewFile } from '../files.js';
import { addressBeside, isRuntimeAddress } from './address.js';
import type { ProcessId } from './process.js';

export interface OwnerRecord extends ProcessId {
  readonly socket: string;
  readonly secret: string;
}

/** The record as it is written: a socket beside the database has no path of its own, since the directory may be mounted elsewhere. */
interface Written extends OwnerRecord {
  readonly directory: string;
}

const MAX_RECORD_BYTES = 8192;
const BESIDE = 'beside';

export function recordPath(database: string): string {
  return `${database}.owner`;
}

/** The record of the last owner, if there is one that can be believed. */
export function readOwner(database: string): OwnerRecord | undefined {
  try {
    const record = parse(readPrivate(recordPath(database)), database);
    return record?.directory === directoryOf(database) ? record : undefined;
  } catch {
    return undefined;
  }
}

function readPrivate(path: string): string {
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const status = fstatSync(descriptor);
    const isPrivate = process.platform === 'win32' || ((status.mode & 0o777) === 0o600 && isOurs(status));
    if (!status.isFile() || !isPrivate || status.size > MAX_RECORD_BYTES) throw new Error('not an owner record');
    return readFileSync(descriptor, 'utf8');
  } finally {
    closeSync(descriptor);
  }
}

function parse(text: string, database: string): Written | undefined {
  const { pid, start, socket, secret, directory } = JSON.parse(text) as Partial<Record<keyof Written, unknown>>;
  if (!Number.isSafeInteger(pid) || Number(pid) <= 0 || typeof start !== 'string') return undefined;
  if (typeof secret !== 'string' || !/^[0-9a-f]{64}$/.test(secret)) return undefined;
  if (typeof socket !== 'string' || typeof directory !== 'string') return undefined;
  const address = socket === BESIDE ? addressBeside(database) : socket;
  if (socket !== BESIDE && !isRuntimeAddress(socket)) return undefined;
  return { pid: Number(pid), start, socket: address, secret, directory };
}

/** Replaces the record as a whole: a reader sees the old one or the new one. Returns what tells this one from any other. */
export function writeOwner(database: string, record: OwnerRecord): string {
  const draft = `${recordPath(database)}.${record.pid}`;
  const socket = record.socket === addressBeside(database) ? BESIDE : record.socket;
  rmSync(draft, { force: true });
  writeNewFile(draft, `${JSON.stringify({ ...record, socket, directory: directoryOf(database) })}\n`);
  const file = identityAt(draft);
  renameSync(draft, recordPath(database));
  return file;
}

/** Removes the record that was written, unless another has replaced it since. */
export function removeOwner(database: string, file: string): void {
  const path = recordPath(database);
  if (identityAt(path) !== file) return;
  try {
    rmSync(path, { force: true });
  } catch {
    // A file that cannot be removed can be emptied, and is then not believed.
    closeSync(openSync(path, constants.O_WRONLY | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0)));
  }
}
