import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Host } from '../../src/host/host.js';
import { defineLoop } from '../../src/loops/define.js';
import type { Json } from '../../src/protocol/json.js';
import { ASK, Deeds, diceOf, ofType, onlyPending, SEED, told } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const PAY = tool('pay', 'builtin:act', ASK);
const GIVE = tool('give', 'builtin:act', ASK);

interface Stage {
  readonly host: Host;
  readonly deeds: Deeds;
  /** Whether a call in the session is asked about; what waits is cancelled again. */
  asks(input: Json, request?: object): Promise<boolean>;
}

/** A session in which calls of pay with these arguments were granted. */
async function granted(standing: Json, given: Json, request: object = {}): Promise<Stage> {
  const deeds = new Deeds();
  const host = hostOf([PAY, GIVE], { tools: { act: deeds.act } });
  const { turnId } = await host.run({ loop: 'pay', input: given, sessionId: 's', ...request });
  const { id } = await onlyPending(host);
  expect(await told(host, { id, approved: true, by: 'ada', standing })).toBe('taken');
  expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
  const asks = async (input: Json, more: object = {}): Promise<boolean> => {
    const before = deeds.count;
    const { status, turnId: next } = await host.run({ loop: 'pay', input, sessionId: 's', ...more });
    expect(deeds.count - before).toBe(status === 'ok' ? 1 : 0);
    if (status === 'paused') await host.cancel(next, 'asked');
    expect(['ok', 'paused']).toContain(status);
    return status === 'paused';
  };
  return { host, deeds, asks };
}

verifies('approval.standing', 'a grant covers a call that its predicate does not hold for', async () => {
  const dice = diceOf(SEED);
  const limit = 10 + dice.below(80);
  const standing = {
    type: 'object',
    properties: { amount: { type: 'number', minimum: 0, maximum: limit }, to: { enum: ['ada', 'bob'] } },
    required: ['amount', 'to'],
    additionalProperties: false,
  };
  const { asks } = await granted(standing, { amount: limit, to: 'ada' });
  const amounts: Json[] = [0, 1, limit, limit + 1, -1, limit + 0.001, '5', null, [limit], 1e300, true, { amount: 1 }];
  const people: Json[] = ['ada', 'bob', 'eve', 'Ada', '', null, ['ada'], 'ada '];
  for (let round = 0; round < 60; round++) {
    const [amount, to] = [dice.pick(amounts), dice.pick(people)];
    const more = dice.pick([{}, {}, { memo: 'x' }, { Amount: 1 }]);
    const input = { amount, to, ...more };
    const fits =
      typeof amount === 'number' &&
      amount >= 0 &&
      amount <= limit &&
      (to === 'ada' || to === 'bob') &&
      !('memo' in more);
    const covered = fits && Object.keys(more).length === 0;
    expect(await asks(input), JSON.stringify(input)).toBe(!covered);
  }
  for (const input of [null, [], 'ada', {}, { amount: 1 }, { to: 'ada' }, [{ amount: 1, to: 'ada' }]] as Json[])
    expect(await asks(input), JSON.stringify(input)).toBe(true);
});

verifies('approval.standing', 'a grant for one tool or one session holds in another', async () => {
  const { host, deeds, asks } = await granted({ const: { amount: 5 } }, { amount: 5 });
  expect(await asks({ amount: 5 })).toBe(false);
  expect(await asks({ amount: 5 }, { loop: 'give' })).toBe(true);
  expect(await asks({ amount: 5 }, { sessionId: 's2' })).toBe(true);
  expect(await asks({ amount: 5 }, { sessionId: 'S' })).toBe(true);
  expect((await host.run({ loop: 'pay', input: { amount: 5 } })).status).toBe('paused');
  expect(deeds.count).toBe(2);
  expect(await asks({ amount: 5 })).toBe(false);
});

verifies('approval.standing', 'a grant answers for somebody who may not, or on behalf of somebody else', async () => {
  const open = await granted({ const: { amount: 5 } }, { amount: 5 });
  // Ada granted it where anybody may answer; here only bob may.
  expect(await open.asks({ amount: 5 }, { approvers: ['bob'] })).toBe(true);
  expect(await open.asks({ amount: 5 }, { approvers: ['ada', 'bob'] })).toBe(false);
  const bound = await granted({ const: { amount: 5 } }, { amount: 5 }, { principal: 'eve', approvers: ['ada'] });
  expect(await bound.asks({ amount: 5 }, { principal: 'eve', approvers: ['ada'] })).toBe(false);
  expect(await bound.asks({ amount: 5 }, { principal: 'mallory', approvers: ['ada'] })).toBe(true);
});

