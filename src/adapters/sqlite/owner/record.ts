/**
 * The record of the owner, a file beside the database: which process it is, where it listens, and the secret with which it
 * and its clients prove themselves to each other. It is believed only if it is a regular file of this user with mode
 * 0600: what a clone or another user left there is not.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { isOurs, writeNewFile } from '../files.js';
import type { ProcessId } from './process.js';

export interface OwnerRecord extends ProcessId {
  readonly socket: string;
  readonly secret: string;
}

const MAX_RECORD_BYTES = 8192;

export function recordPath(database: string): string {
  return `${database}.owner`;
}

/** The record of the last owner, if there is one that can be believed. */
export function readOwner(database: string): OwnerRecord | undefined {
  try {
    return parse(readPrivate(recordPath(database)));
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

function parse(text: string): OwnerRecord | undefined {
  const { pid, start, socket, secret } = JSON.parse(text) as Partial<Record<keyof OwnerRecord, unknown>>;
  if (!Number.isSafeInteger(pid) || Number(pid) <= 0) return undefined;
  if (typeof start !== 'string' || typeof socket !== 'string') return undefined;
  if (typeof secret !== 'string' || !/^[0-9a-f]{64}$/.test(secret)) return undefined;
  return { pid: Number(pid), start, socket, secret };
}

/** Replaces the record as a whole: a reader sees the old one or the new one. */
export function writeOwner(database: string, record: OwnerRecord): void {
  const draft = `${recordPath(database)}.${record.pid}`;
  rmSync(draft, { force: true });
  writeNewFile(draft, `${JSON.stringify(record)}\n`);
  renameSync(draft, recordPath(database));
}

/** Removes the record of this owner, unless another has replaced it since. */
export function removeOwner(database: string, { secret }: Pick<OwnerRecord, 'secret'>): void {
  if (readOwner(database)?.secret !== secret) return;
  rmSync(recordPath(database), { force: true });
}
