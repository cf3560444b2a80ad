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
import { ASK, answerOutcome, ofType, ticks } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, replyProvider, type Scripted } from '../support/scripted-agents.js';
import { outputOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

/** An external system, shared by all processes: the idempotency keys of each action. */
class ExternalSystem {
  readonly actions = new Map<string, string[]>();
  readonly act: ToolFunction = (input, { idempotencyKey }) => {
    const name = JSON.stringify(input);
    this.actions.set(name, [...(this.actions.get(name) ?? []), idempotencyKey]);
    return input;
  };

  /** The highest number of times that one action was performed. */
  get maxCount(): number {
    return Math.max(0, ...[...this.actions.values()].map((keys) => keys.length));
  }
}

interface Scenario {
  readonly name: string;
  definitions(safety: Safety): readonly object[];
  readonly root: string;
  readonly replies?: readonly Scripted[];
  /** Returns the answer to a call with these arguments. */
  answer(input: Json): { readonly approved: boolean; readonly standing?: Json };
}

const pay = (safety: Safety): object => ({
  ...tool('pay', 'builtin:act', ASK),
  tool: { implementation: 'builtin:act', safety },
});
const yes = () => ({ approved: true });
const amountOf = (input: Json): number => (input as { readonly amount?: number }).amount ?? 0;

const SCENARIOS: readonly Scenario[] = [
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
    answer: (input) => ({ approved: amountOf(input) !== 2 }),
  },
  {
    name: 'a standing grant',
    definitions: (safety) => [pay(safety), agentDef('boss', { tools: ['pay'] })],
    root: 'boss',
    replies: [{ calls: [['pay', { amount: 1 }]] }, { calls: [['pay', { amount: 2 }]] }, { text: 'done' }],
    answer: () => ({ approved: true, standing: { properties: { amount: { maximum: 2 } }, required: ['amount'] } }),
  },
];

interface Environment {
  readonly scenario: Scenario;
  readonly safety: Safety;
  readonly external: ExternalSystem;
  readonly clock: ManualClock;
}

function hostIn({ scenario, safety, external, clock }: Environment, store: Store, seed: number): Host {
  const providers = [replyProvider(scenario.replies ?? [])];
  return hostOf(scenario.definitions(safety), { store, providers, tools: { act: external.act }, clock, seed });
}

const REQUEST = { input: { prompt: 'go', amount: 5 }, key: 'once' };

/** Runs, answers and resumes until the turn ends or an effect is in doubt. */
async function drive(environment: Environment, store: Store, seed: number): Promise<TurnResult> {
  let result = await hostIn(environment, store, seed).run({ loop: environment.scenario.root, ...REQUEST });
  for (let round = 1; result.status === 'paused' && round < 20; round++) {
    if (result.pending?.some(({ kind }) => kind === 'doubt')) return result;
    const host = hostIn(environment, store, seed + round);
    for (const { id, arguments: input } of await host.archive.approvals()) {
      const outcome = await answerOutcome(host, { id, by: 'ada', ...environment.scenario.answer(input) });
      if (outcome.startsWith('untyped')) throw new Error(outcome);
    }
    result = await host.resume(result.turnId);
  }
  return result;
}

const environmentOf = (scenario: Scenario, safety: Safety): Environment => ({
  scenario,
  safety,
  external: new ExternalSystem(),
  clock: new ManualClock(1_000_000),
});

/** Crashes a run at one append and finishes the turn with a second run on the same store. */
async function crashAndFinish(
  scenario: Scenario,
  safety: Safety,
  point: CrashPoint,
): Promise<readonly [Environment, TurnResult, Host]> {
  const environment = environmentOf(scenario, safety);
  const inner = memoryStore();
  await drive(environment, crashingStore(inner, point), 1).catch(() => {});
  await ticks(2);
  await environment.clock.advance(1000);
  const result = await drive(environment, inner, 100);
  return [environment, result, hostIn(environment, inner, 200)];
}

/** Asserts that the turn ended as without a crash, or is paused with the tool in doubt. */
async function assertOnce(
  scenario: Scenario,
  safety: Safety,
  point: CrashPoint,
  expected: TurnResult,
): Promise<'ended' | 'in doubt'> {
  const where = `${scenario.name}, ${safety}, append ${point.appendNumber}, ${point.when}`;
  const [{ external }, result, host] = await crashAndFinish(scenario, safety, point);
  for (const keys of external.actions.values()) expect(new Set(keys).size, where).toBe(1);
  expect(external.maxCount, where).toBeLessThanOrEqual(safety === 'once' ? 1 : 2);
  const entries = await host.archive.entries(result.sessionId);
  const settled = ofType(entries, 'wait.settled').map(({ key }) => key);
  expect(new Set(settled).size, where).toBe(settled.length);
  const deniedToolRan = external.actions.has(JSON.stringify({ amount: 2 })) && !scenario.answer({ amount: 2 }).approved;
  expect(deniedToolRan, where).toBe(false);
  expect(await host.replay(result.turnId), where).toMatchObject({ matches: true });
  if (result.status === 'paused') {
    expect([safety, result.pending?.[0]?.kind], where).toEqual(['once', 'doubt']);
    return 'in doubt';
  }
  expect([result.status, outputOf(result)], where).toEqual([expected.status, outputOf(expected)]);
  return 'ended';
}

for (const scenario of SCENARIOS) {
  for (const safety of ['once', 'idempotent', 'keyed'] as const) {
    verifies(
      'approval.kill',
      `${scenario.name} (${safety}) ends as without a kill, or in doubt, after a kill at any append`,
      async () => {
        const counting = crashingStore(memoryStore());
        const undisturbed = environmentOf(scenario, safety);
        const expected = await drive(undisturbed, counting, 1);
        expect([expected.status, undisturbed.external.maxCount]).toEqual(['ok', 1]);
        const ends = new Map<string, number>();
        for (let append = 1; append <= counting.appendCount; append++) {
          for (const when of ['before', 'after'] as const) {
            const end = await assertOnce(scenario, safety, { appendNumber: append, when }, expected);
            ends.set(end, (ends.get(end) ?? 0) + 1);
          }
        }
        expect(ends.get('ended') ?? 0).toBeGreaterThan(counting.appendCount / 2);
        expect((ends.get('in doubt') ?? 0) > 0).toBe(safety === 'once');
      },
    );
  }
}
