import { expect } from 'vitest';
import { z } from 'zod';
import type { Host } from '../../src/host/host.js';
import { loopFromTool } from '../../src/loops/tool-loop.js';
import type { Approval } from '../../src/protocol/approval.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import type { ModelCallOptions, ModelMessage } from '../../src/protocol/model.js';
import { loopsTool } from '../../src/protocol/tool.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { Deeds, type Dice, diceOf, gate, permutations, SEED, shownIds, ticks } from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { agentDef, type Reply, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const RANDOM = 500;

/** How many calls are wanted stands in the prompt. */
function wanted(call: ModelCallOptions): Reply {
  const [count = '0', mode = ''] = JSON.stringify(call.prompt[0]).match(/[0-9]+|busy/g) ?? [];
  const calls = Array.from({ length: Number(count) }, (_, nth) => ['pay', { nth }] as const);
  return { calls: mode === 'busy' ? [...calls, ['hold', {}]] : calls };
}

interface Stage {
  readonly host: Host;
  readonly deeds: Deeds;
  /** What the model was told last. */
  last(): ModelMessage | undefined;
  release(): void;
}

function stageOf(): Stage {
  const deeds = new Deeds();
  const backend = telling([wanted, { text: 'done' }]);
  let held = gate();
  const hold = () => {
    held = gate();
    return held.passed;
  };
  const boss = agentDef('boss', { tools: ['pay', 'hold'], approvals: { pay: 'ask' } });
  const host = hostOf([tool('pay', 'builtin:act'), tool('hold', 'builtin:hold'), boss], {
    tools: { act: deeds.act, hold },
    backends: [backend],
  });
  return { host, deeds, last: () => backend.asked.at(-1)?.prompt.at(-1), release: () => held.open() };
}

const placeOf = ({ arguments: given }: Pick<Approval, 'arguments'>): number => (given as { readonly nth: number }).nth;

/** What the model is told of each call, in the order of the message. */
function outputsOf(message: ModelMessage | undefined): readonly unknown[] {
  return message?.role === 'tool' ? message.content.map(({ output }) => output) : [];
}

interface Plan {
  readonly order: readonly number[];
  readonly denied: ReadonlySet<number>;
}

function planOf(dice: Dice, order: readonly number[]): Plan {
  const half = Math.floor(order.length / 2) + (order.length % 2) * dice.below(2);
  return { order, denied: new Set(dice.shuffled(order).slice(0, half)) };
}

/** Every call got its own answer and no other; the model is told so, in the order of its calls. */
function assertRouted({ deeds, last }: Stage, { order, denied }: Plan, result: TurnResult, where: string): void {
  expect(result, where).toMatchObject({ status: 'ok', output: { text: 'done' } });
  const ran = deeds.done.splice(0).map((done) => placeOf({ arguments: done }));
  expect(ran.sort(), where).toEqual([...order].sort().filter((place) => !denied.has(place)));
  const expected = order.map((_, place) =>
    denied.has(place) ? { type: 'execution-denied', reason: `no ${place}` } : { type: 'json', value: { nth: place } },
  );
  expect(outputsOf(last()).slice(0, order.length), where).toEqual(expected);
}

async function give(host: Host, id: string, place: number, { denied }: Plan): Promise<void> {
  const approved = !denied.has(place);
  await host.answer({ id, approved, by: 'ada', ...(!approved && { reason: `no ${place}` }) });
}

/** Answers while nobody is at the turn, which is resumed now and then, or only at the end. */
async function answerPaused(stage: Stage, plan: Plan, dice: Dice, where: string): Promise<void> {
  const { host, deeds } = stage;
  const { order } = plan;
  const paused = await host.run({ loop: 'boss', input: { prompt: `${order.length}` } });
  const waiting = await host.archive.approvals(paused.sessionId);
  expect(waiting.map(placeOf), where).toEqual(order.map((_, place) => place));
  const eager = dice.random() < 0.3;
  let result: TurnResult = paused;
  for (const [count, place] of order.entries()) {
    await give(host, waiting[place]?.id ?? '', place, plan);
    if (!eager && count < order.length - 1) continue;
    result = await host.resume(paused.turnId);
    const answered = order.slice(0, count + 1);
    expect(deeds.count, where).toBe(answered.filter((one) => !plan.denied.has(one)).length);
    expect(result.pending ?? [], where).toHaveLength(order.length - count - 1);
  }
  assertRouted(stage, plan, result, where);
}

/** Answers while the turn runs. */
async function answerLive(stage: Stage, plan: Plan, where: string): Promise<void> {
  const { host, release } = stage;
  const { order } = plan;
  const envelopes: EventEnvelope[] = [];
  const options = { onEnvelope: (envelope: EventEnvelope) => void envelopes.push(envelope) };
  const running = host.run({ loop: 'boss', input: { prompt: `${order.length} busy` } }, options);
  await ticks(6);
  const ids = shownIds(envelopes);
  expect(ids, where).toHaveLength(order.length);
  await Promise.all(order.map((place) => give(host, ids[place] ?? '', place, plan)));
  await ticks(2);
  release();
  assertRouted(stage, plan, await running, where);
}

