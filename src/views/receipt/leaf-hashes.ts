/**
 * The leaves of a receipt: one per entry, SHA-256 over 0x00, the text of a salt and the JSON text of the stored entry.
 * The salts are parts of SHA-512 over the secret salt of the receipt and a counter. Disclosing one entry with its salt
 * reveals nothing about the other entries, not even whether a guess of their content is right.
 */
import { hash } from 'node:crypto';
import { merkleLeaf } from '../../base/merkle.js';
import { toStoredEntry } from '../../journal/record.js';
import type { Entry } from '../../protocol/entry.js';

/** The size of the salt of a receipt in bytes. */
export const SALT_BYTES = 16;

/** The salt of a leaf is 32 hexadecimal digits, so a digest of SHA-512 has four of them. */
const LEAF_SALT_CHARS = 32;
const SALTS_PER_DIGEST = 4;

/** Returns a function that returns the salt of a leaf; fast if it is called in the order of the leaves. */
function leafSalts(salt: Uint8Array): (leaf: number) => string {
  if (salt.length !== SALT_BYTES) throw new TypeError(`The salt of a receipt has ${SALT_BYTES} bytes.`);
  const input = Buffer.alloc(SALT_BYTES + 4);
  input.set(salt);
  let [last, digest] = [-1, ''];
  return (leaf) => {
    const counter = Math.floor(leaf / SALTS_PER_DIGEST);
    if (counter !== last) {
      last = counter;
      input.writeUInt32BE(counter, SALT_BYTES);
      digest = hash('sha512', input, 'hex');
    }
    const start = (leaf % SALTS_PER_DIGEST) * LEAF_SALT_CHARS;
    return digest.slice(start, start + LEAF_SALT_CHARS);
  };
}

/** Returns the salt of one leaf. `salt` is that of the receipt. */
export function leafSalt(salt: Uint8Array, leaf: number): string {
  return leafSalts(salt)(leaf);
}

/** Returns the text of an entry that its leaf is the hash of. */
export function leafText(entry: Entry): string {
  return JSON.stringify(toStoredEntry(entry));
}

/** Returns the hash of the leaf with this salt and this text, in hexadecimal. */
export function leafHash(salt: string, text: string): string {
  return merkleLeaf(`${salt}${text}`);
}

/** Returns the hashes of the leaves of these entries, under the salt of their receipt. */
export function leafHashes(entries: readonly Entry[], salt: Uint8Array): readonly string[] {
  const saltOf = leafSalts(salt);
  return entries.map((entry, leaf) => leafHash(saltOf(leaf), leafText(entry)));
}
