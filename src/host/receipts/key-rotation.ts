/**
 * The rotation and the revocation of a key. Running processes use the replaced key until they read the keys again, so it
 * stays valid until then, and no longer. A rotation that is interrupted leaves the replaced key valid for many receipts,
 * which is safe unless that key was stolen; the next rotation of the role ends it.
 */
import type { KeyRole } from '../../protocol/receipt.js';

/** How long a process uses a key before it reads the keys again, in milliseconds. */
export const KEY_REFRESH_MS = 1000;

/** How long a receipt may take from its signature until it is in the log, in milliseconds. */
const LOG_MARGIN_MS = 1000;

/** How long a rotation waits until no process signs with the replaced key any more. */
export const ROTATION_WAIT_MS: number = KEY_REFRESH_MS + LOG_MARGIN_MS;

/** The keys that a rotation changes. */
export interface RotatedKeys {
  /** Publishes a new key, which is valid from a log index on. The replaced one stays valid for a time. */
  rotate(role: KeyRole, logIndex: number): Promise<unknown>;
  /** Ends the time in which replaced keys of a role count, shortly after a log index. Returns false if it cannot. */
  endOverlap(role: KeyRole, logIndex: number): Promise<boolean>;
  /** Revokes a key: for all receipts, or for those from a log index on. */
  revoke(kid: string, at: number | true): Promise<unknown>;
}

/** What a rotation works with. */
export interface RotationDeps {
  readonly keys: RotatedKeys;
  /** Completes the log, makes a checkpoint and returns the number of receipts in the log. */
  checkpoint(): Promise<number>;
  sleep(ms: number): Promise<unknown>;
}

/**
 * Replaces the key of a role, and ends the time in which the replaced one counts. Returns false if it still counts,
 * because several stores use the keys.
 */
export async function rotateKey({ keys, checkpoint, sleep }: RotationDeps, role: KeyRole): Promise<boolean> {
  await keys.rotate(role, await checkpoint());
  // guard: rotation-waits-for-running-processes
  await sleep(ROTATION_WAIT_MS);
  return keys.endOverlap(role, await checkpoint());
}

/**
 * Revokes a key for the receipts that are not in the log yet. If a role is given, the key signs for that role now and is
 * replaced first, because what running processes sign with a revoked key is not valid. To revoke a key for all receipts
 * needs none of this, nor a log: nothing that it signed is valid.
 */
export async function revokeKey(deps: RotationDeps, kid: string, role: KeyRole | undefined): Promise<void> {
  // guard: signing-key-replaced-before-revoked
  if (role !== undefined) await rotateKey(deps, role);
  await deps.keys.revoke(kid, await deps.checkpoint());
}
