import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../spec/support/host-fixture.js';
import { testKeys } from '../../spec/support/receipt-keys.js';
import { agentDef, replyProvider } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import type { Entry } from '../protocol/entry.js';
import type { Grant } from '../protocol/grant.js';
import type { Json } from '../protocol/json.js';
import { forkPointsOf } from '../views/fork-points.js';
import { receiptsIn } from '../views/receipt/sealed-receipts.js';
import { grantOf, TURN_GRANTED, TURN_REFUSED } from '../views/turns.js';
import type { Host } from './host.js';
import { turnIdentityOf } from './turn-request.js';

const ACT = tool('act', 'builtin:act');
const ASK = tool('act', 'builtin:act', { policy: { approval: 'ask' } });

/** A tool that records its inputs and fails the given number of times first. */
function recorder(failures = 0): { readonly performed: Json[]; readonly act: (input: Json) => Json } {
  const performed: Json[] = [];
  const act = (input: Json): Json => {
    performed.push(input);
    if (performed.length <= failures) throw new Error('down');
    return input;
  };
  return { performed, act };
}

const approveAll = async (host: Host, sessionId: string): Promise<void> => {
  for (const { id } of await host.archive.approvals(sessionId)) await host.answer({ id, approved: true, by: 'ada' });
};

const seqOf = async (host: Host, sessionId: string, matches: (entry: Entry) => boolean): Promise<number> =>
  (await host.archive.entries(sessionId)).find(matches)?.seq ?? -1;

verifies('fork.approvals', 'an entry between an answer and the end of its effect is refused', async () => {
  const { performed, act } = recorder();
  const host = hostOf([ASK, composite('one', [{ loopId: 'act', inputMapping: '$.input' }])], { tools: { act } });
  const { sessionId, turnId } = await host.run({ loop: 'one', input: { n: 1 } });
  const asked = await seqOf(host, sessionId, ({ type }) => type === 'wait.opened');
  await approveAll(host, sessionId);
  const answered = await seqOf(host, sessionId, ({ type }) => type === 'signal.received');
  const refusal = { code: 'FORK_REFUSED', message: expect.stringContaining('count twice'), data: { nearest: asked } };
  // The entry is the last one: the answer is not used yet.
  await expect(host.fork(turnId, { at: answered })).rejects.toMatchObject({
    code: 'FORK_REFUSED',
    data: { nearest: asked },
  });
  expect((await host.resume(turnId)).status).toBe('ok');
  const settled = await seqOf(host, sessionId, ({ type }) => type === 'effect.settled');
  await expect(host.fork(turnId, { at: answered })).rejects.toMatchObject(refusal);
  const points = forkPointsOf(turnId, await host.archive.entries(sessionId));
  expect(points.filter((seq) => seq >= answered && seq < settled)).toEqual([]);
  expect(points).toContain(settled);
  expect((await host.resume((await host.fork(turnId, { at: settled })).turnId)).status).toBe('ok');
  expect(performed, 'one answer let two effects happen').toHaveLength(1);
});

verifies('fork.approvals', 'no fork of an agent uses an answer of the original', async () => {
  const { performed, act } = recorder();
  const replies = [
    {
      calls: [
        ['act', { n: 1 }],
        ['act', { n: 2 }],
      ],
    },
    { text: 'done' },
  ] as const;
  const host = hostOf([agentDef('helper', { tools: ['act'] }), ASK], {
    tools: { act },
    providers: [replyProvider(replies)],
  });
  const { sessionId, turnId } = await host.run({ loop: 'helper', input: { prompt: 'x' } });
  const [first] = await host.archive.approvals(sessionId);
  await host.answer({ id: first?.id ?? '', approved: true, by: 'ada' });
  await host.resume(turnId);
  await approveAll(host, sessionId);
  expect((await host.resume(turnId)).status).toBe('ok');
  const entries = await host.archive.entries(sessionId);
  const count = performed.length;
  for (const at of forkPointsOf(turnId, entries)) await host.resume((await host.fork(turnId, { at })).turnId);
  expect(performed.slice(count), 'an effect without an answer in its own session').toEqual([]);
});

verifies('fork.approvals', 'a retry of a fork does not use an answer of the original', async () => {
  const { performed, act } = recorder(1);
  const host = hostOf([ASK, composite('one', [{ loopId: 'act', inputMapping: '$.input' }])], { tools: { act } });
  const { sessionId, turnId } = await host.run({ loop: 'one', input: { n: 1 } });
  const asked = await seqOf(host, sessionId, ({ type }) => type === 'wait.opened');
  await approveAll(host, sessionId);
  expect((await host.resume(turnId)).status).toBe('error');
  const settled = await seqOf(host, sessionId, ({ type }) => type === 'effect.settled');
  const fork = await host.fork(turnId, { at: settled });
  expect((await host.resume(fork.turnId)).status).toBe('error');
  expect((await host.retry(fork.turnId)).status).toBe('paused');
  expect((await host.retry(turnId)).status).toBe('paused');
  expect(performed, 'a retry used an answer of the original').toHaveLength(1);
  await approveAll(host, sessionId);
  expect((await host.resume(turnId)).status).toBe('ok');
  await approveAll(host, fork.sessionId);
  expect((await host.resume(fork.turnId)).status, 'a fork has answers of its own').toBe('ok');
  expect(performed).toHaveLength(3);
  const reopened = await seqOf(host, sessionId, ({ type }) => type === 'call.reopened');
  await expect(host.fork(turnId, { at: reopened })).rejects.toMatchObject({ code: 'FORK_REFUSED' });
  const own = await host.fork(turnId, { at: asked });
  await approveAll(host, own.sessionId);
  expect((await host.resume(own.turnId)).status).toBe('ok');
});

