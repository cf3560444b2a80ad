/** The promises of the index of due turns that every store must keep. They are part of `journalCases`. */
import { deepStrictEqual, rejects, strictEqual } from 'node:assert';
import { Fault } from '../base/errors.js';
import type { DueChange, DueTurn } from '../journal/due-turns.js';
import type { Batch, Claim, Store } from '../journal/store.js';

type DueTurnCase = (store: Store, reopen: () => Promise<Store>) => Promise<void>;

const FOREVER = Number.MAX_SAFE_INTEGER;

function dueBatch(session: string, { fence, nextSeq }: Claim, due: readonly DueChange[], entryCount = 1): Batch {
  const entries = Array.from({ length: entryCount }, (_, i) => ({
    seq: nextSeq + i,
    at: 1_700_000_000_000,
    type: 'step.taken',
    key: `t1/${nextSeq + i}`,
  }));
  return { session, fence, firstSeq: nextSeq, entries, due };
}

async function listTimes(store: Store): Promise<readonly (readonly [string, number])[]> {
  return (await store.dueTurns.list(FOREVER, 100)).map(({ turn, dueAt }) => [turn, dueAt]);
}

/** Creates one session for each turn. */
async function makeDue(store: Store, turns: readonly DueTurn[]): Promise<void> {
  for (const { session, turn, dueAt } of turns) {
    const claim = await store.journal.claim(session);
    await store.journal.append(dueBatch(session, claim, [{ turn, dueAt }], 0));
  }
}

const isStaleWriter = (error: unknown): boolean => error instanceof Fault && error.code === 'STALE_WRITER';

/** The case that needs a store which can be opened again. */
export const REOPENED_INDEX_CASE = 'due turns are there after the store is opened again';

