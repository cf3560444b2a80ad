/** The projection of a hosted loop: from receipts and admitted events alone, recomputable, and honest about its age. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { onlyPending } from '../../../spec/support/approval-fixture.js';
import { counter, type HostedFixture, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { ASKING, appendTo, expectStopped, rewrite } from '../../../spec/support/hosted-stops.js';
import { verifies } from '../../../spec/verifies.js';
import { canonicalJson } from '../../json/canonical.js';
import type { Entry } from '../../protocol/entry.js';
import type { HostedLoopDocument, HostedProjection } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import {
  type EndedTurn,
  HOSTED_REQUESTED,
  HostedLoopState,
  type ReceivedSignal,
  type RequestedTurn,
  type StartedLoop,
} from '../../views/hosted-loop.js';
import { defineHostedLoop } from './define-hosted-loop.js';

const HOUR_MS = 3_600_000;
const STREAM = 'rondo:hosted:counter';
const SIGNALLED: Partial<HostedLoopDocument> = {
  schedule: { everyMs: HOUR_MS },
  signals: { go: { schema: true } },
  next: { n: '$.last.output.n' },
  stop: { maxTurns: 10 },
};

async function entriesOf({ store }: HostedFixture): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for await (const batch of store.journal.read(STREAM, 0)) entries.push(...batch);
  return entries;
}

/** Three turns, of which signals caused two. */
async function worked(): Promise<HostedFixture> {
  const fixture = hostedFixture();
  await fixture.start(counter(SIGNALLED));
  await fixture.work();
  for (const id of ['a', 'b']) {
    await fixture.clock.advance(1000);
    await fixture.host.hosted.signal({ loop: 'counter', name: 'go', payload: { id }, id });
    await fixture.work();
  }
  return fixture;
}

const chained = (head: string, item: Json): string =>
  createHash('sha256')
    .update(`${head}\n${canonicalJson(item)}`)
    .digest('hex');
const digestOf = (value: Json): string => createHash('sha256').update(canonicalJson(value)).digest('hex');

verifies(
  'hosted.projection',
  'the head can be computed again from the start, the receipts and the admitted signals',
  async () => {
    const fixture = await worked();
    let head = '';
    const received = new Map<string, ReceivedSignal>();
    for (const { type, key, value } of await entriesOf(fixture)) {
      if (type === 'rondo.hosted.started') {
        const { document, digest } = value as unknown as StartedLoop;
        head = chained('', { loop: document.id, digest });
      } else if (type === 'rondo.hosted.received') received.set(key, value as unknown as ReceivedSignal);
      else if (type === 'rondo.hosted.requested') {
        const { signal, head: named } = value as unknown as RequestedTurn;
        const { id, name, payload, at } = received.get(`${signal?.name} ${signal?.id}`) ?? {};
        if (signal !== undefined) head = chained(head, { signal: digestOf({ id, name, payload, at } as Json) });
        expect(named).toBe(head);
      } else if (type === 'rondo.hosted.ended') {
        const { turn, receipt, status } = value as unknown as EndedTurn;
        head = chained(head, { turn, receipt, status });
      }
    }
    const { projection } = await fixture.host.hosted.status('counter');
    expect(projection).toEqual({ head, fresh: true, asOf: new Date(START + 2000).toISOString() });
  },
);

verifies(
  'hosted.projection',
  'a turn is derived from the last receipt and the admitted signal, and from nothing else',
  async () => {
    const seen: HostedProjection[] = [];
    const fixture = hostedFixture();
    const { next: _, ...document } = counter(SIGNALLED);
    const loop = defineHostedLoop({
      ...document,
      next: (projection: HostedProjection) => {
        seen.push(projection);
        return { turn: projection.turn };
      },
    });
    await fixture.host.hosted.start(loop, { by: 'ada' });
    await fixture.work();
    await fixture.host.hosted.signal({ loop: 'counter', name: 'go', payload: 7, id: 'a' });
    await fixture.work();
    const [turn] = await fixture.host.hosted.turns('counter');
    const { turnId, receipt } = turn ?? {};
    expect(seen).toEqual([
      {
        ...{ loop: 'counter', turn: 2, input: { from: 0 }, used: { effects: 1, turns: 1 } },
        head: expect.stringMatching(/^[0-9a-f]{64}$/),
        last: { key: 'counter#1', turnId, status: 'ok', receipt, output: { n: 1 } },
        signal: { id: 'a', name: 'go', payload: 7, receivedAt: new Date(START).toISOString() },
      },
    ]);
  },
);

