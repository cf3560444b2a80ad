/**
 * Signers whose private key is in this process. They can sign at once, on the calling thread, or on the thread pool. A
 * signature takes less time than the round trip of the thread pool, which is worth it only if there is other work to do.
 */
import type { NoteSigner } from '../protocol/receipt.js';
import { type PrivateKey, signBytes, signBytesSync } from './ed25519.js';

/** Returns the signer of a private key. */
export function localSigner(kid: string, key: PrivateKey): NoteSigner {
  return {
    kid,
    publicKey: key.publicKey.bytes,
    sign: (bytes) => signBytes(bytes, key),
    signSync: (bytes) => signBytesSync(bytes, key),
  };
}
