import { expect } from 'vitest';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import { defineAgent } from '../loops/define-agent.js';
import type { Grant } from '../protocol/grant.js';
import { tool as codeTool } from '../protocol/tool.js';
import { ManualClock } from '../testing/manual-clock.js';
import type { Host } from './host.js';

const grant = (more: Partial<Grant> = {}): Grant => ({ allowedTools: ['*'], limits: {}, ...more });
const REVIEW = { review: { pay: 'ask' } } as const;
const STANDING = { properties: { n: { maximum: 1 } }, required: ['n'] };
const paying = (count: number) => [
  ...Array.from({ length: count }, () => ({ calls: [['pay', { n: 1 }]] as const })),
  { text: 'done' },
];

/** A host whose agent pays. */
function payingHost(replies: readonly object[], clock = new ManualClock(1_000_000)) {
  const performed: unknown[] = [];
  const definitions = [agentDef('agent', { tools: ['pay'] }), tool('pay', 'builtin:pay')];
  const tools = { pay: (input: unknown) => performed.push(input) };
  return { host: hostOf(definitions, { tools, clock, providers: [replyProvider(replies)] }), performed };
}

const run = (host: Host, given: Grant | undefined, approvers?: readonly string[]) =>
  host.run({
    ...{ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' },
    ...(given !== undefined && { grant: given }),
    ...(approvers && { approvers }),
  });

async function approve(host: Host, by: string, standing?: typeof STANDING): Promise<void> {
  const [pending] = await host.archive.approvals();
  await host.answer({ id: pending?.id ?? '', approved: true, by, ...(standing && { standing }) });
}

verifies('grant.review', 'a tool cannot waive the review of a grant, in any mode of its agent', async () => {
  const schema = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: (value: unknown) => ({ value }),
      jsonSchema: { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) },
    },
  } as never;
  for (const mode of [undefined, 'unsupervised'])
    for (const pattern of ['desk.pay', 'desk.*', '*']) {
      let runs = 0;
      const execute = () => ++runs;
      const pay = codeTool({ name: 'pay', inputSchema: schema, requestApproval: () => null, execute });
      const desk = defineAgent({ id: 'desk', model: { id: 'replies' }, tools: { pay }, ...(mode && { mode }) });
      const host = hostOf([desk], { providers: [replyProvider(paying(1))] });
      const input = { prompt: 'go' };
      const paused = await host.run({ loop: 'desk', input, grant: grant({ review: { [pattern]: 'ask' } }) });
      expect(paused, `${mode} ${pattern}`).toMatchObject({ status: 'paused' });
      expect(runs).toBe(0);
      await approve(host, 'ada');
      expect(await host.resume(paused.turnId)).toMatchObject({ status: 'ok' });
      expect(runs).toBe(1);
    }
});

verifies('grant.review', 'a standing approval satisfies a review only under the grant it was given under', async () => {
  const { host, performed } = payingHost([...paying(2), ...paying(1), ...paying(1)]);
  const first = grant({ id: 'first', ...REVIEW });
  const paused = await run(host, first);
  await approve(host, 'bob', STANDING);
  expect(await host.resume(paused.turnId)).toMatchObject({ status: 'ok' });
  expect(performed).toHaveLength(2);
  expect(await run(host, first), 'the same grant').toMatchObject({ status: 'ok' });
  expect(performed).toHaveLength(3);
  expect(await run(host, grant({ id: 'second', ...REVIEW })), 'another grant').toMatchObject({ status: 'paused' });
  expect(performed).toHaveLength(3);
});

