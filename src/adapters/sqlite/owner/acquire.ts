/**
 * Who owns a database: decided by the lock, the record of the last owner and its socket together. A free lock alone is not
 * enough, because the owner's own process can drop it unknowingly: the recorded owner must be gone and its socket silent too.
 */
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { type OwnerLock, tryToLock } from './lock.js';
import { type OwnerInfo, readOwnerFile } from './owner-file.js';
import { processStateOf, thisProcess } from './process.js';
import { socketAddressFor } from './socket-address.js';

/** The lock, and with it the right to open the database. */
export interface OwnershipCandidacy {
  readonly lock: OwnerLock;
  /** The record of this process as the owner. */
  readonly ownerInfo: OwnerInfo;
  /** The record of the last owner, if it was there. */
  readonly previousOwner: OwnerInfo | undefined;
}

/**
 * A store in use whose record is missing may have lost it while its owner lives. That owner notices at its next commit and stops;
 * so long a commit that is under way may take. On Linux the name that every owner holds tells that there is none.
 */
const MISSING_OWNER_FILE_WAIT_MS = 250;

/**
 * True if the system does not tell whether an owner is there, and only its socket does: a process in another container, or
 * a thread of this process that may have ended. SQLite keeps the locks of the threads of one process apart, whatever drops those of the
 * system.
 */
export function isLivenessUncertain(owner: OwnerInfo): boolean {
  const state = processStateOf(owner);
  return state === 'unknown' || (state === 'running' && owner.pid === process.pid);
}

/** The recorded owner, unless its process has ended. */
export function readLivingOwner(database: string): OwnerInfo | undefined {
  const owner = readOwnerFile(database);
  return owner === undefined || processStateOf(owner) === 'gone' ? undefined : owner;
}

/** Why the lock is not to be had. */
export const LOCK_HELD_REASON = 'it has the lock, and is not listening';

/** Becomes the candidate for ownership; else why not: another process is the owner, or about to be. */
export async function tryToAcquireOwnership(database: string): Promise<OwnershipCandidacy | string> {
  const lock = await tryToLock(database);
  if (lock === undefined) return LOCK_HELD_REASON;
  try {
    if (process.platform !== 'linux' && readOwnerFile(database) === undefined && wasNotClosed(database))
      await setTimeout(MISSING_OWNER_FILE_WAIT_MS);
    const socket = socketAddressFor(database);
    const last = readOwnerFile(database);
    const why = await findObstacle(last, socket);
    if (why === undefined) {
      return {
        lock,
        ownerInfo: { ...thisProcess(), socket, secret: randomBytes(32).toString('hex') },
        previousOwner: last,
      };
    }
    lock.release();
    return why;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** True if the last process that had the database open did not close it. */
function wasNotClosed(database: string): boolean {
  return (statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Why a database is not free although its lock is; undefined if it is free. */
async function findObstacle(owner: OwnerInfo | undefined, socket: string): Promise<string | undefined> {
  if (owner !== undefined && !isLivenessUncertain(owner) && processStateOf(owner) !== 'gone')
    return 'it is not listening';
  for (const path of new Set([socket, owner?.socket ?? socket])) {
    if (await isListening(path)) return `something listens at ${path} that is not recorded as its owner`;
  }
  return undefined;
}

/** True if a process accepts connections at an address, whether or not it answers. */
function isListening(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    // One that has more connections waiting than it takes is there.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'EAGAIN'));
  });
}
