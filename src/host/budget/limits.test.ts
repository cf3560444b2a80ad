/** Every limit of a grant stops a turn at exactly its count, and nothing that runs in the turn can notice the stop. */
import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import type { ToolFunction } from '../../loops/tool-implementation.js';
import type { Grant, GrantLimits } from '../../protocol/grant.js';

const grantOf = (limits: GrantLimits, more: Partial<Grant> = {}): Grant => ({ allowedTools: ['*'], limits, ...more });

/** Runs an agent whose model calls the tool `act` as often as each number says, under limits. */
async function runAgent(callCounts: readonly number[], limits: GrantLimits, more?: Partial<Grant>) {
  const performed: unknown[] = [];
  const act: ToolFunction = (input) => performed.push(input);
  const replies = callCounts.map((count, round) => ({
    calls: Array.from({ length: count }, (_, index) => ['act', { round, index }] as const),
  }));
  const provider = replyProvider([...replies, { text: 'finished' }]);
  const host = hostOf([agentDef('agent', { tools: ['act'], maxRounds: 50 }), tool('act', 'builtin:act')], {
    tools: { act },
    providers: [provider],
  });
  const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, grant: grantOf(limits, more) });
  return { host, result, performed, requests: provider.requests };
}

const stoppedAt = (counter: string) => ({
  status: 'stopped',
  reason: expect.stringMatching(new RegExp(`^${counter}`)),
});

verifies('grant.budget', 'a turn stops exactly at its limit of model rounds', async () => {
  const { result, performed, requests } = await runAgent([1, 1, 1, 1], { modelRounds: 3 });
  expect(result).toMatchObject(stoppedAt('modelRounds'));
  expect(requests).toHaveLength(3);
  expect(performed).toHaveLength(3);
  expect((await runAgent([1, 1], { modelRounds: 3 })).result).toMatchObject({ status: 'ok' });
});

verifies(
  'grant.budget',
  'a turn stops exactly at its limit of tool rounds, each of which may have many calls',
  async () => {
    const { result, performed, requests } = await runAgent([3, 2, 1], { toolRounds: 2 });
    expect(result).toMatchObject(stoppedAt('toolRounds'));
    expect(performed).toHaveLength(5);
    expect(requests).toHaveLength(3);
    expect((await runAgent([3, 2], { toolRounds: 2 })).result).toMatchObject({ status: 'ok' });
  },
);

verifies('grant.budget', 'a reply with more calls than its limit of branches runs none of them', async () => {
  const { result, performed } = await runAgent([2, 3], { fanOut: 2 });
  expect(result).toMatchObject(stoppedAt('fanOut'));
  expect(performed).toHaveLength(2);
});

verifies('grant.budget', 'a limit of one tool counts that tool alone', async () => {
  const more = { allowedTools: ['*', 'other'] };
  const { result, performed } = await runAgent([1, 1, 1], { effects: { act: 2, other: 0 } }, more);
  expect(result).toMatchObject(stoppedAt('effects:act'));
  expect(performed).toHaveLength(2);
});

verifies('grant.budget', 'no effect runs deeper than its limit of depth', async () => {
  const performed: unknown[] = [];
  const act: ToolFunction = (input) => performed.push(input);
  const step = (loopId: string) => [{ loopId, inputMapping: '$.input' }];
  const definitions = [tool('act', 'builtin:act'), composite('a', step('act')), composite('b', step('a'))];
  const host = hostOf([...definitions, composite('c', step('b'))], { tools: { act } });
  const run = (depth: number) => host.run({ loop: 'c', input: {}, grant: grantOf({ depth }) });
  expect(await run(2)).toMatchObject(stoppedAt('depth'));
  expect(performed).toHaveLength(0);
  expect(await run(3)).toMatchObject({ status: 'ok' });
  expect(performed).toHaveLength(1);
});

verifies(
  'grant.budget',
  'of parallel effects, exactly as many as the limit are performed before the stop',
  async () => {
    const { host, result, performed } = await runAgent([20], { effects: 7 });
    expect(result).toMatchObject(stoppedAt('effects'));
    expect(performed, 'effects that were counted were not performed').toHaveLength(7);
    const finished = await host.resume(result.turnId, { grant: grantOf({ effects: 13 }) });
    expect(finished, 'the rest needs more than 13 effects').toMatchObject({ status: 'ok' });
    expect(performed).toHaveLength(20);
  },
);

verifies('grant.budget', 'a turn that consists of one tool can continue after its stop', async () => {
  const performed: unknown[] = [];
  const host = hostOf([tool('act', 'builtin:act')], { tools: { act: (input) => performed.push(input) } });
  const stopped = await host.run({ loop: 'act', input: { n: 1 }, grant: grantOf({ effects: 0 }) });
  expect(stopped).toMatchObject(stoppedAt('effects'));
  expect(await host.resume(stopped.turnId, { grant: grantOf({ effects: 1 }) })).toMatchObject({ status: 'ok' });
  expect(performed).toEqual([{ n: 1 }]);
});