const limited = (more: Partial<Grant> = {}): Grant => ({ allowedTools: ['*'], limits: { effects: 3 }, ...more });

/** A host with an agent that calls `act` twice and then answers. */
function agentHost(more: Parameters<typeof hostOf>[1] = {}) {
  const { performed, act } = recorder();
  const replies = Array.from({ length: 8 }, () => [
    { calls: [['act', {}]] },
    { calls: [['act', {}]] },
    { text: 'done' },
  ]);
  const providers = [replyProvider(replies.flat() as never)];
  return {
    host: hostOf([agentDef('helper', { tools: ['act'] }), ACT], { tools: { act }, providers, ...more }),
    performed,
  };
}

for (const [name, id] of [
  ['without an id', undefined],
  ['whose id is the id of the turn', 'turn'],
] as const)
  verifies('fork.grant', `a fork spends from the budget of a grant ${name}`, async () => {
    const { host, performed } = agentHost();
    const request = { loop: 'helper', input: { prompt: 'x' }, sessionId: 'ada', key: 'k' } as const;
    const { turnId: knownId } = turnIdentityOf(request, undefined, '');
    const grant = limited(id === undefined ? {} : { id: knownId });
    const { turnId } = await host.run({ ...request, grant });
    expect(performed).toHaveLength(2);
    const at = await seqOf(host, 'ada', ({ key, type }) => key === turnId && type === 'call.started');
    const fork = await host.fork(turnId, { at });
    const copy = await host.archive.entries(fork.sessionId);
    expect(grantOf(fork.turnId, copy)).toEqual(grantOf(turnId, await host.archive.entries('ada')));
    expect(await host.resume(fork.turnId)).toMatchObject({
      status: 'stopped',
      reason: expect.stringMatching(/^effects/),
    });
    expect(performed, 'the fork got a fresh budget').toHaveLength(3);
  });

verifies('fork.grant', 'a grant that a stopped turn was given is copied unchanged', async () => {
  const { host, performed } = agentHost();
  const stopped = await host.run({
    loop: 'helper',
    input: { prompt: 'x' },
    grant: limited({ limits: { effects: 1 } }),
  });
  expect(stopped.status).toBe('stopped');
  const { sessionId, turnId } = stopped;
  expect((await host.resume(turnId, { grant: limited({ limits: { effects: 2 } }) })).status).toBe('ok');
  const at = await seqOf(host, sessionId, ({ type }) => type === TURN_GRANTED);
  const fork = await host.fork(turnId, { at });
  expect(grantOf(fork.turnId, await host.archive.entries(fork.sessionId))).toMatchObject({ limits: { effects: 2 } });
  // The original used one effect of the second grant; the fork gets the other one.
  expect(performed).toHaveLength(2);
  await host.resume(fork.turnId);
  expect(performed).toHaveLength(3);
});

verifies('fork.grant', 'a fork counts as a turn of its grant', async () => {
  const { host } = agentHost();
  const request = { loop: 'helper', input: { prompt: 'x' }, sessionId: 'ada' };
  const { turnId } = await host.run({ ...request, grant: { allowedTools: ['*'], limits: { turns: 1 } } });
  const at = await seqOf(host, 'ada', ({ key, type }) => key === turnId && type === 'call.started');
  const fork = await host.fork(turnId, { at });
  expect(await host.resume(fork.turnId)).toMatchObject({ status: 'stopped', reason: expect.stringContaining('turns') });
});

verifies(
  'fork.grant',
  'receipts and refusals stay in the original, and earlier turns have ended in the fork',
  async () => {
    const { host } = agentHost({ store: memoryStore(), receiptKeys: testKeys() });
    const request = { loop: 'helper', input: { prompt: 'x' }, sessionId: 'ada' };
    await host.run(request);
    const refused = await host.run({ ...request, grant: { allowedTools: ['*'], limits: { turns: 0 } } });
    expect(refused.status).toBe('stopped');
    const { turnId } = await host.run(request);
    const at = await seqOf(host, 'ada', ({ key, type }) => key === turnId && type === 'call.started');
    const fork = await host.fork(turnId, { at });
    const copy = await host.archive.entries(fork.sessionId);
    expect(receiptsIn(copy)).toEqual([]);
    expect(copy.filter(({ type }) => type === TURN_REFUSED)).toEqual([]);
    expect((await host.archive.turns(fork.sessionId)).map(({ status }) => status)).toEqual(['ok', 'interrupted']);
    expect(await host.resume(fork.turnId)).toMatchObject({ status: 'ok', receipt: expect.stringMatching(/^sha256:/) });
    expect(receiptsIn(await host.archive.entries(fork.sessionId)).map(({ turn }) => turn)).toEqual([fork.turnId]);
  },
);
