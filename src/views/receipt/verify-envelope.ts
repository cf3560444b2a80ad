/**
 * The verification of one receipt: its statement, its position in the log and its signatures. The keys come from the
 * verifier; a receipt names them only by id.
 */
import { decodeBase64 } from '../../base/base64.js';
import { isSignatureValid } from '../../base/ed25519.js';
import { isIncluded, type NodeCache } from '../../base/merkle.js';
import type { TrustedKeys } from '../../base/trusted-keys.js';
import type {
  BundledReceipt,
  Checkpoint,
  LogProof,
  ReceiptEnvelope,
  ReceiptStatement,
} from '../../protocol/receipt.js';
import { envelopeHash, logLeafOf, payloadOf, signedBytesOf } from './envelope.js';
import type { Findings } from './findings.js';
import { parseStatement } from './statement.js';

/** A receipt of which the statement was read. Whether it is valid is in the findings. */
export interface ReadReceipt {
  readonly statement: ReceiptStatement;
  /** The bytes that were verified and parsed. */
  readonly payload: Uint8Array;
  /** The hash of the envelope, in hexadecimal. */
  readonly hash: string;
  /** The position in the log, if it is proved. */
  readonly logIndex: number | undefined;
}

/** What receipts are verified with. */
export interface VerificationContext {
  readonly keys: TrustedKeys;
  /** The verified checkpoint of the bundle. */
  readonly checkpoint: Checkpoint | undefined;
  /** True if the bundle has a checkpoint, verified or not. */
  readonly hasCheckpoint: boolean;
  /** The nodes of the log, which the proofs of the receipts share. */
  readonly logNodes: NodeCache;
  /** Returns the position of a receipt without a proof in a log that is verified otherwise. */
  readonly logIndexOf?: ((hash: string) => number | undefined) | undefined;
  readonly findings: Findings;
}

/** Reads and verifies a receipt. `name` is for notes. Returns undefined if its statement cannot be read. */
export function verifyEnvelope(
  { envelope, proof }: BundledReceipt,
  name: string,
  context: VerificationContext,
): ReadReceipt | undefined {
  const { findings } = context;
  const payload = payloadOf(envelope);
  if (payload === undefined) {
    findings.add('form', 'payload_malformed', name);
    return undefined;
  }
  const hash = envelopeHash(envelope);
  const logIndex = provedIndex(hash, proof, name, context) ?? context.logIndexOf?.(hash);
  verifySignatures(envelope, payload, logIndex, name, context);
  try {
    return { statement: parseStatement(payload), payload, hash, logIndex };
  } catch (thrown) {
    findings.add('form', 'statement_malformed', `${name}: ${thrown instanceof Error ? thrown.message : 'unreadable'}`);
    return undefined;
  }
}

/** Returns the position of a receipt in the log if its proof leads to the root of the verified checkpoint. */
function provedIndex(
  hash: string,
  proof: LogProof | undefined,
  name: string,
  { checkpoint, hasCheckpoint, logNodes, findings }: VerificationContext,
): number | undefined {
  if (proof === undefined) {
    if (hasCheckpoint) findings.add('log', 'proof_missing', name);
    return undefined;
  }
  if (!hasCheckpoint) findings.add('log', 'proof_without_checkpoint', name);
  if (checkpoint === undefined) return undefined;
  const { index, size, hashes } = proof;
  const leaf = logLeafOf(hash);
  // guard: log-proof-verified
  if (size === checkpoint.size && isIncluded(leaf, index, size, hashes, checkpoint.root, logNodes)) return index;
  findings.add('log', 'proof_invalid', name);
  return undefined;
}

/** Verifies all signatures. One that is invalid, or of a key that does not count, makes the receipt invalid. */
function verifySignatures(
  { signatures }: ReceiptEnvelope,
  payload: Uint8Array,
  logIndex: number | undefined,
  name: string,
  { keys, findings }: VerificationContext,
): void {
  const signed = signedBytesOf(payload);
  const kids = new Set<string>();
  for (const { keyid, sig } of signatures) {
    if (kids.has(keyid)) findings.add('signatures', 'signature_duplicate', name);
    kids.add(keyid);
    const key = keys.forReceipt(keyid, logIndex);
    if (typeof key === 'string') {
      findings.add('signatures', key, `${name}: key "${keyid}"`);
      continue;
    }
    const signature = decodeBase64(sig);
    // guard: receipt-signature-verified
    if (signature === undefined || !isSignatureValid(signed, signature, key))
      findings.add('signatures', 'signature_invalid', `${name}: key "${keyid}"`);
  }
}
