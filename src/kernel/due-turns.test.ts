/** The rows that a session writes to the index of due turns: when a turn starts, pauses, continues and ends. */
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import type { SessionOptions } from '../journal/session-options.js';
import type { Batch, Store } from '../journal/store.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { RunOutcome } from '../protocol/session.js';
import { ManualClock } from '../testing/manual-clock.js';
import { Session } from './session.js';

interface Fixture {
  /** All appends, in order. */
  readonly batches: Batch[];
  open(options?: Partial<SessionOptions>): Promise<Session>;
  /** The due times of all turns, by turn. */
  due(): Promise<Readonly<Record<string, number>>>;
}

function fixture(): Fixture {
  const inner = memoryStore();
  const clock = new ManualClock(1_000);
  const batches: Batch[] = [];
  const append = (batch: Batch): Promise<void> => {
    batches.push(batch);
    return inner.journal.append(batch);
  };
  const claim = (session: string) => inner.journal.claim(session);
  const read = (session: string, from: number) => inner.journal.read(session, from);
  const store: Store = { ...inner, journal: { ...inner.journal, append, claim, read } };
  return {
    batches,
    open: (options) => Session.open('s', { store, clock, ids: seededIds(batches.length), ...options }),
    due: async () => {
      const turns = await inner.dueTurns.list(Number.POSITIVE_INFINITY, 100);
      return Object.fromEntries(turns.map(({ turn, dueAt }) => [turn, dueAt]));
    },
  };
}

function run(session: Session, body: (scope: Scope) => Promise<unknown>, root = 't1'): Promise<RunOutcome> {
  return session.run(root, { name: 'main', body: (_input: null, scope) => body(scope) }, null, { timers: 'pause' });
}

const effect = (perform: Effect['perform']): Effect => ({
  kind: 'test',
  name: 'e',
  safety: 'once',
  input: null,
  perform,
});
const typesOf = ({ entries }: Batch): string[] => entries.map(({ key, type }) => `${key} ${type}`);

verifies('kernel.due', 'a turn that starts and ends in one append does not touch the index', async () => {
  const { open, batches } = fixture();
  const session = await open();
  expect(await run(session, async (scope) => scope.record('a.b', () => 1))).toEqual({ status: 'ok', output: 1 });
  expect((await run(session, async () => Promise.reject(new Error('no')), 't2')).status).toBe('error');
  expect(batches.map(({ due }) => due)).toEqual([undefined, undefined]);
});

verifies('kernel.due', 'a running turn is due at once, from its first append to the append of its end', async () => {
  const { open, batches, due } = fixture();
  const session = await open();
  let duringEffect: unknown;
  const perform = async (): Promise<void> => {
    duringEffect = await due();
  };
  await run(session, (scope) => scope.effect(effect(perform)));
  expect(duringEffect).toEqual({ t1: 0 });
  expect(await due()).toEqual({});
  const changes = batches.flatMap((batch) => (batch.due === undefined ? [] : [[batch.due, typesOf(batch)]]));
  expect(changes).toEqual([
    [[{ turn: 't1', dueAt: 0 }], expect.arrayContaining(['t1 call.started'])],
    [[{ turn: 't1', dueAt: undefined }], expect.arrayContaining(['t1 call.completed'])],
  ]);
});

verifies('kernel.due', 'an append that a large value fills has the due time of its turn', async () => {
  const { open, batches } = fixture();
  const session = await open();
  const big = 'x'.repeat(2_000_000);
  const loop = { name: 'main', body: async (input: string, scope: Scope) => scope.record('a.b', () => input.length) };
  await session.run('t1', loop, big);
  const started = batches.find((batch) => typesOf(batch).includes('t1 call.started'));
  expect(started?.due).toEqual([{ turn: 't1', dueAt: 0 }]);
});

verifies(
  'kernel.due',
  'a paused turn is due at its earliest timer, and never if it waits for signals only',
  async () => {
    const { open, due } = fixture();
    const session = await open();
    await run(session, (scope) => scope.all([(s) => s.sleep(5_000), (s) => s.sleep(2_000.5), (s) => s.wait('x')]));
    await run(session, (scope) => scope.wait('x'), 't2');
    expect(await due()).toEqual({ t1: 3_001 });
  },
);

verifies('kernel.due', '`wakeAt` makes a paused turn due earlier, not later', async () => {
  const { open, due } = fixture();
  const seen: unknown[] = [];
  const wakeAt: SessionOptions['wakeAt'] = (pending) => {
    seen.push(pending.map(({ kind }) => kind));
    return 4_000;
  };
  const session = await open({ wakeAt });
  await run(session, (scope) => scope.wait('x'));
  await run(session, (scope) => scope.sleep(1), 't2');
  await run(session, (scope) => scope.sleep(9_000), 't3');
  expect(await due()).toEqual({ t1: 4_000, t2: 1_001, t3: 4_000 });
  expect(seen).toEqual([['signal'], ['timer'], ['timer']]);
});

