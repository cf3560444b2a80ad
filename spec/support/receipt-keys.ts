// Keys for receipts in tests: fixed seeds, one key for each role.

import { encodeBase64 } from '../../src/base/base64.js';
import { privateKeyOf } from '../../src/base/ed25519.js';
import { localSigner } from '../../src/base/local-signer.js';
import type { ReceiptKeys } from '../../src/host/host-options.js';
import type { KeyRole } from '../../src/protocol/receipt.js';

const KEYS = { receipt: privateKeyOf(Buffer.alloc(32, 1)), checkpoint: privateKeyOf(Buffer.alloc(32, 2)) };

/** Returns keys that are the same in every test. */
export function testKeys(): ReceiptKeys {
  const roles: readonly KeyRole[] = ['receipt', 'checkpoint'];
  return {
    signer: async (role) => {
      const key = KEYS[role];
      return localSigner(`${role}-test`, key);
    },
    list: async () => ({
      keys: roles.map((role) => ({ kid: `${role}-test`, publicKey: encodeBase64(KEYS[role].publicKey.bytes), role })),
    }),
  };
}
