/**
 * Who owns a database: decided by the lock, the record of the last owner and its socket together. A free lock alone is not
 * enough, because the owner's own process can drop it unknowingly: the recorded owner must be gone and its socket silent too.
 */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { addressFor, isAddressOf } from './address.js';
import { type OwnerLock, takeLock } from './lock.js';
import { stateOf, thisProcess } from './process.js';
import { type OwnerRecord, readOwner } from './record.js';

/** The lock, and with it the right to open the database. */
export interface Candidacy {
  readonly lock: OwnerLock;
  /** The record of this process as the owner. */
  readonly record: OwnerRecord;
}

/** The recorded owner, unless its process has ended or the record does not fit the database. */
export function livingOwner(database: string): OwnerRecord | undefined {
  const owner = readOwner(database);
  if (owner === undefined || !isAddressOf(database, owner.socket)) return undefined;
  return stateOf(owner) === 'gone' ? undefined : owner;
}

/** Becomes the candidate for ownership; undefined while another process is the owner, or about to be. */
export async function contend(database: string): Promise<Candidacy | undefined> {
  const lock = takeLock(database);
  if (lock === undefined) return undefined;
  try {
    const socket = addressFor(database);
    const recorded = readOwner(database);
    // A process of another container cannot be looked up; then its socket decides.
    const state = recorded === undefined ? 'gone' : stateOf(recorded);
    const sockets = new Set([socket, ...(recorded === undefined ? [] : [recorded.socket])]);
    const lives = state === 'running' || state === 'stopped' || (await anyListens(sockets));
    if (!lives) return { lock, record: { ...thisProcess(), socket, secret: randomBytes(32).toString('hex') } };
    lock.release();
    return undefined;
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function anyListens(sockets: ReadonlySet<string>): Promise<boolean> {
  for (const path of sockets) if (await listens(path)) return true;
  return false;
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
