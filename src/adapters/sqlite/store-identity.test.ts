/** What a client of a store does when the store is removed, or another one is put in its place. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, expect } from 'vitest';
import { appendEntry, cleanUp, expectFault, freshFile } from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { openSqlite } from './index.js';

afterAll(cleanUp);

/** Opens a store as its owner and as a client that writes to it. */
async function openWithClient() {
  const file = freshFile();
  const owner = await openSqlite(file);
  const client = await openSqlite(file);
  const { fence } = await client.journal.claim('a');
  await appendEntry(client, 'a', fence, 0);
  const lease = await client.leases.acquire('a', { turn: 'a.1', handleRequest: async () => null });
  expect(lease).toBeDefined();
  return { file, owner, client, append: (seq: number) => appendEntry(client, 'a', fence, seq) };
}

const removals: Readonly<Record<string, (directory: string) => void>> = {
  removed: (directory) => rmSync(directory, { recursive: true }),
  'moved away': (directory) => renameSync(directory, `${directory}.away`),
};

for (const [what, remove] of Object.entries(removals)) {
  for (const isOwned of [true, false]) {
    const by = isOwned ? 'that another process owns' : 'that nobody owns';
    verifies('sqlite.files', `a client whose store was ${what} writes nothing to a new one ${by}`, async () => {
      const { file, owner, client, append } = await openWithClient();
      remove(dirname(file));
      const next = await openSqlite(file);
      const { fence } = await next.journal.claim('b');
      await appendEntry(next, 'b', fence, 0);
      if (!isOwned) await next.close();
      expect(await expectFault(append(1))).toMatchObject({ code: 'STORE_MISSING' });
      expect(await expectFault(client.journal.claim('c'))).toMatchObject({ code: 'STORE_MISSING' });
      await client.close();
      await owner.close();
      const last = isOwned ? next : await openSqlite(file);
      expect((await last.journal.list()).map(({ session }) => session)).toEqual(['b']);
      expect(await last.leases.list(), 'the lease of a turn of the other store').toEqual([]);
      await last.close();
    });
  }

  verifies('sqlite.files', `processes that wait for due turns notice that their store was ${what}`, async () => {
    const { file, owner, client } = await openWithClient();
    remove(dirname(file));
    expect(await expectFault(client.dueTurns.nextDueAt(0))).toMatchObject({ code: 'STORE_MISSING' });
    expect(await expectFault(owner.dueTurns.nextDueAt(0))).toMatchObject({ code: 'STORE_MISSING' });
    await client.close();
    await owner.close();
  });

  verifies('sqlite.files', `a client whose store was ${what} says so, and makes no new one`, async () => {
    const { file, owner, client, append } = await openWithClient();
    remove(dirname(file));
    expect(await expectFault(append(1))).toMatchObject({
      code: 'STORE_MISSING',
      message: expect.stringContaining('restore the directory, and open the store again'),
    });
    await client.close();
    await owner.close();
    expect(existsSync(dirname(file))).toBe(false);
  });
}
