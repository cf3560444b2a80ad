/**
 * Who owns a database: decided by the lock, the record of the last owner and its socket together. A free lock alone is not
 * enough, because the owner's own process can drop it unknowingly: the recorded owner must be gone and its socket silent too.
 */
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { addressFor } from './address.js';
import { type OwnerLock, takeLock } from './lock.js';
import { stateOf, thisProcess } from './process.js';
import { type OwnerRecord, readOwner } from './record.js';

/** The lock, and with it the right to open the database. */
export interface Candidacy {
  readonly lock: OwnerLock;
  /** The record of this process as the owner. */
  readonly record: OwnerRecord;
}

/**
 * A store in use whose record is missing may have lost it while its owner lives. That owner notices at its next commit and stops;
 * so long a commit that is under way may take.
 */
const UNRECORDED_MS = 250;

/** The recorded owner, unless its process has ended. */
export function livingOwner(database: string): OwnerRecord | undefined {
  const owner = readOwner(database);
  return owner === undefined || stateOf(owner) === 'gone' ? undefined : owner;
}

/** Becomes the candidate for ownership; undefined while another process is the owner, or about to be. */
export async function contend(database: string): Promise<Candidacy | undefined> {
  const lock = await takeLock(database);
  if (lock === undefined) return undefined;
  try {
    if (readOwner(database) === undefined && isInUse(database)) await setTimeout(UNRECORDED_MS);
    const socket = addressFor(database);
    if (await isFree(database, socket)) {
      return { lock, record: { ...thisProcess(), socket, secret: randomBytes(32).toString('hex') } };
    }
    lock.release();
    return undefined;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** True if the last process that had the database open did not close it. */
function isInUse(database: string): boolean {
  return (statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

async function isFree(database: string, socket: string): Promise<boolean> {
  const recorded = readOwner(database);
  // A process of another container cannot be looked up; then its socket decides.
  const state = recorded === undefined ? 'gone' : stateOf(recorded);
  if (state === 'running' || state === 'stopped') return false;
  for (const path of new Set([socket, recorded?.socket ?? socket])) if (await listens(path)) return false;
  return true;
}

/** True if a process accepts connections at an address, whether or not it answers. */
function listens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
