import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Host } from '../../src/host/host.js';
import type { Store } from '../../src/journal/store.js';
import type { ToolFunction } from '../../src/loops/tool-implementation.js';
import type { Safety } from '../../src/protocol/entry.js';
import type { Json } from '../../src/protocol/json.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { type CrashPoint, crashingStore } from '../../src/testing/crashing-store.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { ASK, ofType, ticks, told } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, type Scripted, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

/** What was done, under which idempotency key, whichever process did it. */
class Outside {
  readonly deeds = new Map<string, string[]>();
  readonly act: ToolFunction = (input, { idempotencyKey }) => {
    const name = JSON.stringify(input);
    this.deeds.set(name, [...(this.deeds.get(name) ?? []), idempotencyKey]);
    return input;
  };

  /** The most that one and the same thing was done. */
  get most(): number {
    return Math.max(0, ...[...this.deeds.values()].map((keys) => keys.length));
  }
}

interface Scene {
  readonly name: string;
  definitions(safety: Safety): readonly object[];
  readonly root: string;
  readonly replies?: readonly Scripted[];
  /** What is said to a call with these arguments. */
  answer(given: Json): { readonly approved: boolean; readonly standing?: Json };
}

const pay = (safety: Safety): object => ({
  ...tool('pay', 'builtin:act', ASK),
  tool: { implementation: 'builtin:act', safety },
});
const yes = () => ({ approved: true });
const amountOf = (given: Json): number => (given as { readonly amount?: number }).amount ?? 0;

const SCENES: readonly Scene[] = [
  { name: 'a tool', definitions: (safety) => [pay(safety)], root: 'pay', answer: yes },
  {
    name: 'a tool two steps down',
    definitions: (safety) => [
      pay(safety),
      composite('inner', [{ loopId: 'pay', inputMapping: '$.input' }]),
      composite('root', [
        { loopId: 'inner', inputMapping: '$.input' },
        { loopId: 'inner', inputMapping: { amount: '$.input.amount', again: 'literal:1' } },
      ]),
    ],
    root: 'root',
    answer: yes,
  },
  {
    name: 'tools of an agent, one denied',
    definitions: (safety) => [pay(safety), agentDef('boss', { tools: ['pay'] })],
    root: 'boss',
    replies: [
      { calls: [1, 2, 3].map((amount) => ['pay', { amount }] as const) },
      { calls: [['pay', { amount: 4 }]] },
      { text: 'done' },
    ],
    answer: (given) => ({ approved: amountOf(given) !== 2 }),
  },
  {
    name: 'a standing grant',
    definitions: (safety) => [pay(safety), agentDef('boss', { tools: ['pay'] })],
    root: 'boss',
    replies: [{ calls: [['pay', { amount: 1 }]] }, { calls: [['pay', { amount: 2 }]] }, { text: 'done' }],
    answer: () => ({ approved: true, standing: { properties: { amount: { maximum: 2 } }, required: ['amount'] } }),
  },
];

interface World {
  readonly scene: Scene;
  readonly safety: Safety;
  readonly outside: Outside;
  readonly clock: ManualClock;
}

function hostIn({ scene, safety, outside, clock }: World, store: Store, seed: number): Host {
  const backends = [telling(scene.replies ?? [])];
  return hostOf(scene.definitions(safety), { store, backends, tools: { act: outside.act }, clock, seed });
}

const REQUEST = { input: { prompt: 'go', amount: 5 }, key: 'once' };

/** Runs, answers and goes on until the turn has ended or a person must say what became of an effect. */
async function drive(world: World, store: Store, seed: number): Promise<TurnResult> {
  let result = await hostIn(world, store, seed).run({ loop: world.scene.root, ...REQUEST });
  for (let round = 1; result.status === 'paused' && round < 20; round++) {
    if (result.pending?.some(({ kind }) => kind === 'doubt')) return result;
    const host = hostIn(world, store, seed + round);
    for (const { id, arguments: given } of await host.archive.approvals()) {
      const how = await told(host, { id, by: 'ada', ...world.scene.answer(given) });
      if (how.startsWith('untyped')) throw new Error(how);
    }
    result = await host.resume(result.turnId);
  }
  return result;
}

const worldOf = (scene: Scene, safety: Safety): World => ({
  scene,
  safety,
  outside: new Outside(),
  clock: new ManualClock(1_000_000),
});

/** A run that dies at one append, and another that goes on with what it left. */
async function killed(scene: Scene, safety: Safety, point: CrashPoint): Promise<readonly [World, TurnResult, Host]> {
  const world = worldOf(scene, safety);
  const inner = memoryStore();
  await drive(world, crashingStore(inner, point), 1).catch(() => {});
  await ticks(2);
  await world.clock.advance(1000);
  const result = await drive(world, inner, 100);
  return [world, result, hostIn(world, inner, 200)];
}

/** The same as if nothing had happened, or a person has to say what became of the tool. */
async function assertOnce(
  scene: Scene,
  safety: Safety,
  point: CrashPoint,
  calm: TurnResult,
): Promise<'ended' | 'parked'> {
  const where = `${scene.name}, ${safety}, append ${point.appendNumber}, ${point.when}`;
  const [{ outside }, result, host] = await killed(scene, safety, point);
  for (const keys of outside.deeds.values()) expect(new Set(keys).size, where).toBe(1);
  expect(outside.most, where).toBeLessThanOrEqual(safety === 'once' ? 1 : 2);
  const entries = await host.archive.entries(result.sessionId);
  const settled = ofType(entries, 'wait.settled').map(({ key }) => key);
  expect(new Set(settled).size, where).toBe(settled.length);
  const denied = outside.deeds.has(JSON.stringify({ amount: 2 })) && !scene.answer({ amount: 2 }).approved;
  expect(denied, where).toBe(false);
  expect(await host.replay(result.turnId), where).toMatchObject({ matches: true });
  if (result.status === 'paused') {
    expect([safety, result.pending?.[0]?.kind], where).toEqual(['once', 'doubt']);
    return 'parked';
  }
  expect([result.status, result.output], where).toEqual([calm.status, calm.output]);
  return 'ended';
}

for (const scene of SCENES) {
  for (const safety of ['once', 'idempotent', 'keyed'] as const) {
    verifies(
      'approval.kill',
      `${scene.name} (${safety}) runs twice, or never, after a kill at any append`,
      async () => {
        const counting = crashingStore(memoryStore());
        const calm = worldOf(scene, safety);
        const expected = await drive(calm, counting, 1);
        expect([expected.status, calm.outside.most]).toEqual(['ok', 1]);
        const ends = new Map<string, number>();
        for (let append = 1; append <= counting.appendCount; append++) {
          for (const when of ['before', 'after'] as const) {
            const end = await assertOnce(scene, safety, { appendNumber: append, when }, expected);
            ends.set(end, (ends.get(end) ?? 0) + 1);
          }
        }
        expect(ends.get('ended') ?? 0).toBeGreaterThan(counting.appendCount / 2);
        expect((ends.get('parked') ?? 0) > 0).toBe(safety === 'once');
      },
    );
  }
}