verifies('kernel.due', 'a signal, a resolution and a cancel make a paused turn due in the same append', async () => {
  const { open, due, batches } = fixture();
  const session = await open();
  const dueOf = (type: string): unknown => batches.find((batch) => batch.entries.some((e) => e.type === type))?.due;
  await run(session, (scope) => scope.wait('x'));
  await run(session, (scope) => scope.wait('y'), 't2');
  await session.signal({ id: '1', name: 'x' });
  expect(await due()).toEqual({ t1: 0, t2: 0 });
  expect(dueOf('signal.received')).toHaveLength(2);
  await run(session, (scope) => scope.wait('x'));
  await run(session, (scope) => scope.wait('y'), 't2');
  expect(await due(), 'a turn that still waits is not due').toEqual({});
  await session.cancel('t2', 'enough');
  expect(await due()).toEqual({ t2: 0 });
  expect(dueOf('cancel.requested')).toEqual([{ turn: 't2', dueAt: 0 }]);
});

verifies('kernel.due', 'an addressed signal makes only its turn due, and no turn that has not started', async () => {
  const { open, due } = fixture();
  const session = await open();
  for (const root of ['t1', 't2']) await run(session, (scope) => scope.wait('x'), root);
  await session.signal({ id: '1', name: 'x', turn: 't2' });
  await session.signal({ id: '2', name: 'x', turn: 't3' });
  expect(await due()).toEqual({ t2: 0 });
});

verifies('kernel.due', 'a resolved effect makes its paused turn due', async () => {
  const { open, due } = fixture();
  const lost = await open();
  void run(lost, (scope) => scope.effect(effect(() => new Promise(() => {}))));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await due()).toEqual({ t1: 0 });
  const session = await open();
  expect((await run(session, (scope) => scope.effect(effect(() => 1)))).status).toBe('paused');
  expect(await due()).toEqual({});
  await session.resolveEffect('t1/0', 'supply', 'ada', { value: 1 });
  expect(await due()).toEqual({ t1: 0 });
});

verifies(
  'kernel.due',
  'a turn that continues is due at once, in case its process ends before its next pause',
  async () => {
    const { open, due } = fixture();
    const body = async (scope: Scope): Promise<void> => {
      await scope.race([(s) => s.wait('x'), (s) => s.sleep(60_000)]);
      await scope.effect(effect(() => new Promise(() => {})));
    };
    await run(await open(), body);
    expect(await due()).toEqual({ t1: 61_000 });
    const session = await open();
    const running = session.run('t1', { name: 'main', body: (_input: null, scope: Scope) => body(scope) }, null);
    running.catch(() => {});
    await session.signal({ id: '1', name: 'x' });
    expect(await due()).toEqual({ t1: 0 });
  },
);

verifies('kernel.due', 'a body that outlives its closed session leaves its turn due', async () => {
  const { open, due } = fixture();
  const session = await open();
  let finish: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const running = run(session, async (scope) => {
    await scope.effect(effect(() => 1));
    await gate;
  });
  running.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 20));
  const closing = session.close();
  finish();
  await closing;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await due()).toEqual({ t1: 0 });
});

verifies('kernel.due', 'a start that an invariant refuses leaves no turn in the index', async () => {
  const { open, due, batches } = fixture();
  const refuse = {
    view: { name: 'v', version: 1, initial: 0, apply: (n: number) => n },
    check: (_state: number, entry: { readonly type: string }) => (entry.type === 'call.started' ? 'no' : undefined),
  };
  const session = await open({ invariants: [refuse as never], views: [refuse.view as never] });
  expect((await run(session, async () => 1)).status).toBe('error');
  await session.close();
  expect(await due()).toEqual({});
  expect(batches.flatMap(({ entries }) => entries.map(({ type }) => type))).toContain('step.refused');
});

verifies('kernel.due', 'a failed turn that is reopened is due in the same append', async () => {
  const { open, due, batches } = fixture();
  const session = await open();
  expect((await run(session, async () => Promise.reject(new Error('no')))).status).toBe('error');
  expect(await due()).toEqual({});
  await session.reopen('t1', ['t1']);
  expect(await due()).toEqual({ t1: 0 });
  expect(batches.at(-1)?.entries.map(({ type }) => type)).toEqual(['call.reopened']);
  expect((await run(session, async () => 1)).status).toBe('ok');
  expect(await due()).toEqual({});
});
