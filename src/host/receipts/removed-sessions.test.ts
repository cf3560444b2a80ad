import { expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { TrustedKeys } from '../../base/trusted-keys.js';
import type { Store } from '../../journal/store.js';
import type { ReceiptVerdict } from '../../protocol/receipt.js';
import { verifyBundle } from '../../views/receipt/verify-bundle.js';
import type { ReceiptArchive } from './receipt-archive.js';

/** Returns the receipts of a store as a new process has them. */
function archiveOf(store: Store, seed = 9): ReceiptArchive {
  return hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed }).receipts as ReceiptArchive;
}

/** Runs turns in sessions and closes these, all as one process. */
async function runAndClose(store: Store, seed: number, ...sessions: readonly string[]): Promise<void> {
  const host = hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed });
  for (const sessionId of sessions) {
    await host.run({ loop: 'echo', input: {}, sessionId });
    await host.receipts?.close(sessionId);
  }
  await host.close();
}

/** Begins a turn that never ends, as one does that was killed, in a session. Resolves once its effect is recorded. */
async function interruptTurn(store: Store, sessionId: string): Promise<void> {
  let isStarted = (): void => undefined;
  const started = new Promise<void>((resolve) => {
    isStarted = resolve;
  });
  const pay = (): Promise<never> => {
    isStarted();
    return new Promise(() => undefined);
  };
  const host = hostOf([tool('pay', 'builtin:pay')], { store, receiptKeys: testKeys(), tools: { pay }, seed: 5 });
  void host.run({ loop: 'pay', input: {}, sessionId });
  await started;
}

/** Exports the whole store, and verifies the file. */
async function verdictOfFile(store: Store): Promise<ReceiptVerdict> {
  const keys = new TrustedKeys((await testKeys().list()).keys);
  return verifyBundle(await archiveOf(store).export(), keys).verdict;
}

async function remove(store: Store, session: string): Promise<void> {
  await archiveOf(store).recordRemoval(session, 'eve');
  await store.journal.remove(session);
}

verifies('receipt.removed', 'the removal of a session with an unsealed turn is never forgotten', async () => {
  const store = memoryStore();
  await runAndClose(store, 1, 'ok');
  await interruptTurn(store, 'steal');
  const expected = { valid: true, complete: 'unknown', reasons: ['turn_unsealed'], scope: { asOf: 2 } };
  expect(await archiveOf(store).verify(undefined)).toMatchObject(expected);
  expect(await verdictOfFile(store)).toMatchObject(expected);
  await remove(store, 'steal');
  expect(await archiveOf(store).verify(undefined), 'a payment was removed from the record').toMatchObject({
    ...{ valid: true, complete: 'unknown', reasons: ['session_removed', 'turn_unsealed'] },
  });
  expect(await verdictOfFile(store), 'a file hides what its store does not').toMatchObject({
    ...{ valid: true, complete: 'unknown', scope: { asOf: 2 }, reasons: ['session_removed'] },
  });
});

verifies('receipt.removed', 'the removal of a session in which nothing ran says nothing', async () => {
  const store = memoryStore();
  await runAndClose(store, 1, 'ok');
  await store.journal.claim('empty');
  await remove(store, 'empty');
  expect(await archiveOf(store).verify(undefined)).toMatchObject({ complete: true, reasons: [] });
});

verifies('receipt.removed', 'the id of a removed session can be used again', async () => {
  const store = memoryStore();
  await runAndClose(store, 1, 'x', 'y');
  await remove(store, 'x');
  await runAndClose(store, 2, 'x');
  const unknown = { valid: true, complete: 'unknown', reasons: ['session_removed'] };
  expect(await archiveOf(store).verify(undefined)).toMatchObject({ ...unknown, subject: { receipts: 4, log: 6 } });
  expect(await archiveOf(store).verify(['x'])).toMatchObject(unknown);
  expect(await archiveOf(store).verify(['y'])).toMatchObject({ valid: true, complete: true, reasons: [] });
  for (const sessions of [undefined, ['x'], ['y']])
    expect((await archiveOf(store).export(sessions)).length).toBeGreaterThan(0);
  await remove(store, 'x');
  await runAndClose(store, 3, 'x');
  expect(await archiveOf(store).verify(undefined)).toMatchObject(unknown);
});

verifies(
  'receipt.removed',
  'a receipt under the id of a removed session is added to the log after a crash',
  async () => {
    const store = memoryStore();
    await runAndClose(store, 1, 'x', 'y');
    await remove(store, 'x');
    const crashed = hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed: 2 });
    await crashed.run({ loop: 'echo', input: {}, sessionId: 'x' });
    expect((await archiveOf(store).verify(undefined)).subject).toMatchObject({ receipts: 3, log: 5 });
  },
);

verifies('receipt.removed', 'a session whose removal was recorded and not done keeps its receipts', async () => {
  const store = memoryStore();
  await runAndClose(store, 1, 'x', 'y');
  await archiveOf(store).recordRemoval('x', 'eve');
  const expected = { valid: true, complete: 'unknown', subject: { receipts: 4, log: 4 } };
  expect(await archiveOf(store).verify(undefined)).toMatchObject(expected);
  expect((await archiveOf(store).export()).length).toBeGreaterThan(0);
});
