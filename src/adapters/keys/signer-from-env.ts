/** The signing identity of runx, from variables of the environment: all three of them, or none. */
import { decodeBase64 } from '../../base/base64.js';
import { privateKeyOf } from '../../base/ed25519.js';
import { Fault } from '../../base/errors.js';
import { localSigner } from '../../base/local-signer.js';
import type { NoteSigner } from '../../protocol/receipt.js';

const VARIABLES = [
  'RUNX_RECEIPT_SIGN_KID',
  'RUNX_RECEIPT_SIGN_ED25519_SEED_BASE64',
  'RUNX_RECEIPT_SIGN_ISSUER_TYPE',
] as const;

/** A signer of receipts in the form of runx. */
export interface RunxSigner extends NoteSigner {
  readonly issuerType: 'hosted' | 'ci';
}

/**
 * Returns the signer that the environment describes; undefined if it describes none. Throws a Fault with the code
 * KEYS_UNUSABLE if it does so only in part or incorrectly.
 */
export function signerFromEnv(env: { readonly [name: string]: string | undefined }): RunxSigner | undefined {
  const missing = VARIABLES.filter((name) => (env[name] ?? '') === '');
  if (missing.length === VARIABLES.length) return undefined;
  // guard: partial-signer-refused
  if (missing.length > 0) throw unusable(`${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not set`);
  const [kid = '', seedText = '', issuerType = ''] = VARIABLES.map((name) => env[name]);
  const seed = decodeBase64(seedText);
  if (seed?.length !== 32) throw unusable(`${VARIABLES[1]} must be 32 bytes in base64`);
  if (issuerType !== 'hosted' && issuerType !== 'ci') throw unusable(`${VARIABLES[2]} must be hosted or ci`);
  if (!/^[^\s+]{1,200}$/u.test(kid)) throw unusable(`${VARIABLES[0]} must have 1 to 200 characters and no spaces`);
  const key = privateKeyOf(seed);
  return { ...localSigner(kid, key), issuerType };
}

function unusable(reason: string): Fault {
  const message = `The signer of receipts cannot be used: ${reason}. Set ${VARIABLES.join(', ')}, or none of them.`;
  return new Fault('KEYS_UNUSABLE', message);
}
