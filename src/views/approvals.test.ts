import fc from 'fast-check';
import { expect } from 'vitest';
import { type EntryDraft, entriesOf, type Script, scriptedSession } from '../../spec/support/conversation-entries.js';
import { SESSION } from '../../spec/support/conversation-fixture.mjs';
import { approvalId } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import type { Entry } from '../protocol/entry.js';
import { Approvals } from './approvals.js';
import { Turns } from './turns.js';

function approvalsOf(entries: Iterable<Entry>): Approvals {
  const approvals = new Approvals(SESSION);
  for (const entry of entries) approvals.apply(entry);
  return approvals;
}

const refund: Script = { tool: 'refund', result: 1 };
const flow: Script = { composite: 'flow', steps: [{ tool: 'look' }, refund] };
const clerk: Script = { agent: 'clerk', rounds: [{ calls: [{ id: 'f', name: 'flow', runs: flow }] }] };
const lead: Script = {
  agent: 'lead',
  rounds: [
    {
      calls: [
        { id: 'c', name: 'clerk', runs: clerk },
        { id: 'r', name: 'refund', args: { sum: 5 }, runs: refund },
      ],
    },
  ],
};
const deep = 't/2/0/0/2/0/0/1';
const near = 't/2/1/0';

verifies('approval.depth', 'an approval at any depth names the call that would run and its path', async () => {
  const scripted = scriptedSession({ gated: ['refund'] });
  expect((await scripted.runUntilPause('t', lead)).status).toBe('paused');
  const [deepApproval, nearApproval] = approvalsOf(await scripted.stored()).pending();
  const [requested] = scripted.live.filter(({ key }) => key === `${near}/0/0`);
  expect(nearApproval).toEqual({
    ...{ id: approvalId(`${near}/0`), sessionId: 's', turnId: 't', callId: near, tool: 'refund' },
    ...{ arguments: { sum: 5 }, argumentsDigest: 'sha256:a', definitionDigest: 'sha256:d' },
    ...{ principal: 'ann', approvers: ['bob'], description: 'Run refund?' },
    requestedAt: new Date(requested?.at ?? 0).toISOString(),
    expiresAt: '1970-01-01T00:00:05.000Z',
    path: ['lead', 'refund'],
  });
  expect(deepApproval).toMatchObject({
    callId: deep,
    arguments: { step: 1 },
    path: ['lead', 'clerk', 'flow', 'refund'],
  });
});

verifies('approval.order', 'an answer applies to its own approval only', async () => {
  for (const [first, second] of [
    [near, deep],
    [deep, near],
  ] as const) {
    const scripted = scriptedSession({ gated: ['refund'] });
    const approvals = new Approvals(SESSION);
    const applyLive = (): void => {
      for (const entry of scripted.live.splice(0)) approvals.apply(entry);
    };
    await scripted.runUntilPause('t', lead);
    await scripted.answer(`approval ${approvalId(`${first}/0`)}`, { approved: false, by: 'bob', reason: 'no', at: 9 });
    await scripted.runUntilPause('t', lead);
    applyLive();
    expect(approvals.pending().map(({ callId }) => callId)).toEqual([second]);
    expect(approvals.get(approvalId(`${first}/0`))).toMatchObject({
      ...{ approval: { callId: first }, isAbandoned: false },
      answer: { approved: false, by: 'bob', reason: 'no', at: 9 },
    });
    expect(approvals.get(approvalId(`${second}/0`))).toMatchObject({
      approval: { callId: second },
      isAbandoned: false,
    });
    await scripted.run('t', lead);
    applyLive();
    expect(approvals.pending()).toEqual([]);
    expect(approvals.get(approvalId(`${first}/0`))).toEqual({
      ...{ answer: { approved: false, by: 'bob', reason: 'no', at: 9 }, isAbandoned: false },
    });
    expect(approvals.get('made up')).toBeUndefined();
  }
});

