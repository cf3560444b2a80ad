import fc from 'fast-check';
import { expect } from 'vitest';
import { SESSION, Stage } from '../../spec/support/conversation-fixture.mjs';
import { approvalId } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { LoopError } from '../base/errors.js';
import { Session } from '../kernel/session.js';
import type { Entry } from '../protocol/entry.js';
import { Approvals } from './approvals.js';
import { Turns } from './turns.js';

type Script = Parameters<Stage['run']>[1];
type Draft = Omit<Entry, 'seq' | 'at'>;

const fail = (code: string, message: string, data?: Entry['value']) => new LoopError(code, message, data);
const stage = (manners: ConstructorParameters<typeof Stage>[1]): Stage =>
  new Stage({ open: Session.open, store: memoryStore(), fail }, manners);

function folded(entries: Iterable<Entry>): Approvals {
  const approvals = new Approvals(SESSION);
  for (const entry of entries) approvals.apply(entry);
  return approvals;
}

function placed(...drafts: readonly Draft[]): Entry[] {
  return drafts.map((draft, seq) => ({ ...draft, seq, at: 1000 + seq }));
}

const refund: Script = { tool: 'refund', result: 1 };
const flow: Script = { composite: 'flow', steps: [{ tool: 'look' }, refund] };
const clerk: Script = { agent: 'clerk', rounds: [{ calls: [{ id: 'f', name: 'flow', runs: flow }] }] };
const desk: Script = {
  agent: 'desk',
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

verifies('approval.depth', 'an approval three levels down does not say what would run, or where', async () => {
  const played = stage({ gated: ['refund'] });
  expect((await played.step('t', desk)).status).toBe('paused');
  const [other, one] = folded(await played.stored()).pending();
  const [requested] = played.live.filter(({ key }) => key === `${near}/0/0`);
  expect(one).toEqual({
    ...{ id: approvalId(`${near}/0`), sessionId: 's', turnId: 't', callId: near, tool: 'refund' },
    ...{ arguments: { sum: 5 }, argumentsDigest: 'sha256:a', definitionDigest: 'sha256:d' },
    ...{ principal: 'ann', approvers: ['bob'], description: 'Run refund?' },
    requestedAt: new Date(requested?.at ?? 0).toISOString(),
    expiresAt: '1970-01-01T00:00:05.000Z',
    path: ['desk', 'refund'],
  });
  expect(other).toMatchObject({ callId: deep, arguments: { step: 1 }, path: ['desk', 'clerk', 'flow', 'refund'] });
});

verifies('approval.order', 'an answer to one of two approvals is taken for both', async () => {
  for (const [first, second] of [
    [near, deep],
    [deep, near],
  ] as const) {
    const played = stage({ gated: ['refund'] });
    const approvals = new Approvals(SESSION);
    const fold = (): void => {
      for (const entry of played.live.splice(0)) approvals.apply(entry);
    };
    await played.step('t', desk);
    await played.answer(`approval ${approvalId(`${first}/0`)}`, { approved: false, by: 'bob', reason: 'no', at: 9 });
    await played.step('t', desk);
    fold();
    expect(approvals.pending().map(({ callId }) => callId)).toEqual([second]);
    expect(approvals.get(approvalId(`${first}/0`))).toMatchObject({
      ...{ approval: { callId: first }, isAbandoned: false },
      answer: { approved: false, by: 'bob', reason: 'no', at: 9 },
    });
    expect(approvals.get(approvalId(`${second}/0`))).toMatchObject({
      approval: { callId: second },
      isAbandoned: false,
    });
    await played.run('t', desk);
    fold();
    expect(approvals.pending()).toEqual([]);
    expect(approvals.get(approvalId(`${first}/0`))).toEqual({
      ...{ answer: { approved: false, by: 'bob', reason: 'no', at: 9 }, isAbandoned: false },
    });
    expect(approvals.get('made up')).toBeUndefined();
  }
});

verifies('approval.once', 'a turn that was stopped goes on asking', async () => {
  const played = stage({ gated: ['refund'] });
  await played.step('t', desk);
  await (await played.session()).cancel('t', 'enough');
  const stopped = folded(await played.stored());
  expect(stopped.pending()).toEqual([]);
  expect(stopped.get(approvalId(`${deep}/0`))).toMatchObject({ approval: { callId: deep }, isAbandoned: true });
  await played.step('t', desk);
  expect(folded(await played.stored()).get(approvalId(`${deep}/0`))).toEqual({ isAbandoned: true });
});

verifies('approval.once', 'a branch that lost a race goes on asking', async () => {
  const race: Script = {
    composite: 'race',
    race: true,
    steps: [refund, { composite: 'slow', steps: [{ tool: 'look' }] }],
  };
  const played = stage({ gated: ['refund'] });
  await played.step('t', { composite: 'all', steps: [race, refund] });
  const approvals = folded(await played.stored());
  expect(approvals.pending().map(({ callId }) => callId)).toEqual(['t/1']);
  expect(approvals.get(approvalId('t/0/0/0/0/0'))).toMatchObject({ isAbandoned: true });
});

const started = (key: string): Draft => ({ type: 'call.started', key, name: key });
const asked = (key: string): Draft => ({
  type: 'effect.opened',
  key,
  kind: 'tool',
  name: 'x',
  safety: 'once',
  value: 1,
});
const requested = (key: string, id: string, more: object = {}): Draft => ({
  ...{ type: 'rondo.approval.requested', key },
  value: { id, tool: 'x', description: 'd', argumentsDigest: 'a', definition: 'b', expiresAt: 1, ...more },
});
const open = [started('t'), started('t/0'), asked('t/0/0'), requested('t/0/0/0', 'i')];
const error = { code: 'TIMEOUT', message: 'm' };

verifies('approval.once', 'an approval whose effect, call, race or turn is over can still be answered', () => {
  const waits = { type: 'wait.opened', key: 't/0/0/1/0/0', name: 'approval i' };
  const endings: readonly Draft[] = [
    { type: 'effect.settled', key: 't/0/0', error },
    { type: 'call.errored', key: 't/0', error },
    { type: 'call.completed', key: 't/0' },
    { type: 'call.errored', key: 't', error },
    { type: 'cancel.requested', key: 't', reason: 'r' },
    { type: 'race.won', key: 't/0/0/1', winnerIndex: 1 },
  ];
  for (const ending of endings) {
    expect(folded(placed(...open, waits)).pending()).toHaveLength(1);
    const approvals = folded(placed(...open, waits, ending));
    expect(approvals.pending()).toEqual([]);
    expect(approvals.get('i')?.isAbandoned).toBe(true);
    const late = { type: 'wait.settled', key: waits.key, signalId: 'd', value: { approved: true, by: 'eve' } };
    expect(folded(placed(...open, waits, ending, late)).get('i')?.answer).toBeUndefined();
  }
  const elsewhere: readonly Draft[] = [
    { type: 'effect.settled', key: 't/1/0', error },
    { type: 'call.errored', key: 't/00', error },
    { type: 'race.won', key: 't/0/0/1', winnerIndex: 0 },
    { type: 'effect.failed', key: 't/0/0/2', error },
    { type: 'cancel.requested', key: 'u', reason: 'r' },
  ];
  for (const other of elsewhere) expect(folded(placed(...open, waits, other)).pending()).toHaveLength(1);
});

verifies('approval.order', 'approvals are listed in the order of the calls that they are for', () => {
  const keys = [2, 9, 10, 11].map((branch) => `t/1/${branch}/0`);
  const calls = [started('t'), ...keys.map(started), started('u'), started('u/0')];
  const effects = [...keys, 'u/0'].map((key) => `${key}/0`);
  const requests = effects.map((key) => requested(`${key}/0`, key));
  const waits = effects.map((key) => ({ type: 'wait.opened', key: `${key}/1`, name: `approval ${key}` }));
  for (const order of [(drafts: readonly Draft[]) => drafts, (drafts: readonly Draft[]) => drafts.toReversed()]) {
    const entries = placed(...calls, ...effects.map(asked), ...order(requests), ...order(waits));
    expect(
      folded(entries)
        .pending()
        .map(({ id }) => id),
    ).toEqual(effects);
    const turns = new Turns();
    for (const entry of entries) turns.apply(entry);
    expect(turns.get('t')?.pending.map(({ id }) => id)).toEqual(effects.slice(0, -1));
  }
});

verifies('approval.forged', 'a body writes itself an approval, an answer or a grant', () => {
  const approvals = folded(
    placed(
      started('t'),
      requested('t/0', 'mine'),
      started('t/1'),
      requested('t/1/0', 'mine'),
      asked('t/1/1'),
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

verifies('approval.forged', 'a request of another shape than ours breaks the session, or never expires', () => {
  const odd = { expiresAt: 1e300, principal: 5, approvers: ['ann', 7], tool: null };
  const [approval] = folded(placed(...open.slice(0, 3), requested('t/0/0/0', 'i', odd))).pending();
  expect(approval).toMatchObject({ expiresAt: '1970-01-01T00:00:00.000Z', approvers: ['ann'], tool: '' });
  expect(approval).not.toHaveProperty('principal');
});

verifies('approval.standing', 'a standing grant is lost, or half of one counts', () => {
  const grant = { tool: 'x', definition: 'b', schema: { type: 'object' }, by: 'ann', approval: 'i', at: 5 };
  const { definition: definitionDigest, approval: approvalId, at: givenAt, ...rest } = grant;
  const given = (key: string, value: Entry['value']): Draft => ({
    type: 'rondo.grant.given',
    key,
    ...(value !== undefined && { value }),
  });
  const { schema: _, ...unbounded } = grant;
  const entries = placed(
    given('#1', grant),
    given('#2', unbounded),
    given('#3', undefined),
    given('#4', { ...grant, tool: 1 }),
  );
  expect(folded(entries).standingGrants()).toEqual([{ ...rest, definitionDigest, approvalId, givenAt }]);
});

verifies('approval.once', 'the end of one turn takes what another asks', () => {
  const other = [started('u'), asked('u/0'), requested('u/0/0', 'j')];
  const approvals = folded(placed(...open, ...other, { type: 'call.completed', key: 't' }));
  expect(approvals.pending().map(({ id }) => id)).toEqual(['j']);
  expect(approvals.get('j')).toMatchObject({ approval: { turnId: 'u' }, isAbandoned: false });
  expect(approvals.get('i')).toEqual({ isAbandoned: true });
});

verifies('approval.once', 'calls that were left behind are remembered for ever', () => {
  const size = (...drafts: readonly Draft[]): number =>
    JSON.stringify(folded(placed(...drafts)), (_, value) => (value instanceof Map ? [...value] : value)).length;
  const behind = [started('t'), started('t/0/0/0'), asked('t/0/0/0/0')];
  const won = { type: 'race.won', key: 't/0', winnerIndex: 1 };
  const failed = { type: 'call.errored', key: 't', error };
  expect(size(...behind)).toBeGreaterThan(size(started('t')));
  expect(size(...behind, won)).toBe(size(started('t')));
  expect(size(...behind, failed)).toBe(size());
  expect(size(...behind, won, failed)).toBe(size());
});

verifies('approval.once', 'a session of a million approvals remembers them all', () => {
  const approvals = new Approvals(SESSION);
  const total = 10_050;
  for (let i = 0; i < total; i++) {
    const [t, e] = [`t${i}`, `t${i}/0`];
    for (const entry of placed(started(t), asked(e), requested(`${e}/0`, `i${i}`), { type: 'call.completed', key: t }))
      approvals.apply(entry);
  }
  expect(approvals.get('i0')).toBeUndefined();
  expect(approvals.get('i49')).toBeUndefined();
  expect(approvals.get('i50')).toEqual({ isAbandoned: true });
  expect(approvals.get(`i${total - 1}`)).toEqual({ isAbandoned: true });
});

verifies('approval.depth', 'what is shown as waiting is not what the run waits for', async () => {
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
  const two = fc.oneof(leaf, steps(leaf), agents(leaf));
  const three = fc.oneof(steps(two), agents(two));
  let pauses = 0;
  await fc.assert(
    fc.asyncProperty(three, fc.infiniteStream(fc.nat()), async (script, picks) => {
      const played = stage({ gated: ['refund'] });
      const approvals = new Approvals(SESSION);
      for (let left = 20; left > 0; left--) {
        const outcome = await played.step('t', script);
        for (const entry of played.live.splice(0)) approvals.apply(entry);
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
        await played.answer(names[(pick ?? 0) % names.length] ?? '');
      }
      expect(approvals.pending()).toEqual([]);
    }),
    { numRuns: 100 },
  );
  expect(pauses).toBeGreaterThan(50);
});
