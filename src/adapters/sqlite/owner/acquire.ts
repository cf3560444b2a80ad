/**
 * Decides whether this process may own a database, from the lock, the owner file and the socket together. A free lock
 * alone is not enough, because the owner's process can drop it unknowingly. The process in the owner file must also
 * have ended, unless only its socket can show that, and nothing may listen at its socket.
 */
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { Fault } from '../../../base/errors.js';
import { areLocksRefused, lockHolderOf, type OwnerLock, refusedLocksFault, tryToLock } from './lock.js';
import { type OwnerInfo, readOwnerFile } from './owner-file.js';
import { processStateOf, thisProcess } from './process.js';
import { socketAddressFor } from './socket-address.js';
import { unreachableOwnerFault } from './unresponsive-messages.js';

/** The right to open the database: the lock, and the content of the owner file that is to be written. */
export interface OwnershipCandidacy {
  readonly lock: OwnerLock;
  /** This process as the owner. */
  readonly ownerInfo: OwnerInfo;
  /** The owner that the owner file named, if there was a trusted one: it was killed, because a closed store has no file. */
  readonly previousOwner: OwnerInfo | undefined;
}

/**
 * How long to wait if the owner file is missing although the database was not closed: the owner may be alive. That
 * owner notices the missing file at its next commit and stops; the wait covers a commit in progress. Linux needs no
 * wait, because every owner there also holds an abstract socket name.
 */
const MISSING_OWNER_FILE_WAIT_MS = 250;

/**
 * True if only the socket can show whether the owner is alive: it is a process in another container, or a thread of
 * this process that may have ended. Between threads of one process SQLite itself keeps the locks apart, whatever drops
 * those of the system.
 */
export function isLivenessUncertain(owner: OwnerInfo): boolean {
  const state = processStateOf(owner);
  return state === 'unknown' || (state === 'running' && owner.pid === process.pid);
}

/**
 * Returns the owner in the owner file; undefined if there is none or its process has ended. A stopped process counts.
 */
export function readLivingOwner(database: string): OwnerInfo | undefined {
  const owner = readOwnerFile(database);
  return owner === undefined || processStateOf(owner) === 'gone' ? undefined : owner;
}

/** The reason that `tryToAcquireOwnership` returns if another process holds the lock. */
const LOCK_HELD_REASON = 'it has the lock, and is not listening';

/** Tries to acquire ownership. Returns the reason as text if another process is the owner or about to be. */
export async function tryToAcquireOwnership(database: string): Promise<OwnershipCandidacy | string> {
  const lock = await tryToLock(database);
  if (lock === undefined) return LOCK_HELD_REASON;
  try {
    if (process.platform !== 'linux' && readOwnerFile(database) === undefined && wasNotClosed(database))
      await setTimeout(MISSING_OWNER_FILE_WAIT_MS);
    const socket = socketAddressFor(database);
    const previousOwner = readOwnerFile(database);
    const obstacle = await findObstacle(previousOwner, socket);
    if (obstacle === undefined) {
      return {
        lock,
        ownerInfo: { ...thisProcess(), socket, secret: randomBytes(32).toString('hex') },
        previousOwner,
      };
    }
    lock.release();
    return obstacle;
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Returns the Fault of a process that can for this reason neither reach the owner of a database nor become it. `owner` is
 * the living owner, if there is one.
 */
export function unjoinableStoreFault(database: string, owner: OwnerInfo | undefined, reason: string): Fault {
  // For other reasons the holder of the lock is no evidence: every waiting process takes a free lock briefly.
  const isLocked = reason === LOCK_HELD_REASON;
  const holder = isLocked ? lockHolderOf(database) : undefined;
  if (isLocked && owner === undefined && holder === undefined && areLocksRefused(database))
    return refusedLocksFault(database);
  return unreachableOwnerFault(database, owner ?? readOwnerFile(database) ?? holder, reason);
}

/** True if the last owner did not close the database, which would have removed the WAL. */
function wasNotClosed(database: string): boolean {
  return (statSync(`${database}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Returns why a database may have an owner although its lock is free; undefined if it has none. */
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
    // EAGAIN: the backlog of the listener is full, so there is a listener.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'EAGAIN'));
  });
}