verifies('approval.once', 'a cancelled turn abandons its approvals', async () => {
  const scripted = scriptedSession({ gated: ['refund'] });
  await scripted.runUntilPause('t', lead);
  await (await scripted.session()).cancel('t', 'enough');
  const stopped = approvalsOf(await scripted.stored());
  expect(stopped.pending()).toEqual([]);
  expect(stopped.get(approvalId(`${deep}/0`))).toMatchObject({ approval: { callId: deep }, isAbandoned: true });
  await scripted.runUntilPause('t', lead);
  expect(approvalsOf(await scripted.stored()).get(approvalId(`${deep}/0`))).toEqual({ isAbandoned: true });
});

verifies('approval.once', 'a branch that lost a race abandons its approvals', async () => {
  const race: Script = {
    composite: 'race',
    race: true,
    steps: [refund, { composite: 'slow', steps: [{ tool: 'look' }] }],
  };
  const scripted = scriptedSession({ gated: ['refund'] });
  await scripted.runUntilPause('t', { composite: 'all', steps: [race, refund] });
  const approvals = approvalsOf(await scripted.stored());
  expect(approvals.pending().map(({ callId }) => callId)).toEqual(['t/1']);
  expect(approvals.get(approvalId('t/0/0/0/0/0'))).toMatchObject({ isAbandoned: true });
});

const callStarted = (key: string): EntryDraft => ({ type: 'call.started', key, name: key });
const effectOpened = (key: string): EntryDraft => ({
  type: 'effect.opened',
  key,
  kind: 'tool',
  name: 'x',
  safety: 'once',
  value: 1,
});
const requested = (key: string, id: string, more: object = {}): EntryDraft => ({
  ...{ type: 'rondo.approval.requested', key },
  value: { id, tool: 'x', description: 'd', argumentsDigest: 'a', definition: 'b', expiresAt: 1, ...more },
});
const openApproval = [callStarted('t'), callStarted('t/0'), effectOpened('t/0/0'), requested('t/0/0/0', 'i')];
const error = { code: 'TIMEOUT', message: 'm' };

verifies('approval.once', 'an approval is abandoned when its effect, call, race or turn ends', () => {
  const waits = { type: 'wait.opened', key: 't/0/0/1/0/0', name: 'approval i' };
  const endings: readonly EntryDraft[] = [
    { type: 'effect.settled', key: 't/0/0', error },
    { type: 'call.errored', key: 't/0', error },
    { type: 'call.completed', key: 't/0' },
    { type: 'call.errored', key: 't', error },
    { type: 'cancel.requested', key: 't', reason: 'r' },
    { type: 'race.won', key: 't/0/0/1', winnerIndex: 1 },
  ];
  for (const ending of endings) {
    expect(approvalsOf(entriesOf(...openApproval, waits)).pending()).toHaveLength(1);
    const approvals = approvalsOf(entriesOf(...openApproval, waits, ending));
    expect(approvals.pending()).toEqual([]);
    expect(approvals.get('i')?.isAbandoned).toBe(true);
    const lateAnswer = { type: 'wait.settled', key: waits.key, signalId: 'd', value: { approved: true, by: 'eve' } };
    expect(approvalsOf(entriesOf(...openApproval, waits, ending, lateAnswer)).get('i')?.answer).toBeUndefined();
  }
  const unrelated: readonly EntryDraft[] = [
    { type: 'effect.settled', key: 't/1/0', error },
    { type: 'call.errored', key: 't/00', error },
    { type: 'race.won', key: 't/0/0/1', winnerIndex: 0 },
    { type: 'effect.failed', key: 't/0/0/2', error },
    { type: 'cancel.requested', key: 'u', reason: 'r' },
  ];
  for (const entry of unrelated)
    expect(approvalsOf(entriesOf(...openApproval, waits, entry)).pending()).toHaveLength(1);
});

