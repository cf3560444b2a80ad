/**
 * Bundles: files of receipts. A bundle has exactly one form, canonical JSON and a newline, so nothing can be hidden in
 * a file that is verified. In this form the receipts are the last member, so a file is read receipt by receipt.
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
import { LoopError } from '../../base/errors.js';
import { signableJson } from '../../json/i-json.js';
import { parseCanonicalJson } from '../../json/strict-json.js';
import type { Json } from '../../protocol/json.js';
import type { BundledReceipt, ReceiptBundle } from '../../protocol/receipt.js';
import { envelopeShape } from './envelope.js';

/** The maximum size of a bundle in bytes. */
const MAX_BUNDLE_BYTES = 256 * 1024 * 1024;
/** The maximum size of a receipt, and of what is before the receipts, in bytes. */
const MAX_PART_BYTES = 64 * 1024 * 1024;
const MAX_RECEIPTS = 1_000_000;
/** A proof has one hash for each level of the tree. */
const MAX_PROOF_HASHES = 64;

const hashes = listOf(hexDigest, MAX_PROOF_HASHES);

const receiptShape: Shape = members({
  envelope: envelopeShape,
  proof: optional(members({ index, size: index, hashes })),
});

const entriesShape = listOf(
  members({
    receipt: index,
    leaf: index,
    salt: matching(/^[0-9a-f]{32}$/, '32 lower-case hexadecimal digits'),
    entry: text(MAX_PART_BYTES),
    proof: hashes,
  }),
  MAX_RECEIPTS,
);

const bundleShape: Shape = members({
  format: oneOf('rondo.receipts.v1'),
  checkpoint: optional(text(16 * 1024 * 1024)),
  receipts: listOf(receiptShape, 0),
  // No signature shows that an empty list was added.
  // guard: empty-list-refused
  entries: optional((value) => entriesShape(value) ?? (isEmpty(value) ? ': must not be empty' : undefined)),
});

function isEmpty(value: unknown): boolean {
  return (value as readonly unknown[]).length === 0;
}

/** Returns the bytes of a bundle. Throws VALUE_INVALID if it is not I-JSON. */
export function bundleBytes(bundle: ReceiptBundle): Buffer {
  return Buffer.from(`${signableJson(bundle)}\n`);
}

/** The last bytes of a bundle before its receipts, in the one form that they have. No text in JSON contains them. */
const RECEIPTS_START = Buffer.from('"format":"rondo.receipts.v1","receipts":[');
/** How each receipt but the first one begins. */
const NEXT_RECEIPT = Buffer.from(',{"envelope":');
const BUNDLE_END = Buffer.from(']}\n');

/** Reads a bundle from parts of any size. Methods throw VALUE_INVALID for every file that is not in its one form. */
export class BundleReader {
  private readonly parts: Iterator<Uint8Array>;
  /** The bytes that were read; those before `start` were used. */
  private read = Buffer.alloc(0);
  private start = 0;
  private size = 0;

  constructor(parts: Iterable<Uint8Array>) {
    this.parts = parts[Symbol.iterator]();
  }

  /** Returns everything but the receipts. Call it first. */
  head(): ReceiptBundle {
    const at = this.find(RECEIPTS_START);
    const bytes = this.use(at === -1 ? this.read.length : at + RECEIPTS_START.length);
    return parsePart(Buffer.concat([bytes, BUNDLE_END]), 8, '\n', 'bundle', bundleShape) as unknown as ReceiptBundle;
  }

  /** Yields the receipts. */
  *receipts(): Generator<BundledReceipt> {
    for (let i = 0; ; i++) {
      const next = this.find(NEXT_RECEIPT);
      const bytes = this.use(next === -1 ? this.read.length - BUNDLE_END.length : next);
      // The comma, or the end of the file.
      const after = this.use(next === -1 ? this.read.length : next + 1);
      if (next === -1 && !BUNDLE_END.equals(after)) throw malformed('bundle has another end');
      if (i === 0 && next === -1 && bytes.length === 0) return;
      if (i === MAX_RECEIPTS) throw malformed(`bundle.receipts must be a list of at most ${MAX_RECEIPTS} items`);
      yield parsePart(bytes, 6, '', `bundle.receipts[${i}]`, receiptShape) as unknown as BundledReceipt;
      if (next === -1) return;
    }
  }

  /** Returns the unused bytes before a position, which are used then. */
  private use(end: number): Buffer {
    const bytes = this.read.subarray(this.start, Math.max(this.start, end));
    this.start += bytes.length;
    return bytes;
  }

  /** Returns the position of the next mark among the bytes that were read, and reads until it is there; -1 if it is not. */
  private find(mark: Buffer): number {
    let searched = 0;
    for (;;) {
      const at = this.read.indexOf(mark, this.start + searched);
      if (at !== -1) return at;
      const unused = this.read.subarray(this.start);
      searched = Math.max(0, unused.length - mark.length + 1);
      const { value: part, done } = this.parts.next();
      if (done === true) return -1;
      this.size += part.length;
      if (this.size > MAX_BUNDLE_BYTES || unused.length > MAX_PART_BYTES) throw malformed('bundle is too large');
      this.read = Buffer.concat([unused, part]);
      this.start = 0;
    }
  }
}

function parsePart(bytes: Uint8Array, maxDepth: number, end: string, name: string, shape: Shape): Json {
  const value = parseCanonicalJson(bytes, { maxBytes: MAX_PART_BYTES, maxDepth }, end);
  const problem = shape(value);
  if (problem !== undefined) throw malformed(`${name}${problem}`);
  return value;
}

function malformed(problem: string): LoopError {
  return new LoopError('VALUE_INVALID', problem, { problem });
}