verifies('hosted.projection', 'a deleted snapshot changes nothing', async () => {
  const fixture = await worked();
  const before = await fixture.host.hosted.status('counter');
  const { store } = fixture;
  const none = { load: async () => undefined, save: async () => undefined };
  const without = hostedFixture({ store: { ...store, snapshots: none }, clock: fixture.clock, seed: 5 });
  expect(await without.host.hosted.status('counter')).toEqual(before);
  const garbage = { load: async () => ({ nextSeq: 2, tailDigest: 'x', state: 1 }), save: async () => undefined };
  const damaged = hostedFixture({ store: { ...store, snapshots: garbage }, clock: fixture.clock, seed: 6 });
  expect(await damaged.host.hosted.status('counter')).toEqual(before);
  await fixture.clock.advance(HOUR_MS);
  expect(await damaged.work()).toHaveLength(1);
});

verifies('hosted.projection', 'the state can be saved and loaded after each entry', async () => {
  const fixture = await worked();
  let saved = new HostedLoopState().save();
  const state = new HostedLoopState();
  for (const entry of await entriesOf(fixture)) {
    const restored = new HostedLoopState(JSON.parse(JSON.stringify(saved)));
    restored.apply(entry as never);
    state.apply(entry as never);
    saved = restored.save();
    expect(saved).toEqual(state.save());
  }
  expect((await entriesOf(fixture)).length).toBeGreaterThan(8);
});

verifies(
  'hosted.projection',
  'a projection is fresh unless a turn is open or the last receipt is not valid',
  async () => {
    const fixture = hostedFixture();
    await fixture.start(counter({ ...ASKING, ...SIGNALLED, ...{ schedule: { everyMs: HOUR_MS } } }));
    const fresh = async () => (await fixture.restart().host.hosted.status('counter')).projection.fresh;
    expect(await fresh(), 'before the first turn').toBe(true);
    await fixture.work();
    expect(await fresh(), 'while a turn waits').toBe(false);
    await fixture.host.answer({ id: (await onlyPending(fixture.host)).id, approved: true, by: 'ada' });
    await fixture.work();
    expect(await fresh(), 'after the turn').toBe(true);
    await rewrite(fixture.store, 'hosted:counter:1', (entries) =>
      entries.map((entry) => (entry.type === 'call.completed' ? { ...entry, value: { n: 9 } } : entry)),
    );
    expect(await fresh(), 'after the output was changed').toBe(false);
  },
);

verifies('hosted.projection', 'a request that names another head than the projection has stops the loop', async () => {
  const fixture = hostedFixture();
  await fixture.start(counter());
  const made = { turn: 1, at: START, cause: 'schedule', dueAt: START, through: START, input: { from: 0 } };
  await appendTo(fixture, [{ type: HOSTED_REQUESTED, key: 'counter#1', value: { ...made, head: 'a' } }]);
  // The view takes the head of the request; an entry between the request and the turn moves it.
  const restarted = fixture.restart();
  await appendTo(fixture, [{ type: 'rondo.hosted.started', key: 'counter', value: await startOf(fixture) }]);
  await restarted.work();
  expect(fixture.inputs).toEqual([]);
  await expectStopped(fixture, 'stale_projection');
});

async function startOf(fixture: HostedFixture): Promise<Json> {
  return (await entriesOf(fixture))[0]?.value as Json;
}

verifies(
  'hosted.projection',
  'a mapping that matches nothing stops the loop, and no turn runs with a guessed input',
  async () => {
    const fixture = hostedFixture();
    await fixture.start(counter({ next: { from: '$.last.output.missing' } }));
    await fixture.work();
    expect(fixture.inputs).toEqual([{ from: 0 }]);
    const { message } = await fixture.host.hosted.status('counter');
    expect(message).toContain('MAPPING_FAILED');
    await expectStopped(fixture, 'refused');
  },
);

verifies(
  'hosted.projection',
  'a process without the code that makes the inputs runs no turn, and one with it does',
  async () => {
    const fixture = hostedFixture();
    const loop = defineHostedLoop({ ...counter(), next: ({ turn }: HostedProjection) => ({ turn }) });
    await fixture.host.hosted.start(loop, { by: 'ada' });
    const without = fixture.restart();
    await expect(without.step()).rejects.toMatchObject({ code: 'LOOP_NOT_FOUND' });
    expect(await without.work()).toEqual([]);
    const again = fixture.restart();
    again.host.hosted.register(loop);
    await again.work();
    expect(fixture.inputs).toEqual([{ from: 0 }, { turn: 2 }, { turn: 3 }]);
  },
);

verifies('hosted.projection', 'the head differs for signals that differ in their name alone', async () => {
  const heads = await Promise.all(
    ['approve', 'reject'].map(async (name) => {
      const { host, start, work } = hostedFixture();
      const signals = { approve: { schema: true }, reject: { schema: true } };
      await start(counter({ signals, next: { name: '$.signal.name' } }));
      await host.hosted.signal({ loop: 'counter', name, payload: null, id: 'a' });
      await work();
      return (await host.hosted.turns('counter'))[0]?.head;
    }),
  );
  expect(new Set(heads).size).toBe(2);
});
