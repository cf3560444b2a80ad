/**
 * Envelopes (DSSE): a payload with its type and signatures. What is signed is the type and the bytes together, so a
 * payload cannot be passed off as one of another type. The hash of an envelope covers its signatures.
 */
import { hash } from 'node:crypto';
import { decodeBase64, encodeBase64 } from '../../base/base64.js';
import { listOf, members, nonEmptyText, oneOf, type Shape, text } from '../../base/document-shape.js';
import { merkleLeaf } from '../../base/merkle.js';
import type { EnvelopeSignature, ReceiptEnvelope, ReceiptSigner } from '../../protocol/receipt.js';

/** The type of the payload of every receipt. */
export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';

/** The maximum number of signatures of an envelope. */
const MAX_SIGNATURES = 4;

/** The maximum size of a statement in bytes. */
export const MAX_PAYLOAD_BYTES = 16 * 1024 * 1024;

const MAX_PAYLOAD_CHARS = Math.ceil(MAX_PAYLOAD_BYTES / 3) * 4;

const signature = members({ keyid: nonEmptyText, sig: text(88) });

/** The shape of an envelope. */
export const envelopeShape: Shape = members({
  payload: text(MAX_PAYLOAD_CHARS),
  payloadType: oneOf(PAYLOAD_TYPE),
  signatures: (value) => {
    const found = listOf(signature, MAX_SIGNATURES)(value);
    // guard: unsigned-envelope-refused
    return found ?? ((value as readonly unknown[]).length > 0 ? undefined : ': must not be empty');
  },
});

/** Texts that need no escape in JSON. */
const BASE64 = /^[A-Za-z0-9+/=]*$/;

const PAE_PREFIX = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} `;

/** Returns the bytes that are signed: the pre-authentication encoding of the payload type and the payload. */
export function signedBytesOf(payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${PAE_PREFIX}${payload.length} `), payload]);
}

/**
 * Signs a payload with each signer.
 *
 * @param isAlone True if this process has nothing else to do meanwhile, so that a key in it signs at once.
 */
export async function createEnvelope(
  payload: Uint8Array,
  signers: readonly ReceiptSigner[],
  isAlone = false,
): Promise<ReceiptEnvelope> {
  if (signers.length === 0 || signers.length > MAX_SIGNATURES || payload.length > MAX_PAYLOAD_BYTES)
    throw new TypeError(`A receipt has 1 to ${MAX_SIGNATURES} signers and at most ${MAX_PAYLOAD_BYTES} bytes.`);
  const bytes = signedBytesOf(payload);
  const signatures: EnvelopeSignature[] = [];
  for (const signer of signers) {
    const signature = isAlone ? signer.signSync?.(bytes) : undefined;
    signatures.push({ keyid: signer.kid, sig: encodeBase64(signature ?? (await signer.sign(bytes))) });
  }
  return { payload: encodeBase64(payload), payloadType: PAYLOAD_TYPE, signatures };
}

/** Returns the payload of an envelope; undefined if it is not canonical base64. */
export function payloadOf({ payload }: ReceiptEnvelope): Buffer | undefined {
  return decodeBase64(payload);
}

/** Returns the canonical text of an envelope; written out, because every receipt of a bundle needs it. */
function envelopeText({ payload, payloadType, signatures }: ReceiptEnvelope, isBase64: boolean): string {
  const list = signatures.map(({ keyid, sig }) => `{"keyid":${JSON.stringify(keyid)},"sig":${JSON.stringify(sig)}}`);
  const quoted = isBase64 ? `"${payload}"` : JSON.stringify(payload);
  return `{"payload":${quoted},"payloadType":${JSON.stringify(payloadType)},"signatures":[${list.join(',')}]}`;
}

/** Returns the hash of an envelope, in hexadecimal: what the next receipt of the session refers to. */
export function envelopeHash(envelope: ReceiptEnvelope): string {
  return hash('sha256', envelopeText(envelope, BASE64.test(envelope.payload)), 'hex');
}

/** Returns the hash of an envelope that `createEnvelope` made, whose payload is base64. */
export function newEnvelopeHash(envelope: ReceiptEnvelope): string {
  return hash('sha256', envelopeText(envelope, true), 'hex');
}

/** Returns the leaf of an envelope with this hash in the log of its store: the leaf of the text of the hash. */
export function logLeafOf(hash: string): string {
  return merkleLeaf(hash);
}
