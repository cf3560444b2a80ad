/** A process that has left a store delays no later owner, which would otherwise wait for its leases. */
import { afterAll, expect, onTestFinished } from 'vitest';
import { cleanUp, freshFile, startOwnerProcess } from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { openDriver, openSqlite, type SqliteStore } from './index.js';

afterAll(cleanUp);

type OwnerProcess = Awaited<ReturnType<typeof startOwnerProcess>>;

/** Opens a store as a client that has held a lease, lets it leave, and returns the lease holders that are stored then. */
async function storedHoldersAfter(leave: (store: SqliteStore, owner: OwnerProcess) => Promise<void>) {
  const file = freshFile();
  const owner = await startOwnerProcess(file);
  onTestFinished(() => owner.signal('SIGKILL'));
  const store = await openSqlite(file);
  const lease = await store.leases.acquire('s', { turn: 's.t1', handleRequest: async () => null });
  expect(lease, 'the lease must be granted').toBeDefined();
  lease?.release();
  await leave(store, owner);
  const driver = openDriver(file);
  const holders = driver.prepare('SELECT pid FROM clients').all();
  driver.close();
  return holders;
}

const OWNER_RESPONSE_MS = 2000;

verifies('store.leases', 'no owner waits for a process that left as the owner', async () => {
  const holders = await storedHoldersAfter(async (store, owner) => {
    await owner.kill();
    await expect.poll(() => store.owner.here, { timeout: OWNER_RESPONSE_MS }).toBe(true);
    await store.close();
  });
  expect(holders).toEqual([]);
});

verifies('store.leases', 'no owner waits for a process that left just before the owner was killed', async () => {
  const holders = await storedHoldersAfter(async (store, owner) => {
    await store.close();
    await owner.kill();
  });
  expect(holders).toEqual([]);
});

verifies('store.leases', 'no owner waits for a process that left just after the owner was killed', async () => {
  const holders = await storedHoldersAfter(async (store, owner) => {
    const killed = owner.kill();
    await Promise.all([killed, store.close()]);
  });
  expect(holders).toEqual([]);
});
