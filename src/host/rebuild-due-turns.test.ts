/** Due turns of a host: the expiry of approvals counts, and an index that was lost is rebuilt from the journals. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { ASK, onlyPending } from '../../spec/support/approval-fixture.js';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { openDriver, openSqlite } from '../adapters/sqlite/index.js';
import { Fault } from '../base/errors.js';
import type { DueTurn } from '../journal/due-turns.js';
import type { Store } from '../journal/store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { rebuildDueTurns } from './rebuild-due-turns.js';

const allDue = (store: Store): Promise<readonly DueTurn[]> => store.dueTurns.list(Number.MAX_SAFE_INTEGER, 100);

verifies('kernel.due', 'a turn that waits for an approval is due once the approval has expired', async () => {
  const store = memoryStore();
  const clock = new ManualClock(1_000_000);
  const host = hostOf([tool('pay', 'builtin:echo', ASK)], { store, clock });
  const { turnId } = await host.run({ loop: 'pay', input: {}, sessionId: 's' });
  const { expiresAt } = await onlyPending(host);
  const expectedDue = Date.parse(expiresAt) + 1;
  expect(await allDue(store)).toEqual([{ session: 's', turn: turnId, dueAt: expectedDue }]);
  clock.setWallClock(expectedDue);
  expect((await host.resume(turnId)).status).toBe('error');
  expect(await allDue(store)).toEqual([]);
});

verifies('kernel.due', 'an answered approval makes its turn due', async () => {
  const store = memoryStore();
  const host = hostOf([tool('pay', 'builtin:echo', ASK)], { store });
  const { turnId } = await host.run({ loop: 'pay', input: {}, sessionId: 's' });
  await host.answer({ id: (await onlyPending(host)).id, approved: true, by: 'ada' });
  expect(await allDue(store)).toEqual([{ session: 's', turn: turnId, dueAt: 0 }]);
  expect((await host.resume(turnId)).status).toBe('ok');
  expect(await allDue(store)).toEqual([]);
});

verifies(
  'journal.due',
  'a lost index is rebuilt with every open turn, and running a turn corrects its row',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rondo-due-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'journal.db');
    const definitions = [tool('echo'), tool('pay', 'builtin:echo', ASK)];
    const first = await openSqlite(file);
    const host = hostOf(definitions, { store: first });
    await host.run({ loop: 'echo', input: {}, sessionId: 'done' });
    const { turnId } = await host.run({ loop: 'pay', input: {}, sessionId: 'open' });
    const [before] = await allDue(first);
    await first.close();
    const driver = openDriver(file);
    driver.exec('DROP TABLE due_turns');
    driver.close();
    const store = await openSqlite(file);
    onTestFinished(() => store.close());
    await rebuildDueTurns(store);
    expect(await allDue(store)).toEqual([{ session: 'open', turn: turnId, dueAt: 0 }]);
    expect((await hostOf(definitions, { store, seed: 2 }).resume(turnId)).status).toBe('paused');
    expect(await allDue(store)).toEqual([before]);
    await rebuildDueTurns(store);
    expect(await allDue(store), 'a complete index is not rebuilt').toEqual([before]);
  },
);

verifies('journal.due', 'a damaged session does not prevent the rebuild of the others', async () => {
  const store = memoryStore();
  const host = hostOf([tool('pay', 'builtin:echo', ASK)], { store });
  for (const sessionId of ['damaged', 'whole']) await host.run({ loop: 'pay', input: {}, sessionId });
  const rebuilt: DueTurn[] = [];
  const read: Store['journal']['read'] = (session, from) => {
    if (session === 'damaged') throw new Fault('STORE_DAMAGED', 'A record is damaged.');
    return store.journal.read(session, from);
  };
  await rebuildDueTurns({
    journal: { ...store.journal, list: () => store.journal.list(), read },
    blobs: store.blobs,
    dueTurns: {
      ...store.dueTurns,
      isComplete: async () => false,
      rebuild: async (turns) => void rebuilt.push(...turns),
    },
  });
  expect(rebuilt.map(({ session, dueAt }) => [session, dueAt])).toEqual([['whole', 0]]);
});