verifies('approval.order', 'approvals are listed in the order of the calls that they are for', () => {
  const keys = [2, 9, 10, 11].map((branch) => `t/1/${branch}/0`);
  const calls = [callStarted('t'), ...keys.map(callStarted), callStarted('u'), callStarted('u/0')];
  const effects = [...keys, 'u/0'].map((key) => `${key}/0`);
  const requests = effects.map((key) => requested(`${key}/0`, key));
  const waits = effects.map((key) => ({ type: 'wait.opened', key: `${key}/1`, name: `approval ${key}` }));
  for (const order of [
    (drafts: readonly EntryDraft[]) => drafts,
    (drafts: readonly EntryDraft[]) => drafts.toReversed(),
  ]) {
    const entries = entriesOf(...calls, ...effects.map(effectOpened), ...order(requests), ...order(waits));
    expect(
      approvalsOf(entries)
        .pending()
        .map(({ id }) => id),
    ).toEqual(effects);
    const turns = new Turns();
    for (const entry of entries) turns.apply(entry);
    expect(turns.get('t')?.pending.map(({ id }) => id)).toEqual(effects.slice(0, -1));
  }
});

verifies('approval.forged', 'a body cannot record an approval, an answer or a grant for itself', () => {
  const approvals = approvalsOf(
    entriesOf(
      callStarted('t'),
      requested('t/0', 'mine'),
      callStarted('t/1'),
      requested('t/1/0', 'mine'),
      effectOpened('t/1/1'),
      requested('t/1/1/0/0', 'deeper'),
      requested('t/1/1/0', ''),
      requested('t/1/1/0', 'real'),
      { type: 'wait.opened', key: 't/1/2', name: 'approval real' },
      { type: 'wait.settled', key: 't/1/2', signalId: 'd', value: { approved: true, by: 'eve' } },
      requested('t/1/1/1', 'second'),
      { type: 'wait.opened', key: 't/1/1/2', name: 'approval other' },
      { type: 'wait.settled', key: 't/1/1/2', signalId: 'e', value: { approved: true, by: 'eve' } },
      { type: 'wait.opened', key: 't/1/1/3', name: 'approval real' },
      { type: 'wait.settled', key: 't/1/1/4', signalId: 'f', value: { approved: true, by: 'eve' } },
      {
        type: 'rondo.grant.given',
        key: 't/1/3',
        value: { tool: 'x', definition: 'b', schema: true, by: 'eve', approval: 'i' },
      },
    ),
  );
  expect(approvals.pending().map(({ id }) => id)).toEqual(['real']);
  expect(approvals.standingGrants()).toEqual([]);
});

verifies('approval.forged', 'a malformed request is read safely and counts as expired', () => {
  const malformed = { expiresAt: 1e300, principal: 5, approvers: ['ann', 7], tool: null };
  const [approval] = approvalsOf(
    entriesOf(...openApproval.slice(0, 3), requested('t/0/0/0', 'i', malformed)),
  ).pending();
  expect(approval).toMatchObject({ expiresAt: '1970-01-01T00:00:00.000Z', approvers: ['ann'], tool: '' });
  expect(approval).not.toHaveProperty('principal');
});

verifies('approval.standing', 'a complete standing grant counts, and an incomplete one does not', () => {
  const grant = { tool: 'x', definition: 'b', schema: { type: 'object' }, by: 'ann', approval: 'i', at: 5 };
  const { definition: definitionDigest, approval: approvalId, at: givenAt, ...rest } = grant;
  const grantEntry = (key: string, value: Entry['value']): EntryDraft => ({
    type: 'rondo.grant.given',
    key,
    ...(value !== undefined && { value }),
  });
  const { schema: _, ...unbounded } = grant;
  const entries = entriesOf(
    grantEntry('#1', grant),
    grantEntry('#2', unbounded),
    grantEntry('#3', undefined),
    grantEntry('#4', { ...grant, tool: 1 }),
  );
  expect(approvalsOf(entries).standingGrants()).toEqual([{ ...rest, definitionDigest, approvalId, givenAt }]);
});