verifies(
  'approval.order',
  'an answer reaches another call than its own, for some order of the answers',
  async () => {
    const dice = diceOf(SEED);
    const stage = stageOf();
    const all = [2, 3, 4, 5].flatMap((count) => permutations(count));
    expect(all).toHaveLength(152);
    for (const order of all) {
      const where = `RONDO_SEED=${SEED}, order ${order}`;
      await answerPaused(stage, planOf(dice, order), dice, where);
      await answerLive(stage, planOf(dice, order), where);
    }
  },
  60_000,
);

verifies(
  'approval.order',
  `an answer is misrouted among six to eight that wait (${RANDOM} orders)`,
  async () => {
    const dice = diceOf(SEED + 1);
    const stage = stageOf();
    for (let round = 0; round < RANDOM; round++) {
      const order = dice.shuffled(Array.from({ length: 6 + dice.below(3) }, (_, place) => place));
      const where = `RONDO_SEED=${SEED}, round ${round}, order ${order}`;
      if (round % 2 === 0) await answerPaused(stage, planOf(dice, order), dice, where);
      else await answerLive(stage, planOf(dice, order), where);
    }
  },
  60_000,
);

verifies(
  'approval.order',
  'a paused turn and the list of approvals name the calls in the order of the model',
  async () => {
    const calls = [0, 1, 2, 3].map((nth) => ['pay', { nth }] as const);
    const backends = [telling([{ calls }, { text: 'done' }])];
    const boss = agentDef('boss', { tools: ['pay'], approvals: { pay: 'ask' } });
    const pay = loopsTool({
      name: 'pay',
      inputSchema: z.object({ nth: z.number() }),
      // The later a call, the sooner its request is recorded.
      requestApproval: ({ nth }) => ticks(10 * (4 - nth)).then(() => 'Pay?'),
      execute: () => null,
    });
    const host = hostOf([loopFromTool(pay), boss], { backends });
    const { turnId, status, pending } = await host.run({ loop: 'boss', input: { prompt: 'pay' } });
    const waiting = await host.archive.approvals();
    const ids = waiting.map(({ id }) => id);
    expect([status, waiting.map(placeOf)]).toEqual(['paused', [0, 1, 2, 3]]);
    expect(pending?.map(({ id }) => id)).toEqual(ids);
    expect((await host.archive.status(turnId))[0]?.pending?.map(({ id }) => id)).toEqual(ids);
  },
);

verifies(
  'approval.order',
  'of calls with the same tool and the same arguments one answer is enough for all',
  async () => {
    const deeds = new Deeds();
    const calls = Array.from({ length: 4 }, () => ['pay', { amount: 5 }] as const);
    const backend = telling([{ calls }, { text: 'done' }]);
    const boss = agentDef('boss', { tools: ['pay'], approvals: { pay: 'ask' } });
    const host = hostOf([tool('pay', 'builtin:act'), boss], { tools: { act: deeds.act }, backends: [backend] });
    const { turnId } = await host.run({ loop: 'boss', input: { prompt: 'pay' } });
    const waiting = await host.archive.approvals();
    expect(new Set(waiting.map(({ id }) => id)).size).toBe(4);
    expect(new Set(waiting.map(({ argumentsDigest }) => argumentsDigest)).size).toBe(1);
    const [first, second, third, fourth] = waiting;
    await host.answer({ id: third?.id ?? '', approved: true, by: 'ada' });
    expect(await host.resume(turnId)).toMatchObject({ status: 'paused' });
    expect(deeds.count).toBe(1);
    for (const one of [fourth, first, second])
      await host.answer({ id: one?.id ?? '', approved: one === first, by: 'ada' });
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
    expect(deeds.count).toBe(2);
    const kinds = outputsOf(backend.asked[1]?.prompt.at(-1)).map(
      (output) => (output as { readonly type: string }).type,
    );
    expect(kinds).toEqual(['json', 'execution-denied', 'json', 'execution-denied']);
  },
);

verifies('approval.order', 'a denial with a long reason is told to the model as a failure of the tool', async () => {
  for (const [reason, by] of [
    ['r'.repeat(4000), 'ada'],
    ['r'.repeat(100), 'a'.repeat(4000)],
    ['r'.repeat(4000), 'a'.repeat(4000)],
  ] as const) {
    const backend = telling([{ calls: [['pay', {}]] }, { text: 'done' }]);
    const boss = agentDef('boss', { tools: ['pay'], approvals: { pay: 'ask' } });
    const host = hostOf([tool('pay', 'builtin:act'), boss], { tools: { act: new Deeds().act }, backends: [backend] });
    const { turnId } = await host.run({ loop: 'boss', input: { prompt: 'pay' } });
    const [waiting] = await host.archive.approvals();
    await host.answer({ id: waiting?.id ?? '', approved: false, by, reason });
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
    const [output] = outputsOf(backend.asked[1]?.prompt.at(-1));
    expect(output, `${by.length} ${reason.length}`).toMatchObject({ type: 'execution-denied' });
  }
});
