import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { KeyDirectory } from '../../adapters/keys/index.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { ManualClock } from '../../testing/index.js';
import { KEY_REFRESH_MS, ROTATION_WAIT_MS, revokeKey, rotateKey } from './key-rotation.js';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rondo-rotation-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** A host that has signed one receipt, and what a rotation of its keys needs. */
async function signingHost() {
  const [keys, clock] = [new KeyDirectory(directory), new ManualClock(1_000_000)];
  const host = hostOf([tool('echo')], { store: memoryStore(), clock, receiptKeys: keys });
  const { receipts } = host;
  if (receipts === undefined) throw new Error('The host has no receipts.');
  const run = async () => {
    const { sessionId } = await host.run({ loop: 'echo', input: {} });
    const envelopes = (await receipts.receiptsOf(sessionId)).map(({ envelope }) => envelope);
    return envelopes.flatMap(({ signatures }) => signatures.map(({ keyid }) => keyid));
  };
  const [old] = await run();
  const rotate = (sleep: (ms: number) => Promise<unknown> = (ms) => clock.advance(ms)) =>
    rotateKey({ keys, sleep, checkpoint: () => receipts.checkpoint() }, 'receipt');
  const revoke = (kid: string, role: 'receipt' | undefined, sleep: (ms: number) => Promise<unknown>) =>
    revokeKey({ keys, sleep, checkpoint: () => receipts.checkpoint() }, kid, role);
  const keyOf = async (kid = '') => (await keys.list()).keys.find((key) => key.kid === kid);
  return { run, rotate, revoke, keyOf, old, clock, receipts };
}

verifies(
  'receipt.rotation',
  'a running process signs with the replaced key until it has read the new one',
  async () => {
    const { run, rotate, keyOf, old, clock, receipts } = await signingHost();
    const ended = await rotate(async (ms) => {
      expect(ms, 'a process would sign with a key that does not count any more').toBeGreaterThan(KEY_REFRESH_MS);
      expect(await run()).toEqual([old]);
      await clock.advance(ms);
    });
    expect(ended).toBe(true);
    expect(await run()).not.toEqual([old]);
    expect(await keyOf(old), 'two receipts, and 64').toMatchObject({ until: 66 });
    expect(await receipts.verify(undefined)).toMatchObject({ valid: true });
  },
);

verifies('receipt.rotation', 'the next rotation ends the time of a key whose rotation was interrupted', async () => {
  const { run, rotate, keyOf, old, clock, receipts } = await signingHost();
  const interrupted = rotate(() => Promise.reject(new Error('the process died')));
  await expect(interrupted).rejects.toThrow('died');
  expect(await keyOf(old)).toMatchObject({ until: 10_001 });
  await clock.advance(ROTATION_WAIT_MS);
  const [second] = await run();
  expect(second).not.toBe(old);
  await rotate();
  expect(await keyOf(old)).toMatchObject({ until: 66 });
  expect(await keyOf(second)).toMatchObject({ from: 1, until: 66 });
  await rotate();
  expect(await keyOf(old), 'a later rotation extends nothing').toMatchObject({ until: 66 });
  expect(await receipts.verify(undefined)).toMatchObject({ valid: true });
});

verifies('receipt.rotation', 'keys of several stores keep the long time', async () => {
  const { rotate, keyOf, old } = await signingHost();
  mkdirSync(directory, { recursive: true });
  for (const name of ['journal.db', 'other']) writeFileSync(join(directory, `${name}.store-key`), '');
  expect(await rotate()).toBe(false);
  expect(await keyOf(old)).toMatchObject({ until: 10_001 });
});

verifies('receipt.rotation', 'what running processes sign while their key is revoked stays valid', async () => {
  const { run, revoke, keyOf, old, clock, receipts } = await signingHost();
  await revoke(old ?? '', 'receipt', async (ms) => {
    expect(await run(), 'a process signs with the key that will be revoked').toEqual([old]);
    await clock.advance(ms);
  });
  expect(await keyOf(old)).toMatchObject({ revoked: 2 });
  const [next] = await run();
  expect(next).not.toBe(old);
  await revoke(old ?? '', undefined, () => Promise.reject(new Error('a key that does not sign needs no wait')));
  expect(await receipts.verify(undefined)).toMatchObject({ valid: true });
});
