import { expect } from 'vitest';
import { composite, hostOf, prompt, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { ToolFunction } from '../../loops/tool-implementation.js';
import type { Grant } from '../../protocol/grant.js';

const grant = (more: Partial<Grant> = {}): Grant => ({ allowedTools: ['*'], limits: {}, ...more });

/** A host with a counted tool `act`, and agents that call it. */
function countingHost(replies: readonly object[], definitions: readonly unknown[] = [], store = memoryStore()) {
  const performed: unknown[] = [];
  const act: ToolFunction = (input) => {
    performed.push(input);
    return 'done';
  };
  const agent = agentDef('agent', { tools: ['act'], maxRounds: 50 });
  const host = hostOf([agent, tool('act', 'builtin:act'), ...definitions], {
    store,
    tools: { act },
    providers: [replyProvider(replies)],
  });
  return { host, performed, store };
}

const acting = (count: number): object[] => [
  ...Array.from({ length: count }, (_, index) => ({ calls: [['act', { index }]] as const })),
  { text: 'finished' },
];

verifies('grant.tools', 'a tool that the grant does not permit is refused, and the agent learns it', async () => {
  const { host, performed } = countingHost(acting(1));
  const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, grant: grant({ allowedTools: ['other'] }) });
  expect(result).toMatchObject({ status: 'ok' });
  expect(performed, 'an effect outside of the grant').toEqual([]);
  const { host: free, performed: all } = countingHost(acting(1));
  await free.run({ loop: 'agent', input: { prompt: 'go' }, grant: grant({ allowedTools: ['act'] }) });
  expect(all).toHaveLength(1);
});

verifies('grant.budget', 'a turn stops exactly at its limit of effects and continues under another grant', async () => {
  const { host, performed } = countingHost(acting(5));
  const request = { loop: 'agent', input: { prompt: 'go' }, grant: grant({ limits: { effects: 3 } }) };
  const stopped = await host.run(request);
  expect(stopped).toMatchObject({ status: 'stopped', reason: expect.stringMatching(/^effects: .*3 of 3/) });
  expect(performed).toHaveLength(3);
  const [status] = await host.archive.status(stopped.turnId);
  expect(status).toMatchObject({ status: 'stopped', reason: expect.stringContaining('effects') });
  expect(await host.resume(stopped.turnId), 'a resume without authority went on').toMatchObject({ status: 'stopped' });
  expect(performed).toHaveLength(3);
  const finished = await host.resume(stopped.turnId, { grant: grant({ limits: { effects: 2 } }) });
  expect(finished).toMatchObject({ status: 'ok', output: { text: 'finished' } });
  expect(performed.map((input) => (input as { index: number }).index)).toEqual([0, 1, 2, 3, 4]);
});

verifies(
  'grant.budget',
  'a parent agent cannot report success over a sub-agent that stopped at the grant',
  async () => {
    const boss = agentDef('boss', { backend: { id: 'outer' }, tools: ['agent'] });
    const performed: unknown[] = [];
    const act: ToolFunction = (input) => performed.push(input);
    const outer = replyProvider([{ calls: [['agent', { prompt: 'work' }]] }, { text: 'All done!' }], 'outer');
    const definitions = [boss, agentDef('agent', { tools: ['act'] }), tool('act', 'builtin:act')];
    const host = hostOf(definitions, { tools: { act }, providers: [outer, replyProvider(acting(3))] });
    const result = await host.run({ loop: 'boss', input: { prompt: 'go' }, grant: grant({ limits: { effects: 1 } }) });
    expect(result).toMatchObject({ status: 'stopped' });
    expect(performed).toHaveLength(1);
  },
);

verifies('grant.budget', 'one grant id is one budget, whatever the session', async () => {
  const { host, performed } = countingHost([...acting(2), ...acting(2), ...acting(2)]);
  const shared = grant({ id: 'shared', limits: { effects: 3, turns: 2 } });
  const run = () => host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's', grant: shared });
  expect(await run()).toMatchObject({ status: 'ok' });
  expect(await run()).toMatchObject({ status: 'stopped', reason: expect.stringContaining('effects') });
  expect(performed).toHaveLength(3);
  expect(await run()).toMatchObject({ status: 'stopped', reason: expect.stringContaining('turns') });
  const changed = { ...shared, limits: { effects: 9 } };
  const conflict = await host.run({ loop: 'agent', input: { prompt: 'go' }, grant: changed });
  expect(conflict).toMatchObject({ status: 'error', error: { code: 'GRANT_CONFLICT' } });
});

