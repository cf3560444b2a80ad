// Checks of stops, refusals and shared streams: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import type { SharedStream, StreamEntry, StreamState } from '../../src/journal/shared-stream.js';
import type { Store } from '../../src/journal/store.js';
import type { Session } from '../../src/kernel/session.js';
import type { Scope } from '../../src/protocol/body.js';
import type { Json } from '../../src/protocol/json.js';
import type { Admit } from '../../src/protocol/session.js';
import { loop, run, sessionFixture, tick } from '../support/session-fixture.js';
import { kernelParts, type Library, type LibraryParts } from './library.js';

export const stopParts: LibraryParts = [
  ...kernelParts,
  'journal/shared-stream.js',
  'views/budget.js',
  'views/turns.js',
  'host/budget/model-budget.js',
];

type StopLibrary = Library &
  typeof import('../../src/journal/shared-stream.js') &
  typeof import('../../src/views/budget.js') &
  typeof import('../../src/views/turns.js') &
  typeof import('../../src/host/budget/model-budget.js');

type StopCheck = (library: StopLibrary) => Promise<void>;

const ticks = async (count = 8): Promise<void> => {
  for (let n = 0; n < count; n++) await tick();
};

const refusing =
  ({ LoopError }: StopLibrary): Admit =>
  (effect) => {
    if (effect.name === 'forbidden') throw new LoopError('TOOL_NOT_ADMITTED', 'It is not permitted.');
    return effect;
  };

/** Runs a slow effect beside one that stops the run, and returns the types of the entries. */
async function stopBesideSlowEffect(library: StopLibrary): Promise<readonly string[]> {
  const { open, effect, entries } = sessionFixture(library);
  const session: Session = await open({
    admit: (admitted) => {
      if (admitted.name === 'limit') session.stop('t1', { reason: 'effects', message: '' });
      return admitted;
    },
  });
  const slow = effect('slow', 'once', { perform: () => ticks(40) });
  await run(session, (scope) =>
    scope.all([
      (branch) => branch.effect(slow),
      async (branch) => {
        await branch.effect(effect('first', 'once'));
        return branch.effect(effect('limit', 'once'));
      },
    ]),
  );
  await ticks(60);
  await session.flush();
  return (await entries()).map(({ type }) => type);
}

/** A sum with a limit, as the state of a stream. */
class Sum implements StreamState {
  total: number;

  constructor(saved?: Json) {
    this.total = (saved as number | undefined) ?? 0;
  }

  apply({ value }: StreamEntry): void {
    this.total += value as number;
  }

  save(): Json {
    return this.total;
  }
}

function openStream(library: StopLibrary, store: Store): Promise<SharedStream<Sum>> {
  const clock = new library.ManualClock(1);
  return library.SharedStream.open({ store, clock, name: 'shared', create: (saved) => new Sum(saved) });
}

const add =
  (key: string, amount: number, limit = 1e9) =>
  (state: Sum) =>
    state.total + amount > limit ? undefined : [{ type: 'added', key, value: amount }];

/** A store whose appends are delayed: `before` they are performed, or `after`. */
function delayedStore(inner: Store, delay: { before?: number; after?: (count: number) => number }): Store {
  let count = 0;
  const append: Store['journal']['append'] = async (batch) => {
    count += 1;
    const after = delay.after?.(count) ?? 0;
    await ticks(delay.before ?? 0);
    await inner.journal.append(batch);
    await ticks(after);
  };
  const { journal } = inner;
  return {
    ...inner,
    journal: {
      append,
      claim: (name) => journal.claim(name),
      read: (name, from) => journal.read(name, from),
      list: () => journal.list(),
      remove: (name) => journal.remove(name),
    },
  };
}

const reserved = (key: string, amounts: object, more: object = {}) => ({
  type: 'rondo.budget.reserved',
  key,
  value: { turn: 't', amounts, isOpen: true, ...more } as Json,
});
const settled = (key: string, amounts: object) => ({ type: 'rondo.budget.settled', key, value: { amounts } as Json });