verifies('approval.once', 'the end of a turn abandons only its own approvals', () => {
  const otherTurn = [callStarted('u'), effectOpened('u/0'), requested('u/0/0', 'j')];
  const approvals = approvalsOf(entriesOf(...openApproval, ...otherTurn, { type: 'call.completed', key: 't' }));
  expect(approvals.pending().map(({ id }) => id)).toEqual(['j']);
  expect(approvals.get('j')).toMatchObject({ approval: { turnId: 'u' }, isAbandoned: false });
  expect(approvals.get('i')).toEqual({ isAbandoned: true });
});

verifies('approval.once', 'ended calls are released', () => {
  const size = (...drafts: readonly EntryDraft[]): number =>
    JSON.stringify(approvalsOf(entriesOf(...drafts)), (_, value) => (value instanceof Map ? [...value] : value)).length;
  const abandoned = [callStarted('t'), callStarted('t/0/0/0'), effectOpened('t/0/0/0/0')];
  const won = { type: 'race.won', key: 't/0', winnerIndex: 1 };
  const failed = { type: 'call.errored', key: 't', error };
  expect(size(...abandoned)).toBeGreaterThan(size(callStarted('t')));
  expect(size(...abandoned, won)).toBe(size(callStarted('t')));
  expect(size(...abandoned, failed)).toBe(size());
  expect(size(...abandoned, won, failed)).toBe(size());
});

verifies('approval.once', 'the number of remembered approvals is bounded', () => {
  const approvals = new Approvals(SESSION);
  const total = 10_050;
  for (let i = 0; i < total; i++) {
    const [t, e] = [`t${i}`, `t${i}/0`];
    for (const entry of entriesOf(callStarted(t), effectOpened(e), requested(`${e}/0`, `i${i}`), {
      type: 'call.completed',
      key: t,
    }))
      approvals.apply(entry);
  }
  expect(approvals.get('i0')).toBeUndefined();
  expect(approvals.get('i49')).toBeUndefined();
  expect(approvals.get('i50')).toEqual({ isAbandoned: true });
  expect(approvals.get(`i${total - 1}`)).toEqual({ isAbandoned: true });
});

verifies('approval.depth', 'the pending approvals are exactly the signals that the turn waits for', async () => {
  const leaf: fc.Arbitrary<Script> = fc.constantFrom<Script>({ tool: 'refund' }, { tool: 'look' });
  const steps = (inner: fc.Arbitrary<Script>): fc.Arbitrary<Script> =>
    fc.record({
      composite: fc.constant('flow'),
      steps: fc.array(inner, { minLength: 1, maxLength: 3 }),
      race: fc.boolean(),
    });
  const agents = (inner: fc.Arbitrary<Script>): fc.Arbitrary<Script> =>
    fc.array(inner, { minLength: 1, maxLength: 3 }).map((all) => ({
      agent: 'a',
      rounds: [{ calls: all.map((runs, i) => ({ id: `c${i}`, name: 'x', runs })) }],
    }));
  const twoLevels = fc.oneof(leaf, steps(leaf), agents(leaf));
  const threeLevels = fc.oneof(steps(twoLevels), agents(twoLevels));
  let pauses = 0;
  await fc.assert(
    fc.asyncProperty(threeLevels, fc.infiniteStream(fc.nat()), async (script, picks) => {
      const scripted = scriptedSession({ gated: ['refund'] });
      const approvals = new Approvals(SESSION);
      for (let remainingSteps = 20; remainingSteps > 0; remainingSteps--) {
        const outcome = await scripted.runUntilPause('t', script);
        for (const entry of scripted.live.splice(0)) approvals.apply(entry);
        if (outcome.status !== 'paused') break;
        pauses += 1;
        const names = outcome.pending.map((pending) => ('name' in pending ? pending.name : ''));
        expect(
          approvals
            .pending()
            .map(({ id }) => `approval ${id}`)
            .toSorted(),
        ).toEqual(names.toSorted());
        const [pick] = picks.take(1);
        await scripted.answer(names[(pick ?? 0) % names.length] ?? '');
      }
      expect(approvals.pending()).toEqual([]);
    }),
    { numRuns: 100 },
  );
  expect(pauses).toBeGreaterThan(50);
});
