// Checks of the index of due turns: what the kernel writes, one commit with the entries, stale writers, a lost index.

import { deepStrictEqual, strictEqual } from 'node:assert';
import type { Scope } from '../../src/index.js';
import type { Store } from '../../src/journal/store.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { RunOutcome } from '../../src/protocol/session.js';
import { codeOf, crash, run, sessionFixture } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';
import { entry, failingDriver, inFolder } from './store-checks.js';

async function dueTimes(store: Store): Promise<readonly (readonly [string, number])[]> {
  return (await store.dueTurns.list(Number.MAX_SAFE_INTEGER, 100)).map(({ turn, dueAt }) => [turn, dueAt]);
}

const DUE = [{ turn: 't1', dueAt: 5 }];

export const dueChecks = {
  'a turn that a crash interrupts is due from its first append on': async (library) => {
    const fixture = sessionFixture(library);
    const body = (scope: Scope) => scope.effect(fixture.effect('pay', 'once'));
    await crash(fixture, { appendNumber: 1, when: 'after' }, body);
    deepStrictEqual(await dueTimes(fixture.store), [['t1', 0]]);
  },
  'a paused turn is due at its timer': async (library) => {
    const fixture = sessionFixture(library);
    await run(await fixture.open(), (scope) => scope.sleep(5_000));
    deepStrictEqual(await dueTimes(fixture.store), [['t1', 6_000]]);
  },
  'a root that has ended leaves the index with its receipt': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    const loop = { name: 'pay', body: (_: unknown, scope: Scope) => scope.effect(fixture.effect('pay', 'once')) };
    const closings: Promise<void>[] = [];
    const seal = async (): Promise<void> => {
      await session.flush();
      deepStrictEqual(await dueTimes(fixture.store), [['t1', 0]]);
      closings.push(session.close());
      session.addFact('test.receipt', '1', null);
    };
    await session.run('t1', loop, null, { seal });
    await Promise.all(closings);
    deepStrictEqual(await dueTimes(fixture.store), []);
  },
  'a root that has just ended is sealed although its session closes': async (library) => {
    const fixture = sessionFixture(library);
    const closings: Promise<void>[] = [];
    const onEntry = ({ type }: Entry): void => {
      if (type === 'call.completed') queueMicrotask(() => closings.push(session.close()));
    };
    const session = await fixture.open({ onEntry });
    const outcomes: string[] = [];
    const seal = async ({ status }: RunOutcome): Promise<void> => void outcomes.push(status);
    await session.run('t1', { name: 'done', body: async () => null }, null, { seal });
    await Promise.all(closings);
    deepStrictEqual(outcomes, ['ok']);
  },
  'a signal makes a waiting turn due': async (library) => {
    const fixture = sessionFixture(library);
    await run(await fixture.open(), (scope) => scope.wait('go'));
    deepStrictEqual(await dueTimes(fixture.store), []);
    await (await fixture.open()).signal({ id: '1', name: 'go' });
    deepStrictEqual(await dueTimes(fixture.store), [['t1', 0]]);
  },
  'an entry is not committed without its due turns': (library) =>
    inFolder(async (path) => {
      const control = failingDriver(library);
      const store = await library.openSqlite(path, { driver: control.open });
      const { fence } = await store.journal.claim('s');
      control.failingStatement = 'INSERT OR REPLACE INTO due_turns';
      await codeOf(store.journal.append({ session: 's', fence, firstSeq: 0, entries: [entry(0)], due: DUE }));
      await store.close().catch(() => {});
      const reopened = await library.openSqlite(path);
      deepStrictEqual(await reopened.journal.list(), [{ session: 's', nextSeq: 0 }]);
      await reopened.close();
    }),
  'a writer whose claim was removed changes no due turn': (library) =>
    inFolder(async (path) => {
      const control = failingDriver(library);
      const store = await library.openSqlite(path, { driver: control.open });
      const { fence } = await store.journal.claim('s');
      control.raw?.exec('UPDATE sessions SET fence = fence + 1');
      const append = store.journal.append({ session: 's', fence, firstSeq: 0, entries: [], due: DUE });
      strictEqual(await codeOf(append), 'STALE_WRITER');
      deepStrictEqual(await dueTimes(store), []);
      await store.close();
    }),
  'an index that was lost is reported as incomplete': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path);
      await store.journal.claim('s');
      strictEqual(await store.dueTurns.isComplete(), true);
      await store.close();
      const driver = library.openDriver(path);
      driver.exec('DROP TABLE due_turns');
      driver.close();
      const reopened = await library.openSqlite(path);
      strictEqual(await reopened.dueTurns.isComplete(), false);
      await reopened.close();
    }),
  'the store in memory passes the journal cases': async (library) => {
    for (const { run: runCase } of library.journalCases(() => ({ open: async () => library.memoryStore() })))
      await runCase();
  },
} satisfies { readonly [promise: string]: GuardCheck };
