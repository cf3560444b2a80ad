// The cost of verifying a long chain, compared with that of its signatures alone.

import { expect } from 'vitest';
import { isSignatureValid, signBytesSync } from '../../src/base/ed25519.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { verifyBundle } from '../../src/views/receipt/verify-bundle.js';
import { bundleOf, receiptSigner, sealSession, trustedKeys } from '../support/receipt-fixture.js';
import { repetitions } from '../support/repetitions.js';
import { verifies } from '../verifies.js';

/** Returns the CPU time of the fastest of three runs, in milliseconds. */
function cpuMs(work: () => void): number {
  const times = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...times);
}

verifies(
  'receipt.speed',
  'verifying a chain of receipts costs at most twice its bare signatures',
  async () => {
    // Fewer receipts would measure how the code is compiled.
    const count = Math.max(4000, repetitions(10_000));
    const sealed = await sealSession('a', { turns: count / 2 });
    const bytes = bundleBytes(await bundleOf([sealed], { hasCheckpoint: false }));
    const message = Buffer.alloc(2000, 7);
    const signature = signBytesSync(message, receiptSigner.key);
    const bare = cpuMs(() => {
      for (let i = 0; i < count; i++) isSignatureValid(message, signature, receiptSigner.key.publicKey);
    });
    const whole = cpuMs(() => expect(verifyBundle(bytes, trustedKeys).verdict.complete).toBe(true));
    expect(whole / bare, `${whole} ms for ${count} receipts, ${bare} ms for their signatures`).toBeLessThanOrEqual(2);
  },
  300_000,
);