verifies('grant.review', 'a standing approval counts only if its giver is an approver of the grant', async () => {
  const clock = new ManualClock(1_000_000);
  const definitions = [agentDef('agent', { tools: ['pay'], approvals: { pay: 'ask' } }), tool('pay', 'builtin:pay')];
  const performed: unknown[] = [];
  const providers = [replyProvider([...paying(1), ...paying(1), ...paying(1)])];
  const host = hostOf(definitions, { tools: { pay: (input) => performed.push(input) }, clock, providers });
  const paused = await run(host, undefined);
  await approve(host, 'bob', STANDING);
  expect(await host.resume(paused.turnId)).toMatchObject({ status: 'ok' });
  expect(await run(host, grant({ approvers: ['bob'] }))).toMatchObject({ status: 'ok' });
  expect(performed).toHaveLength(2);
  expect(await run(host, grant({ approvers: ['ada'] }))).toMatchObject({ status: 'paused' });
  expect(performed).toHaveLength(2);
});

verifies(
  'grant.review',
  'an approval that was not used is asked for again if its giver is no approver any more',
  async () => {
    for (const standing of [undefined, STANDING]) {
      const { host, performed } = payingHost(paying(2));
      const stoppedAt = { limits: { effects: standing === undefined ? 0 : 1 }, ...REVIEW };
      const paused = await run(host, grant(stoppedAt));
      await approve(host, 'bob', standing);
      const stopped = await host.resume(paused.turnId);
      expect(stopped).toMatchObject({ status: 'stopped' });
      const before = performed.length;
      const asked = await host.resume(stopped.turnId, { grant: grant({ ...REVIEW, approvers: ['ada'] }) });
      expect(asked).toMatchObject({ status: 'paused' });
      expect(performed).toHaveLength(before);
      await expect(approve(host, 'bob')).rejects.toMatchObject({ code: 'ANSWER_REFUSED' });
      for (let result = asked; result.status === 'paused'; result = await host.resume(stopped.turnId))
        await approve(host, 'ada');
      expect(performed).toHaveLength(2);
      expect(await host.replay(stopped.turnId)).toMatchObject({ matches: true });
    }
  },
);

verifies('grant.budget', 'an expired grant of a paused turn can be replaced, one that is valid cannot', async () => {
  const clock = new ManualClock(1_000_000);
  const { host, performed } = payingHost(paying(1), clock);
  const expiring = grant({ ...REVIEW, expiresAt: new Date(1_005_000).toISOString() });
  const paused = await run(host, expiring);
  expect(paused).toMatchObject({ status: 'paused' });
  await expect(host.resume(paused.turnId, { grant: grant() })).rejects.toMatchObject({ code: 'GRANT_CONFLICT' });
  await clock.advance(10_000);
  expect(await host.resume(paused.turnId)).toMatchObject({ error: { code: 'GRANT_EXPIRED' } });
  await approve(host, 'ada');
  expect(await host.resume(paused.turnId, { grant: grant(REVIEW) })).toMatchObject({ status: 'ok' });
  expect(performed).toHaveLength(1);
  await expect(host.resume(paused.turnId, { grant: grant() })).rejects.toMatchObject({ code: 'GRANT_CONFLICT' });
});

verifies(
  'grant.review',
  'a turn whose approvers and those of its grant have nobody in common does not open',
  async () => {
    const { host, performed } = payingHost(paying(1));
    const refused = await run(host, grant({ ...REVIEW, approvers: ['ada'] }), ['bob']);
    expect(refused).toMatchObject({ status: 'error', error: { code: 'GRANT_INVALID' } });
    expect(performed).toEqual([]);
  },
);

verifies(
  'grant.document',
  'a grant that is no object and an answer without a name are refused with a reason',
  async () => {
    const { host } = payingHost(paying(1));
    await expect(run(host, null as never)).rejects.toMatchObject({ code: 'GRANT_INVALID' });
    const stopped = await run(host, grant({ limits: { effects: 0 } }));
    const regranted = host.resume(stopped.turnId, { grant: null as never });
    await expect(regranted).rejects.toMatchObject({ code: 'GRANT_INVALID' });
    await expect(host.answer({ id: 's.x:1', approved: true, by: undefined as never })).rejects.toThrow(/needs an id/);
  },
);
