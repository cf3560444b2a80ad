/** Leaf calls: what they record, how they continue after a crash, and that they mean the same as calls with an effect. */
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import { LoopError } from '../base/errors.js';
import { expandLeaf, expandLeaves } from '../journal/leaf-entries.js';
import type { SessionOptions } from '../journal/session-options.js';
import type { Store } from '../journal/store.js';
import type { View } from '../journal/view.js';
import type { Effect, Loop, Scope } from '../protocol/body.js';
import type { Entry, Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { RunOutcome } from '../protocol/session.js';
import { crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { callDetailsOf } from '../views/call-details.js';
import { conversationOf } from '../views/conversation.js';
import { failurePathOf } from '../views/failure-path.js';
import { traceOf } from '../views/trace.js';
import { Session } from './session.js';

interface ToolOptions {
  readonly safety?: Safety;
  readonly perform?: (input: Json) => Promise<Json> | Json;
  /** False for a loop without `leaf`, whose calls have entries of their own for the effect. */
  readonly isLeaf?: boolean;
}

/** A session in a store, and the idempotency keys of what was performed. */
class Fixture {
  readonly store: Store = memoryStore();
  readonly clock = new ManualClock(1_000);
  readonly keys: string[] = [];
  private opened = 0;

  open(options: Partial<SessionOptions> = {}): Promise<Session> {
    return Session.open('s', { store: this.store, clock: this.clock, ids: seededIds(++this.opened), ...options });
  }

  /** Returns a loop like that of a tool. */
  tool({ safety = 'once', perform = () => ({ output: 'done' }), isLeaf = true }: ToolOptions = {}): Loop<Json, Json> {
    const toEffect = (input: Json): Effect => ({
      kind: 'tool',
      name: 'pay',
      safety,
      input,
      perform: (args, { idempotencyKey }) => {
        this.keys.push(idempotencyKey);
        return perform(args);
      },
    });
    const body = async (input: Json, scope: Scope): Promise<Json> =>
      ((await scope.effect(toEffect(input))) as { readonly output: Json }).output;
    const members = isLeaf ? { leaf: { effect: toEffect, outputMember: 'output' }, body } : { body };
    return { name: 'pay', version: '1.0.0', ...members };
  }

  async entries(): Promise<Entry[]> {
    const all: Entry[] = [];
    for await (const some of this.store.journal.read('s', 0)) all.push(...some);
    return all.filter(({ type }) => type !== 'session.opened');
  }

  async types(): Promise<string[]> {
    return (await this.entries()).map(({ type, key }) => `${type} ${key}`);
  }

  /** Runs a tool as a step of the root `t1`. */
  run(session: Session, tool: Loop<Json, Json>): Promise<RunOutcome> {
    const body = (_: Json, scope: Scope): Promise<Json> => scope.call(tool, { amount: 5 });
    return session.run('t1', { name: 'main', bodyKind: 'code', body }, null, { timers: 'pause' });
  }

  /** Runs a tool, and crashes before its result is durable. */
  async crash(tool: Loop<Json, Json>): Promise<void> {
    const session = await this.open({ store: crashingStore(this.store, { appendNumber: 2, when: 'before' }) });
    await this.run(session, tool).catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const withoutSeqs = (entries: readonly Entry[]): unknown[] => entries.map(({ seq: _, ...rest }) => rest);

verifies('kernel.leaf', 'a call of a tool has two entries', async () => {
  const fixture = new Fixture();
  const outcome = await fixture.run(await fixture.open(), fixture.tool());
  expect(outcome).toEqual({ status: 'ok', output: 'done' });
  expect(await fixture.types()).toEqual([
    'call.started t1',
    'call.started t1/0',
    'call.completed t1/0',
    'call.completed t1',
  ]);
});

const fail = (): never => {
  throw new LoopError('TOOL_FAILED', 'declined');
};
const OUTCOMES: { readonly [outcome: string]: NonNullable<ToolOptions['perform']> } = {
  completes: () => ({ output: { paid: true } }),
  fails: fail,
  'writes a log': () => ({ output: 1, notes: [{ type: 'log.written', value: { level: 'info', message: 'paid' } }] }),
  'has a large output': () => ({ output: 'x'.repeat(10_000) }),
  'returns no JSON': () => ({ output: 1n as unknown as Json }),
};

for (const [outcome, perform] of Object.entries(OUTCOMES))
  verifies(
    'kernel.leaf',
    `a leaf call that ${outcome} has the entries, trace and views of any other call`,
    async () => {
      const [leaf, plain] = [new Fixture(), new Fixture()];
      const outcomes = [
        await leaf.run(await leaf.open(), leaf.tool({ perform })),
        await plain.run(await plain.open(), plain.tool({ perform, isLeaf: false })),
      ];
      const withoutCause = (result: RunOutcome | undefined): unknown => JSON.parse(JSON.stringify(result));
      expect(withoutCause(outcomes[0])).toEqual(withoutCause(outcomes[1]));
      const [leafEntries, plainEntries] = [await leaf.entries(), await plain.entries()];
      expect(leafEntries.length).toBeLessThan(plainEntries.length);
      expect(withoutSeqs(expandLeaves(leafEntries))).toEqual(withoutSeqs(plainEntries));
      expect(traceOf('t1', leafEntries)).toEqual(traceOf('t1', plainEntries));
      expect(callDetailsOf('t1', leafEntries)).toEqual(callDetailsOf('t1', plainEntries));
      expect(failurePathOf('t1', leafEntries)).toEqual(failurePathOf('t1', plainEntries));
      const contents = (entries: readonly Entry[]): unknown =>
        conversationOf('s', entries).map(({ id: _, ...envelope }) => envelope);
      expect(contents(leafEntries)).toEqual(contents(plainEntries));
    },
  );

verifies('kernel.view', 'a view folds a leaf call as a call and its effect, live and after a restart', async () => {
  const typesView: View<string[]> = {
    name: 'types',
    version: 1,
    initial: [],
    apply: (types, { type }) => [...types, type],
  };
  const views = [typesView as unknown as View<never>];
  const fixture = new Fixture();
  const session = await fixture.open({ views });
  await fixture.run(session, fixture.tool());
  const live = session.state(typesView);
  expect(live.slice(1)).toEqual([
    'call.started',
    'call.started',
    'effect.requested',
    'effect.returned',
    'call.completed',
    'call.completed',
  ]);
  await session.close();
  expect((await fixture.open({ views })).state(typesView).slice(0, live.length)).toEqual(live);
});

verifies('kernel.leaf', 'a journal in which the effect was recorded separately continues as a leaf call', async () => {
  const fixture = new Fixture();
  await fixture.crash(fixture.tool({ safety: 'keyed', isLeaf: false }));
  expect(await fixture.types()).toEqual(['call.started t1', 'call.started t1/0', 'effect.requested t1/0/0']);
  const outcome = await fixture.run(await fixture.open(), fixture.tool({ safety: 'keyed' }));
  expect(outcome).toEqual({ status: 'ok', output: 'done' });
  expect(new Set(fixture.keys).size).toBe(1);
});

for (const safety of ['pure', 'idempotent', 'keyed'] as const)
  verifies(
    'kernel.doubt',
    `a leaf call with the safety ${safety} that was interrupted is performed again`,
    async () => {
      const fixture = new Fixture();
      const tool = fixture.tool({ safety });
      await fixture.crash(tool);
      const outcome = await fixture.run(await fixture.open(), tool);
      expect(outcome).toEqual({ status: 'ok', output: 'done' });
      if (safety !== 'pure') expect(fixture.keys).toEqual([fixture.keys[0], fixture.keys[0]]);
    },
  );

const RESOLUTIONS = [
  ['retry', { status: 'ok', output: 'done' }, 2],
  ['supply', { status: 'ok', output: 'by hand' }, 1],
  ['fail', { status: 'error', error: { code: 'EFFECT_IN_DOUBT' } }, 1],
] as const;

for (const [resolution, expected, performed] of RESOLUTIONS)
  verifies('kernel.doubt', `a once leaf call in doubt waits for its resolution: ${resolution}`, async () => {
    const fixture = new Fixture();
    await fixture.crash(fixture.tool());
    const session = await fixture.open();
    const paused = await fixture.run(session, fixture.tool());
    expect(paused).toMatchObject({
      status: 'paused',
      pending: [{ kind: 'doubt', key: 't1/0/0', name: 'pay', input: { amount: 5 } }],
    });
    await session.resolveEffect('t1/0/0', resolution, 'ada', { value: { output: 'by hand' } });
    expect(await fixture.run(session, fixture.tool())).toMatchObject(expected);
    expect(fixture.keys).toHaveLength(performed);
    expect(new Set(fixture.keys).size).toBe(1);
  });

verifies('turn.retry', 'a retry performs the effect of a failed leaf call again', async () => {
  const fixture = new Fixture();
  expect(await fixture.run(await fixture.open(), fixture.tool({ perform: fail }))).toMatchObject({ status: 'error' });
  const path = failurePathOf('t1', await fixture.entries());
  expect(path).toEqual(['t1', 't1/0', 't1/0/0']);
  const session = await fixture.open();
  await session.reopen('t1', path);
  expect(await fixture.run(session, fixture.tool())).toEqual({ status: 'ok', output: 'done' });
  expect((await fixture.types()).slice(-4)).toEqual([
    'effect.requested t1/0/0~1',
    'effect.returned t1/0/0',
    'call.completed t1/0',
    'call.completed t1',
  ]);
  expect(fixture.keys).toEqual([fixture.keys[0], fixture.keys[0]]);
});

verifies('kernel.leaf', 'a root can be a leaf call', async () => {
  const fixture = new Fixture();
  const session = await fixture.open();
  const outcome = await session.run('t1', fixture.tool(), { amount: 5 });
  expect(outcome).toEqual({ status: 'ok', output: 'done' });
  expect(await fixture.types()).toEqual(['call.started t1', 'call.completed t1']);
  expect(await (await fixture.open()).run('t1', fixture.tool(), { amount: 5 })).toEqual(outcome);
  expect(fixture.keys).toHaveLength(1);
});

verifies('kernel.leaf', 'an effect with another name than its loop keeps its name', async () => {
  const fixture = new Fixture();
  const outcome = await fixture.run(await fixture.open(), { ...fixture.tool(), name: 'shop.pay' });
  expect(outcome).toEqual({ status: 'ok', output: 'done' });
  const expanded = expandLeaves(await fixture.entries());
  expect(expanded.filter(({ key }) => key.startsWith('t1/0')).map(({ name }) => name)).toEqual([
    'shop.pay',
    'pay',
    undefined,
    undefined,
  ]);
});

verifies('kernel.leaf', 'entries of other calls stand for themselves', async () => {
  const fixture = new Fixture();
  await fixture.run(await fixture.open(), fixture.tool({ isLeaf: false }));
  const entries = await fixture.entries();
  expect(entries.map(expandLeaf)).toEqual(entries.map(() => undefined));
  expect(expandLeaves(entries)).toBe(entries);
});