export const stopChecks = {
  'a run that is stopped admits nothing more': async (library) => {
    const { open, effect } = sessionFixture(library);
    const endless = (name: string) => effect(name, 'idempotent', { perform: () => new Promise<never>(() => {}) });
    const body = (scope: Scope): Promise<unknown> =>
      scope.all(['limit', 'other'].map((name) => (branch) => branch.effect(endless(name))));
    void run(await open(), body);
    await ticks(10);
    const asked: string[] = [];
    const session: Session = await open({
      admit: (asking) => {
        asked.push(asking.name);
        session.stop('t1', { reason: 'effects', message: '' });
        return asking;
      },
    });
    await run(session, body);
    await ticks(10);
    deepStrictEqual(asked, ['limit']);
  },
  'every effect is admitted before it is performed': async (library) => {
    const { open, effect, performed } = sessionFixture(library);
    const session = await open({ admit: refusing(library) });
    const outcome = await run(session, (scope) => scope.effect(effect('forbidden', 'once')));
    strictEqual(outcome.status, 'error');
    deepStrictEqual(performed, []);
  },
  'a refusal is recorded': async (library) => {
    const { open, effect, entries } = sessionFixture(library);
    const session = await open({ admit: refusing(library) });
    await run(session, (scope) => scope.effect(effect('forbidden', 'once')));
    ok((await entries()).some(({ type }) => type === 'step.refused'));
  },
  'an interrupted effect is admitted again before it is repeated': async (library) => {
    const { open, effect, performed } = sessionFixture(library);
    const never = effect('forbidden', 'idempotent', {
      perform: () => {
        performed.push('forbidden');
        return new Promise(() => {});
      },
    });
    run(await open(), (scope) => scope.effect(never)).catch(() => undefined);
    await ticks();
    const again = await open({ admit: refusing(library) });
    await Promise.race([run(again, (scope) => scope.effect(never)), ticks(20)]);
    deepStrictEqual(performed, ['forbidden'], 'it was repeated without admission');
  },
  'a stop is recorded after the effects in flight have ended': async (library) => {
    strictEqual((await stopBesideSlowEffect(library)).at(-1), 'call.stopped');
  },
  'a turn is sealed after the effects in flight have ended': async (library) => {
    const { open, effect } = sessionFixture(library);
    const order: string[] = [];
    const session = await open();
    const slow = effect('slow', 'once', {
      perform: async () => {
        await ticks(40);
        order.push('slow ended');
        return 1;
      },
    });
    const body = loop((scope) =>
      scope.race([(one) => one.effect(slow), (other) => other.effect(effect('quick', 'once'))]),
    );
    await session.run('t1', body, null, { seal: async () => void order.push('sealed') });
    await ticks(60);
    deepStrictEqual(order, ['slow ended', 'sealed']);
  },
  'an effect that was not performed has no recorded end': async (library) => {
    const { open, effect, entries } = sessionFixture(library);
    const session: Session = await open();
    const perform = (): never => {
      session.stop('t1', { reason: 'effects', message: '' });
      throw new library.NotPerformed();
    };
    await run(session, (scope) => scope.effect(effect('act', 'once', { perform })));
    ok(!(await entries()).some(({ type }) => type === 'effect.failed'));
  },
  'a root that is stopped at its own effect can continue': async (library) => {
    const { open, effect, entries } = sessionFixture(library);
    const session: Session = await open({
      admit: (admitted) => {
        session.stop('t1', { reason: 'effects', message: '' });
        return admitted;
      },
    });
    const leaf = { effect: () => ({ ...effect('act', 'once'), input: null }) };
    const root = { name: 'leaf', leaf, body: (_: Json, scope: Scope) => scope.effect(leaf.effect()) };
    await session.run('t1', root, null);
    ok((await entries()).some(({ type, key }) => type === 'call.started' && key === 't1'));
  },
  'a root that has ended is not stopped': async (library) => {
    const { open, entries } = sessionFixture(library);
    const session: Session = await open({
      onEntry: ({ type }) => {
        if (type === 'call.completed') queueMicrotask(() => session.stop('t1', { reason: 'late', message: '' }));
      },
    });
    strictEqual((await run(session, async () => 'done')).status, 'ok');
    ok(!(await entries()).some(({ type }) => type === 'call.stopped'));
  },
  'a writer whose append is stale decides again on what others wrote': async (library) => {
    const store = library.memoryStore();
    const [first, second] = [await openStream(library, store), await openStream(library, store)];
    strictEqual(await second.update(add('a', 8, 10)).durable, true);
    strictEqual(await first.update(add('b', 8, 10)).durable, false);
    strictEqual(await first.update(add('c', 2, 10)).durable, true);
  },
  'a recovery does not repeat an append that is under way': async (library) => {
    const store = library.memoryStore();
    const stream = await openStream(library, delayedStore(store, { after: (count) => (count === 1 ? 30 : 0) }));
    const first = stream.update(add('a', 1));
    await tick();
    await openStream(library, store);
    const second = stream.update(add('b', 1));
    deepStrictEqual(await Promise.all([first.durable, second.durable]), [true, true]);
    strictEqual((await openStream(library, store)).state.total, 2);
  },
  'a decision during a recovery is applied once': async (library) => {
    for (let microtasks = 0; microtasks < 60; microtasks++) {
      const store = library.memoryStore();
      const [stream, other] = [await openStream(library, store), await openStream(library, store)];
      await other.update(add('other', 1)).durable;
      const first = stream.update(add('first', 1));
      for (let n = 0; n < microtasks; n++) await undefined;
      const second = stream.update(add('second', 1));
      await Promise.all([first.durable, second.durable]);
      strictEqual(stream.state.total, 3);
    }
  },
  'a decision without entries is final with those before it': async (library) => {
    const store = library.memoryStore();
    const stream = await openStream(library, delayedStore(store, { before: 5 }));
    const other = await openStream(library, store);
    await other.update(add('other', 10, 10)).durable;
    const once = (state: Sum) => (state.total % 10 === 1 ? [] : add('mine', 1, 10)(state));
    const first = stream.update(once);
    await tick();
    const second = stream.update(once);
    deepStrictEqual([first.isAccepted, second.isAccepted], [true, true]);
    deepStrictEqual(await Promise.all([first.durable, second.durable]), [false, false]);
  },
  'a stream that others extended is not short': async (library) => {
    const store = library.memoryStore();
    const [first, second] = [await openStream(library, store), await openStream(library, store)];
    await first.update(add('a', 1)).durable;
    strictEqual(await second.reaches(2), false);
    strictEqual(await second.reaches(1), true);
  },
  'a snapshot of other entries is not used': async (library) => {
    const store = library.memoryStore();
    const stream = await openStream(library, store);
    await stream.update(add('a', 5)).durable;
    await store.snapshots.save('shared', { nextSeq: 1, tailDigest: 'forged', state: 99 });
    strictEqual((await openStream(library, store)).state.total, 5);
  },
  'a snapshot contains only what is durable': async (library) => {
    const inner = library.memoryStore();
    const saved: { nextSeq: number; state: Json }[] = [];
    const store: Store = {
      ...delayedStore(inner, { before: 2 }),
      snapshots: { load: async () => undefined, save: async (_, snapshot) => void saved.push(snapshot) },
    };
    const stream = await openStream(library, store);
    for (let n = 0; n < 1100; n++) stream.update(add(`${n}`, 1));
    await tick();
    stream.update(add('later', 1));
    await stream.flush();
    for (const { nextSeq, state } of saved) strictEqual(state, nextSeq);
  },
  'a turn with receipts has not ended before its receipt': async ({ Turns }) => {
    const turns = new Turns();
    const entries = [
      { type: 'rondo.turn.opened', key: '#t', value: { sealed: true } },
      { type: 'call.started', key: 't', name: 'act' },
      { type: 'call.completed', key: 't', value: 1 },
    ];
    for (const [seq, entry] of entries.entries()) turns.apply({ seq, at: 1, ...entry });
    strictEqual(turns.get('t')?.endedEntry, undefined);
  },
  'a reservation stays within the limit': async ({ Budget }) => {
    const budget = new Budget();
    budget.apply(reserved('t/0#0', { effects: 2 }));
    const accounts = [{ id: '', limits: { effects: 2 } }];
    strictEqual(budget.exceededBy(accounts, { effects: 1 })?.counter, 'effects');
    strictEqual(budget.exceededBy(accounts, { effects: 0 }), undefined);
  },
  'what was used replaces what was reserved': async ({ Budget }) => {
    const budget = new Budget();
    budget.apply(reserved('t/0#0', { modelRounds: 1, outputTokens: 9 }));
    budget.apply(settled('t/0#0', { outputTokens: 4 }));
    deepStrictEqual(budget.totals(), { modelRounds: 1, outputTokens: 4 });
  },
  'a reservation is settled once': async ({ Budget }) => {
    const budget = new Budget();
    budget.apply(reserved('t/0#0', { outputTokens: 9 }));
    budget.apply(settled('t/0#0', { outputTokens: 4 }));
    budget.apply(settled('t/0#0', { outputTokens: 4 }));
    deepStrictEqual(budget.totals(), { outputTokens: 4 });
  },
  'an interrupted attempt stays charged when a later one is answered': async ({ Budget }) => {
    const budget = new Budget();
    for (const attempt of [0, 1]) budget.apply(reserved(`t/0#${attempt}`, { outputTokens: 9 }));
    deepStrictEqual(
      budget.openReservations('t').map(({ key }) => key),
      ['t/0#1'],
    );
  },
  'input that a reply does not report stays charged': async ({ usedBy }) => {
    deepStrictEqual(usedBy({ text: 'abc' }, undefined, { inputTokens: 70 }), { inputTokens: 70, outputTokens: 3 });
  },
} as const satisfies { readonly [promise: string]: StopCheck };