verifies('grant.budget', 'a turn that has ended is found again without counting as another turn', async () => {
  const { host, performed } = countingHost(acting(1));
  const shared = grant({ id: 'shared', limits: { turns: 2 } });
  const run = (key: string) => host.run({ loop: 'act', input: {}, key, grant: shared });
  const first = await run('a');
  expect(first).toMatchObject({ status: 'ok' });
  for (let n = 0; n < 3; n++) expect(await run('a'), 'a recorded result was refused').toMatchObject({ status: 'ok' });
  expect(await host.resume(first.turnId)).toMatchObject({ status: 'ok' });
  expect(await run('b'), 'a turn was counted twice').toMatchObject({ status: 'ok' });
  expect(await run('c')).toMatchObject({ status: 'stopped', reason: expect.stringMatching(/^turns: .*2 of 2/) });
  expect(await run('a'), 'a recorded result was refused').toMatchObject({ status: 'ok' });
  expect(performed).toHaveLength(2);
});

verifies('grant.budget', 'tokens and money are never exceeded, and a model without a price is refused', async () => {
  const priceOf = (id: string) =>
    id === 'scripted' ? { inputPerMillion: 1_000_000, outputPerMillion: 2_000_000 } : undefined;
  const run = async (limits: Grant['limits'], replies: readonly object[], priced = true) => {
    const provider = replyProvider(replies);
    const host = hostOf(
      [
        prompt('ask', 'Say it.', { backend: { id: provider.id } }),
        composite('twice', [
          { loopId: 'ask', inputMapping: '$.input' },
          { loopId: 'ask', inputMapping: '$.input' },
        ]),
      ],
      {
        providers: [provider],
        ...(priced && { priceOf: (id: string) => priceOf(id === provider.id ? 'scripted' : id) }),
      },
    );
    return {
      result: await host.run({ loop: 'twice', input: {}, grant: grant({ limits }) }),
      requests: provider.requests,
    };
  };
  const two = [
    { text: 'a', usage: [5, 4] },
    { text: 'b', usage: [5, 4] },
  ];
  expect((await run({ outputTokens: 8 }, two)).result).toMatchObject({ status: 'ok' });
  const limited = await run({ outputTokens: 7 }, two);
  expect(limited.requests.map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([7, 3]);
  expect(limited.result, 'an overrun of the provider was reported as success').toMatchObject({ status: 'stopped' });
  expect((await run({ outputTokens: 4 }, two)).requests).toHaveLength(1);
  const unaffordable = await run({ costMicros: 4 }, two);
  expect(unaffordable.requests).toHaveLength(0);
  expect(unaffordable.result, 'a reservation that does not fit reads like a limit that was reached').toMatchObject({
    status: 'stopped',
    reason: expect.stringMatching(
      /costMicros: The next model call does not fit .* it needs at most \d+ costMicros, and 4 of 4 are left\. It continues/,
    ),
  });
  const unpriced = await run({ costMicros: 1000 }, two, false);
  expect(unpriced.result).toMatchObject({ status: 'error', error: { code: 'TOOL_NOT_ADMITTED' } });
  expect(unpriced.requests).toHaveLength(0);
  expect((await run({ costMicros: 10_000 }, two)).result).toMatchObject({ status: 'ok' });
  expect((await run({ costMicros: 20 }, two)).result).toMatchObject({ status: 'stopped' });
});

verifies(
  'grant.budget',
  'a turn whose retry was refused at the limit of turns continues under another grant',
  async () => {
    let attempts = 0;
    const act = (): string => {
      attempts += 1;
      if (attempts === 1) throw new Error('not yet');
      return 'done';
    };
    const host = hostOf([tool('act', 'builtin:act')], { tools: { act } });
    const grant = { id: 'one', allowedTools: ['act'], limits: { turns: 1 } };
    const failed = await host.run({ loop: 'act', input: {}, grant });
    expect(failed).toMatchObject({ status: 'error' });
    expect(await host.retry(failed.turnId)).toMatchObject({
      status: 'stopped',
      reason: expect.stringMatching(/^turns/),
    });
    const another = { ...grant, id: 'two' };
    expect(await host.resume(failed.turnId, { grant: another })).toMatchObject({ status: 'ok' });
    await expect(host.resume(failed.turnId, { grant: another })).rejects.toMatchObject({ code: 'GRANT_CONFLICT' });
  },
);
