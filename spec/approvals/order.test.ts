import { expect } from 'vitest';
import { z } from 'zod';
import type { Host } from '../../src/host/host.js';
import { loopFromTool } from '../../src/loops/tool-loop.js';
import type { Approval } from '../../src/protocol/approval.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import type { ModelCallOptions, ModelMessage } from '../../src/protocol/model.js';
import { loopsTool } from '../../src/protocol/tool.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import {
  gate,
  permutations,
  type RandomSource,
  RecordedActions,
  randomFrom,
  SEED,
  shownIds,
  ticks,
} from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { repetitions } from '../support/repetitions.js';
import { agentDef, type Reply, replyProvider } from '../support/scripted-agents.js';
import { pendingOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

const RANDOM = repetitions(500);

/** Replies with the number of calls that the prompt names. */
function replyTo(call: ModelCallOptions): Reply {
  const [count = '0', mode = ''] = JSON.stringify(call.prompt[0]).match(/[0-9]+|busy/g) ?? [];
  const calls = Array.from({ length: Number(count) }, (_, nth) => ['pay', { nth }] as const);
  return { calls: mode === 'busy' ? [...calls, ['hold', {}]] : calls };
}

interface OrderFixture {
  readonly host: Host;
  readonly actions: RecordedActions;
  /** Returns the last message that the model received. */
  lastMessage(): ModelMessage | undefined;
  release(): void;
}

function orderFixture(): OrderFixture {
  const actions = new RecordedActions();
  const provider = replyProvider([replyTo, { text: 'done' }]);
  let blocker = gate();
  const hold = () => {
    blocker = gate();
    return blocker.passed;
  };
  const boss = agentDef('boss', { tools: ['pay', 'hold'], approvals: { pay: 'ask' } });
  const host = hostOf([tool('pay', 'builtin:act'), tool('hold', 'builtin:hold'), boss], {
    tools: { act: actions.act, hold },
    providers: [provider],
  });
  return { host, actions, lastMessage: () => provider.requests.at(-1)?.prompt.at(-1), release: () => blocker.open() };
}

const indexOf = ({ arguments: input }: Pick<Approval, 'arguments'>): number => (input as { readonly nth: number }).nth;

/** Returns the tool outputs of a message, in order. */
function outputsOf(message: ModelMessage | undefined): readonly unknown[] {
  return message?.role === 'tool' ? message.content.map(({ output }) => output) : [];
}

interface Plan {
  readonly order: readonly number[];
  readonly denied: ReadonlySet<number>;
}

function planOf(random: RandomSource, order: readonly number[]): Plan {
  const half = Math.floor(order.length / 2) + (order.length % 2) * random.below(2);
  return { order, denied: new Set(random.shuffle(order).slice(0, half)) };
}

/** Asserts that every call received its own answer, and the model the results in the order of its calls. */
function assertRouted(
  { actions, lastMessage }: OrderFixture,
  { order, denied }: Plan,
  result: TurnResult,
  where: string,
): void {
  expect(result, where).toMatchObject({ status: 'ok', output: { text: 'done' } });
  const ran = actions.performed.splice(0).map((input) => indexOf({ arguments: input }));
  expect(ran.sort(), where).toEqual([...order].sort().filter((index) => !denied.has(index)));
  const expected = order.map((_, index) =>
    denied.has(index) ? { type: 'execution-denied', reason: `no ${index}` } : { type: 'json', value: { nth: index } },
  );
  expect(outputsOf(lastMessage()).slice(0, order.length), where).toEqual(expected);
}

async function answer(host: Host, id: string, index: number, { denied }: Plan): Promise<void> {
  const approved = !denied.has(index);
  await host.answer({ id, approved, by: 'ada', ...(!approved && { reason: `no ${index}` }) });
}

/** Answers while the turn is paused. Resumes it after each answer, or only after the last one. */
async function answerPaused(fixture: OrderFixture, plan: Plan, random: RandomSource, where: string): Promise<void> {
  const { host, actions } = fixture;
  const { order } = plan;
  const paused = await host.run({ loop: 'boss', input: { prompt: `${order.length}` } });
  const pending = await host.archive.approvals(paused.sessionId);
  expect(pending.map(indexOf), where).toEqual(order.map((_, index) => index));
  const resumesAfterEach = random.next() < 0.3;
  let result: TurnResult = paused;
  for (const [count, index] of order.entries()) {
    await answer(host, pending[index]?.id ?? '', index, plan);
    if (!resumesAfterEach && count < order.length - 1) continue;
    result = await host.resume(paused.turnId);
    const answered = order.slice(0, count + 1);
    expect(actions.count, where).toBe(answered.filter((one) => !plan.denied.has(one)).length);
    expect(pendingOf(result) ?? [], where).toHaveLength(order.length - count - 1);
  }
  assertRouted(fixture, plan, result, where);
}

/** Answers while the turn runs. */
async function answerLive(fixture: OrderFixture, plan: Plan, where: string): Promise<void> {
  const { host, release } = fixture;
  const { order } = plan;
  const envelopes: EventEnvelope[] = [];
  const options = { onEnvelope: (envelope: EventEnvelope) => void envelopes.push(envelope) };
  const running = host.run({ loop: 'boss', input: { prompt: `${order.length} busy` } }, options);
  await ticks(6);
  const ids = shownIds(envelopes);
  expect(ids, where).toHaveLength(order.length);
  await Promise.all(order.map((index) => answer(host, ids[index] ?? '', index, plan)));
  await ticks(2);
  release();
  assertRouted(fixture, plan, await running, where);
}

verifies(
  'approval.order',
  'every answer reaches its own call, in every order of answers',
  async () => {
    const random = randomFrom(SEED);
    const fixture = orderFixture();
    const all = [2, 3, 4, 5].flatMap((count) => permutations(count));
    expect(all).toHaveLength(152);
    for (const order of all) {
      const where = `RONDO_SEED=${SEED}, order ${order}`;
      await answerPaused(fixture, planOf(random, order), random, where);
      await answerLive(fixture, planOf(random, order), where);
    }
  },
  60_000,
);

verifies(
  'approval.order',
  `every answer reaches its own call among six to eight pending ones (${RANDOM} orders)`,
  async () => {
    const random = randomFrom(SEED + 1);
    const fixture = orderFixture();
    for (let round = 0; round < RANDOM; round++) {
      const order = random.shuffle(Array.from({ length: 6 + random.below(3) }, (_, index) => index));
      const where = `RONDO_SEED=${SEED}, round ${round}, order ${order}`;
      if (round % 2 === 0) await answerPaused(fixture, planOf(random, order), random, where);
      else await answerLive(fixture, planOf(random, order), where);
    }
  },
  60_000,
);

verifies(
  'approval.order',
  'a paused turn and the list of approvals name the calls in the order of the model',
  async () => {
    const calls = [0, 1, 2, 3].map((nth) => ['pay', { nth }] as const);
    const providers = [replyProvider([{ calls }, { text: 'done' }])];
    const boss = agentDef('boss', { tools: ['pay'], approvals: { pay: 'ask' } });
    const pay = loopsTool({
      name: 'pay',
      inputSchema: z.object({ nth: z.number() }),
      // Later calls record their requests earlier.
      requestApproval: ({ nth }) => ticks(10 * (4 - nth)).then(() => 'Pay?'),
      execute: () => null,
    });
    const host = hostOf([loopFromTool(pay), boss], { providers });
    const paused = await host.run({ loop: 'boss', input: { prompt: 'pay' } });
    const { turnId, status } = paused;
    const listed = await host.archive.approvals();
    const ids = listed.map(({ id }) => id);
    expect([status, listed.map(indexOf)]).toEqual(['paused', [0, 1, 2, 3]]);
    expect(pendingOf(paused).map(({ id }) => id)).toEqual(ids);
    expect((await host.archive.status(turnId))[0]?.pending?.map(({ id }) => id)).toEqual(ids);
  },
);

verifies('approval.order', 'each of several calls with the same tool and arguments needs its own answer', async () => {
  const actions = new RecordedActions();
  const calls = Array.from({ length: 4 }, () => ['pay', { amount: 5 }] as const);
  const provider = replyProvider([{ calls }, { text: 'done' }]);
  const boss = agentDef('boss', { tools: ['pay'], approvals: { pay: 'ask' } });
  const host = hostOf([tool('pay', 'builtin:act'), boss], { tools: { act: actions.act }, providers: [provider] });
  const { turnId } = await host.run({ loop: 'boss', input: { prompt: 'pay' } });
  const listed = await host.archive.approvals();
  expect(new Set(listed.map(({ id }) => id)).size).toBe(4);
  expect(new Set(listed.map(({ argumentsDigest }) => argumentsDigest)).size).toBe(1);
  const [first, second, third, fourth] = listed;
  await host.answer({ id: third?.id ?? '', approved: true, by: 'ada' });
  expect(await host.resume(turnId)).toMatchObject({ status: 'paused' });
  expect(actions.count).toBe(1);
  for (const approval of [fourth, first, second])
    await host.answer({ id: approval?.id ?? '', approved: approval === first, by: 'ada' });
  expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
  expect(actions.count).toBe(2);
  const kinds = outputsOf(provider.requests[1]?.prompt.at(-1)).map(
    (output) => (output as { readonly type: string }).type,
  );
  expect(kinds).toEqual(['json', 'execution-denied', 'json', 'execution-denied']);
});

verifies('approval.order', 'the model receives a denial with a long reason as a denial', async () => {
  for (const [reason, by] of [
    ['r'.repeat(4000), 'ada'],
    ['r'.repeat(100), 'a'.repeat(4000)],
    ['r'.repeat(4000), 'a'.repeat(4000)],
  ] as const) {
    const provider = replyProvider([{ calls: [['pay', {}]] }, { text: 'done' }]);
    const boss = agentDef('boss', { tools: ['pay'], approvals: { pay: 'ask' } });
    const host = hostOf([tool('pay', 'builtin:act'), boss], {
      tools: { act: new RecordedActions().act },
      providers: [provider],
    });
    const { turnId } = await host.run({ loop: 'boss', input: { prompt: 'pay' } });
    const [approval] = await host.archive.approvals();
    await host.answer({ id: approval?.id ?? '', approved: false, by, reason });
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
    const [output] = outputsOf(provider.requests[1]?.prompt.at(-1));
    expect(output, `${by.length} ${reason.length}`).toMatchObject({ type: 'execution-denied' });
  }
});
