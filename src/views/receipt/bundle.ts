/**
 * Bundles: files of receipts. A bundle has exactly one form, canonical JSON and a newline, so nothing can be hidden in
 * a file that is verified.
 */
import {
  hexDigest,
  index,
  listOf,
  matching,
  members,
  oneOf,
  optional,
  type Shape,
  text,
} from '../../base/document-shape.js';
import { signableJson } from '../../json/i-json.js';
import { parseCanonicalJson } from '../../json/strict-json.js';
import type { ReceiptBundle } from '../../protocol/receipt.js';
import { envelopeShape } from './envelope.js';
import type { ReceiptReason } from './reasons.js';

/** The maximum size of a bundle in bytes. */
const MAX_BUNDLE_BYTES = 256 * 1024 * 1024;
const MAX_RECEIPTS = 1_000_000;
/** A proof has one hash for each level of the tree. */
const MAX_PROOF_HASHES = 64;
const MAX_ENTRY_CHARS = 64 * 1024 * 1024;

const hashes = listOf(hexDigest, MAX_PROOF_HASHES);

const bundleShape: Shape = members({
  format: oneOf('rondo.receipts.v1'),
  checkpoint: optional(text(16 * 1024 * 1024)),
  receipts: listOf(
    members({ envelope: envelopeShape, proof: optional(members({ index, size: index, hashes })) }),
    MAX_RECEIPTS,
  ),
  entries: optional(
    listOf(
      members({
        receipt: index,
        leaf: index,
        salt: matching(/^[0-9a-f]{32}$/, '32 lower-case hexadecimal digits'),
        entry: text(MAX_ENTRY_CHARS),
        proof: hashes,
      }),
      MAX_RECEIPTS,
    ),
  ),
});

/** Returns the bytes of a bundle. Throws VALUE_INVALID if it is not I-JSON. */
export function bundleBytes(bundle: ReceiptBundle): Buffer {
  return Buffer.from(`${signableJson(bundle)}\n`);
}

/** A parsed bundle, or why it is refused. */
export type BundleResult =
  | { readonly bundle: ReceiptBundle }
  | { readonly reason: ReceiptReason; readonly note: string };

/** Reads a bundle. Refuses every file that is not in the one form of its content. */
export function parseBundle(bytes: Uint8Array): BundleResult {
  try {
    const value = parseCanonicalJson(bytes, { maxBytes: MAX_BUNDLE_BYTES, maxDepth: 8 }, '\n');
    const problem = bundleShape(value);
    if (problem !== undefined) return { reason: 'bundle_malformed', note: `bundle${problem}` };
    return { bundle: value as unknown as ReceiptBundle };
  } catch (thrown) {
    return { reason: 'bundle_malformed', note: thrown instanceof Error ? thrown.message : 'it cannot be read' };
  }
}