/** The cases, by name. */
export const dueTurnCases: { readonly [name: string]: DueTurnCase } = {
  'a turn is due from the append that says so until the append that removes it': async (store) => {
    const claim = await store.journal.claim('a');
    await store.journal.append(
      dueBatch('a', claim, [
        { turn: 't1', dueAt: 0 },
        { turn: 't2', dueAt: 70 },
      ]),
    );
    deepStrictEqual(await listTimes(store), [
      ['t1', 0],
      ['t2', 70],
    ]);
    await store.journal.append(dueBatch('a', { ...claim, nextSeq: 1 }, [{ turn: 't1', dueAt: 90 }]));
    deepStrictEqual(await listTimes(store), [
      ['t2', 70],
      ['t1', 90],
    ]);
    await store.journal.append(dueBatch('a', { ...claim, nextSeq: 2 }, [{ turn: 't2', dueAt: undefined }]));
    deepStrictEqual(await listTimes(store), [['t1', 90]]);
  },
  'an append without entries changes due turns and no entry': async (store) => {
    const claim = await store.journal.claim('a');
    const empty = dueBatch('a', claim, [{ turn: 't1', dueAt: 5 }], 0);
    await store.journal.append(empty);
    await store.journal.append(empty);
    deepStrictEqual(await listTimes(store), [['t1', 5]]);
    strictEqual((await store.journal.list())[0]?.nextSeq, 0);
    await store.journal.append(dueBatch('a', claim, [{ turn: 't1', dueAt: undefined }], 2));
    deepStrictEqual(await listTimes(store), []);
    strictEqual((await store.journal.list())[0]?.nextSeq, 2);
  },
  'due turns are listed by due time, session and turn, page by page': async (store) => {
    const turns = [
      { session: 'b', turn: 'b.1', dueAt: 0 },
      { session: 'a', turn: 'a.1', dueAt: 10 },
      { session: 'c', turn: 'c.1', dueAt: 10 },
      { session: 'd', turn: 'd.1', dueAt: 30 },
    ];
    await makeDue(store, [...turns].reverse());
    deepStrictEqual(await store.dueTurns.list(10, 100), turns.slice(0, 3));
    deepStrictEqual(await store.dueTurns.list(9.5, 100), turns.slice(0, 1));
    deepStrictEqual(await store.dueTurns.list(Number.POSITIVE_INFINITY, 2), turns.slice(0, 2));
    deepStrictEqual(await store.dueTurns.list(FOREVER, 2, turns[1]), turns.slice(2));
    deepStrictEqual(await store.dueTurns.list(FOREVER, 2, { session: 'b', turn: 'x', dueAt: 10 }), turns.slice(2));
    deepStrictEqual(await store.dueTurns.list(FOREVER, 0), []);
    deepStrictEqual(await store.dueTurns.list(-1, 100), []);
  },
  'the next due time is the earliest one that is later': async (store) => {
    strictEqual(await store.dueTurns.nextDueAt(-1), undefined);
    await makeDue(store, [
      { session: 'a', turn: 'a.1', dueAt: 0 },
      { session: 'b', turn: 'b.1', dueAt: 20 },
      { session: 'c', turn: 'c.1', dueAt: 10 },
    ]);
    const times = await Promise.all([-1, 0, 9.5, 10, 20, FOREVER].map((after) => store.dueTurns.nextDueAt(after)));
    deepStrictEqual(times, [0, 10, 10, 20, undefined, undefined]);
  },
  'a refused append changes no due turn': async (store) => {
    const oldClaim = await store.journal.claim('a');
    await store.journal.append(dueBatch('a', oldClaim, [{ turn: 't1', dueAt: 5 }]));
    const change = [{ turn: 't1', dueAt: undefined }];
    for (const count of [0, 1])
      await rejects(store.journal.append(dueBatch('a', { ...oldClaim, nextSeq: 2 }, change, count)), isStaleWriter);
    const claim = await store.journal.claim('a');
    const staleClaim = { ...claim, fence: oldClaim.fence };
    for (const count of [0, 1])
      await rejects(store.journal.append(dueBatch('a', staleClaim, change, count)), isStaleWriter);
    await rejects(store.journal.append(dueBatch('unclaimed', claim, change, 0)), isStaleWriter);
    deepStrictEqual(await listTimes(store), [['t1', 5]]);
  },
  'a repeated append changes no due turn again': async (store) => {
    const claim = await store.journal.claim('a');
    const sent = dueBatch('a', claim, [{ turn: 't1', dueAt: 5 }]);
    await store.journal.append(sent);
    await store.journal.append(dueBatch('a', { ...claim, nextSeq: 1 }, [{ turn: 't1', dueAt: undefined }]));
    await store.journal.append(sent);
    deepStrictEqual(await listTimes(store), []);
  },
  'a removed session has no due turns': async (store) => {
    await makeDue(store, [{ session: 'a', turn: 'a.1', dueAt: 0 }]);
    await store.journal.remove('a');
    deepStrictEqual(await listTimes(store), []);
    await store.journal.claim('a');
    deepStrictEqual(await listTimes(store), []);
    strictEqual(await store.dueTurns.nextDueAt(-1), undefined);
  },
  'a new store has a complete index, and a rebuild adds only turns that it lacks': async (store) => {
    strictEqual(await store.dueTurns.isComplete(), true);
    await makeDue(store, [{ session: 'a', turn: 'a.1', dueAt: 50 }]);
    await store.dueTurns.rebuild([
      { session: 'a', turn: 'a.1', dueAt: 0 },
      { session: 'a', turn: 'a.2', dueAt: 0 },
      { session: 'absent', turn: 'absent.1', dueAt: 0 },
    ]);
    deepStrictEqual(await listTimes(store), [
      ['a.2', 0],
      ['a.1', 50],
    ]);
    strictEqual(await store.dueTurns.isComplete(), true);
  },
  [REOPENED_INDEX_CASE]: async (store, reopen) => {
    await makeDue(store, [{ session: 'a', turn: 'a.1', dueAt: 50 }]);
    await store.close();
    const reopened = await reopen();
    deepStrictEqual(await listTimes(reopened), [['a.1', 50]]);
    strictEqual(await reopened.dueTurns.isComplete(), true);
    await reopened.close();
  },
};
