/**
 * Commitments: digests of values that cannot be guessed, because they are salted. The salt depends on the secret salt of
 * the receipt and on the effect, so two commitments for one effect in one receipt are equal exactly if their values are.
 */
import { hash } from 'node:crypto';
import { sha256 } from '../../base/sha256.js';
import { canonicalJson } from '../../json/canonical.js';
import type { Entry } from '../../protocol/entry.js';

/** Returns the salt of the commitments for one effect of a receipt. It can be disclosed: it reveals no other salt. */
export function commitmentSalt(receiptSalt: Uint8Array, effectKey: string): Buffer {
  return sha256(Buffer.concat([Buffer.from('rondo.commitment.v1\n'), receiptSalt, Buffer.from(effectKey)]));
}

/**
 * Returns the commitment of the value of an entry, in hexadecimal. A value that is stored as a blob is represented by the
 * digest of the blob, so that the commitment can be made without the blob.
 */
export function commitmentOf(salt: Uint8Array, { value, blob }: Pick<Entry, 'value' | 'blob'>): string {
  const content = blob === undefined ? `json\n${canonicalJson(value ?? null)}` : `blob\n${blob}`;
  return hash('sha256', Buffer.concat([salt, Buffer.from(content)]), 'hex');
}
