// Fixed keys for receipts: one for each role, the same in every process of a campaign.

import { createPrivateKey, createPublicKey, sign } from 'node:crypto';

const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const RAW_KEY_BYTES = 32;
const ROLES = ['receipt', 'checkpoint'];

/** @param {string} role */
function keyOf(role) {
  const seed = Buffer.alloc(RAW_KEY_BYTES, role === 'receipt' ? 1 : 2);
  const key = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' });
  const publicKey = createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-RAW_KEY_BYTES);
  return { kid: `${role}-1`, key, publicKey };
}

const keys = new Map(ROLES.map((role) => [role, keyOf(role)]));

/** The keys of a host. */
export const receiptKeys = {
  signer: async (/** @type {string} */ role) => {
    const { kid, key, publicKey } = keys.get(role) ?? keyOf(role);
    const signSync = (/** @type {Uint8Array} */ bytes) => sign(null, bytes, key);
    return { kid, publicKey, signSync, sign: async (/** @type {Uint8Array} */ bytes) => signSync(bytes) };
  },
  list: async () => ({
    keys: [...keys].map(([role, { kid, publicKey }]) => ({ kid, publicKey: publicKey.toString('base64'), role })),
  }),
};
