/**
 * The leaves of a receipt: one per entry, SHA-256 over 0x00, a salt and the JSON text of the stored entry. The salts are
 * blocks of a key stream under the secret salt of the receipt. Disclosing one entry with its salt reveals
 * nothing about the other entries, not even whether a guess of their content is right.
 */
import { createCipheriv } from 'node:crypto';
import { sha256 } from '../../base/sha256.js';
import { toStoredEntry } from '../../journal/record.js';
import type { Entry } from '../../protocol/entry.js';

/** The size of the salt of a receipt, and of each leaf. */
export const SALT_BYTES = 16;

const ZERO_BLOCK = Buffer.alloc(SALT_BYTES);
const LEAF_PREFIX_BYTES = 1 + SALT_BYTES;

/** Returns the salts of the first `count` leaves, one after the other. `salt` is that of the receipt. */
export function leafSalts(salt: Uint8Array, count: number): Buffer {
  if (salt.length !== SALT_BYTES) throw new TypeError(`The salt of a receipt has ${SALT_BYTES} bytes.`);
  return createCipheriv('aes-128-ctr', salt, ZERO_BLOCK).update(Buffer.alloc(count * SALT_BYTES));
}

/** Returns the salt of one leaf. */
export function leafSalt(salt: Uint8Array, leaf: number): Buffer {
  return leafSalts(salt, leaf + 1).subarray(leaf * SALT_BYTES);
}

/** Returns the text of an entry that its leaf is the hash of. */
export function leafText(entry: Entry): string {
  return JSON.stringify(toStoredEntry(entry));
}

/** The bytes of a leaf before they are hashed; reused, because hashing is synchronous. */
let scratch = Buffer.alloc(16 * 1024);

/** Returns the hash of the leaf with this salt and this text. */
export function leafHash(salt: Uint8Array, text: string): Buffer {
  const size = LEAF_PREFIX_BYTES + 3 * text.length;
  if (size > scratch.length) scratch = Buffer.alloc(2 * size);
  scratch[0] = 0;
  scratch.set(salt, 1);
  const length = LEAF_PREFIX_BYTES + scratch.write(text, LEAF_PREFIX_BYTES);
  return sha256(scratch.subarray(0, length));
}

/** Returns the hashes of the leaves of these entries, under the salt of their receipt. */
export function leafHashes(entries: readonly Entry[], salt: Uint8Array): readonly Buffer[] {
  const salts = leafSalts(salt, entries.length);
  return entries.map((entry, i) => leafHash(salts.subarray(i * SALT_BYTES, (i + 1) * SALT_BYTES), leafText(entry)));
}