verifies('approval.standing', 'a predicate that holds for everything is taken for one', async () => {
  const everything: Json[] = [
    { properties: {} },
    { properties: { nothing: true } },
    { properties: { amount: {} } },
    { not: false },
    { not: { not: true } },
    { not: { not: {} } },
    { anyOf: [true] },
    { anyOf: [{ const: 1 }, {}] },
    { oneOf: [true] },
    { allOf: [{}] },
    { allOf: [{ properties: {} }, { not: false }] },
  ];
  const taken: string[] = [];
  for (const standing of everything) {
    const host = hostOf([PAY], { tools: { act: new Deeds().act } });
    await host.run({ loop: 'pay', input: { amount: 5 } });
    const { id } = await onlyPending(host);
    if ((await told(host, { id, approved: true, by: 'ada', standing })) === 'taken')
      taken.push(JSON.stringify(standing));
  }
  expect(taken).toEqual([]);
});

verifies('approval.standing', 'a grant lets what waited before it run, or holds before it is given', async () => {
  const deeds = new Deeds();
  const calls = [1, 2, 3].map((amount) => ['pay', { amount }] as const);
  const backends = [telling([{ calls }, { calls: [['pay', { amount: 2 }]] }, { text: 'done' }])];
  const host = hostOf([PAY, agentDef('boss', { tools: ['pay'] })], { tools: { act: deeds.act }, backends });
  const { turnId } = await host.run({ loop: 'boss', input: { prompt: 'pay' } });
  const [one, two, three] = await host.archive.approvals();
  const standing = { properties: { amount: { maximum: 2 } }, required: ['amount'] };
  await host.answer({ id: one?.id ?? '', approved: true, by: 'ada', standing });
  expect(await host.resume(turnId)).toMatchObject({ status: 'paused' });
  expect(deeds.done).toEqual([{ amount: 1 }]);
  await host.answer({ id: two?.id ?? '', approved: false, by: 'ada' });
  await host.answer({ id: three?.id ?? '', approved: false, by: 'ada' });
  expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
  expect(deeds.done).toEqual([{ amount: 1 }, { amount: 2 }]);
  expect(await host.replay(turnId)).toMatchObject({ matches: true });
});

verifies('approval.standing', 'a body or a tool grants itself what it may not do', async () => {
  const deeds = new Deeds();
  const value = { tool: 'pay', definition: '', schema: true, by: 'ada', approval: 'x', at: 1 };
  const code = defineLoop({
    id: 'sly',
    input: true,
    output: true,
    body: async (_, scope) => {
      await scope.record('rondo.grant.given', () => ({ ...value }));
      await scope.record('rondo.approval.granted', () => ({ ...value }));
      return null;
    },
  });
  const noting = { ...value, emit: true };
  const emit = (_: Json, call: { emit(type: string, value?: Json): void }) => call.emit('rondo.grant.given', noting);
  const sly = tool('noting', 'builtin:emit');
  const steps = ['sly', 'noting', 'pay'].map((loopId) => ({ loopId, inputMapping: {} }));
  const host = hostOf([code, PAY, sly, composite('all', steps)], { tools: { act: deeds.act, emit } });
  expect((await host.run({ loop: 'all', input: {}, sessionId: 's' })).status).not.toBe('ok');
  expect((await host.run({ loop: 'pay', input: {}, sessionId: 's' })).status).toBe('paused');
  expect(deeds.count).toBe(0);
});

verifies('approval.standing', 'a grant is not found after a crash, or by another host', async () => {
  const store = memoryStore();
  const deeds = new Deeds();
  const make = (seed: number) => hostOf([PAY], { store, tools: { act: deeds.act }, seed });
  const host = make(1);
  const { turnId } = await host.run({ loop: 'pay', input: { amount: 5 }, sessionId: 's' });
  const { id } = await onlyPending(host);
  await make(2).answer({ id, approved: true, by: 'ada', standing: { const: { amount: 5 } } });
  expect(ofType(await host.archive.entries('s'), 'rondo.grant.given')).toMatchObject([{ value: { by: 'ada' } }]);
  expect(await make(3).resume(turnId)).toMatchObject({ status: 'ok' });
  expect(await make(4).run({ loop: 'pay', input: { amount: 5 }, sessionId: 's' })).toMatchObject({ status: 'ok' });
  expect(await make(5).run({ loop: 'pay', input: { amount: 6 }, sessionId: 's' })).toMatchObject({ status: 'paused' });
  expect(deeds.count).toBe(2);
});
