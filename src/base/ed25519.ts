/**
 * Ed25519 signatures (RFC 8032) with raw keys of 32 bytes. A public key is checked when it is loaded, because the
 * verification of Node.js accepts keys of small order, under which one signature is valid for many messages, and
 * encodings that are not canonical, which would give one key several identities.
 */
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign, verify } from 'node:crypto';

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
/** The DER encodings of a private key (PKCS #8) and of a public key (SPKI) are these bytes and the raw key. */
const PRIVATE_KEY_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const PUBLIC_KEY_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** The prime of the field, 2^255 - 19. */
const PRIME = 2n ** 255n - 19n;

/** The y coordinates of the points whose order divides 8. Their x coordinates differ only in sign. */
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([
  0n,
  1n,
  PRIME - 1n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

/** A loaded public key, with its 32 bytes. */
export interface PublicKey {
  readonly bytes: Uint8Array;
  readonly object: KeyObject;
}

/** A loaded private key, with the bytes of its public key. */
export interface PrivateKey {
  readonly publicKey: PublicKey;
  readonly object: KeyObject;
}

/** Returns the seed of a new key: 32 random bytes. */
export function newKeySeed(): Uint8Array {
  return randomBytes(KEY_BYTES);
}

/** Loads a private key from its seed of 32 bytes. Throws a TypeError for any other length. */
export function privateKeyOf(seed: Uint8Array): PrivateKey {
  if (seed.length !== KEY_BYTES) throw new TypeError(`The seed of an Ed25519 key has 32 bytes, not ${seed.length}.`);
  const object = createPrivateKey({ key: Buffer.concat([PRIVATE_KEY_PREFIX, seed]), format: 'der', type: 'pkcs8' });
  const bytes = createPublicKey(object).export({ format: 'der', type: 'spki' }).subarray(PUBLIC_KEY_PREFIX.length);
  return { object, publicKey: publicKeyOf(bytes) };
}

/** Loads a public key from its 32 bytes. Throws a TypeError if it must not be trusted. */
export function publicKeyOf(bytes: Uint8Array): PublicKey {
  const problem = publicKeyProblem(bytes);
  if (problem !== undefined) throw new TypeError(`The Ed25519 public key ${problem}.`);
  const object = createPublicKey({ key: Buffer.concat([PUBLIC_KEY_PREFIX, bytes]), format: 'der', type: 'spki' });
  return { bytes: Uint8Array.from(bytes), object };
}

/** Returns why a public key must not be trusted; undefined if it can be. */
function publicKeyProblem(bytes: Uint8Array): string | undefined {
  if (bytes.length !== KEY_BYTES) return `has ${bytes.length} bytes; it needs 32`;
  const y = yCoordinateOf(bytes);
  // guard: non-canonical-key-refused
  if (y >= PRIME) return 'is not in its canonical form';
  // guard: small-order-key-refused
  if (SMALL_ORDER_Y.has(y)) return 'has a small order, so signatures under it prove nothing';
  return undefined;
}

/** Returns the y coordinate that a public key encodes: its bytes in little-endian order, without the sign of x. */
function yCoordinateOf(bytes: Uint8Array): bigint {
  const bigEndian = Buffer.from(bytes).reverse();
  bigEndian[0] = (bigEndian[0] ?? 0) & 0x7f;
  return BigInt(`0x${bigEndian.toString('hex')}`);
}

/** Signs bytes on the thread pool. */
export function signBytes(bytes: Uint8Array, { object }: PrivateKey): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    sign(null, bytes, object, (error, signature) => (error === null ? resolve(signature) : reject(error)));
  });
}

/** Signs bytes at once, on the calling thread. */
export function signBytesSync(bytes: Uint8Array, { object }: PrivateKey): Uint8Array {
  return sign(null, bytes, object);
}

/** True if the signature of the bytes is valid under the key. */
export function isSignatureValid(bytes: Uint8Array, signature: Uint8Array, { object }: PublicKey): boolean {
  return signature.length === SIGNATURE_BYTES && verify(null, bytes, object, signature);
}
