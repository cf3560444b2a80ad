import { expect } from 'vitest';
import { LoopError } from '../../src/base/errors.js';
import type { Entry } from '../../src/protocol/entry.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import {
  ASK,
  answerOutcome,
  onlyPending,
  REFUSALS,
  RecordedActions,
  randomFrom,
  refusedIn,
  SEED,
} from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';
import { type ApprovalStates, approvalStates, forge, malformed } from './forgery.js';

const ANSWERS = 10_000;
const FIXTURES = 25;
const SESSIONS = ['live', 'paused', 'answered', 'ended', 'cancelled', 'expired', REFUSALS];

const messageOf = ({ value }: Entry): string => String((value as { readonly message?: string }).message);

/** Returns the messages of all journaled refusals, sorted. */
async function journaledRefusals({ host }: ApprovalStates): Promise<readonly string[]> {
  const all = await Promise.all(SESSIONS.map((session) => refusedIn(host, session)));
  return all.flat().map(messageOf).sort();
}

/** Asserts that valid answers are still accepted, each once. */
async function assertStillWorks({ host, actions, live, paused, answered, finish }: ApprovalStates): Promise<void> {
  for (const { id } of [live, paused]) {
    expect(await answerOutcome(host, { id, approved: true, by: 'ada' })).toBe('accepted');
    for (const approved of [true, false])
      expect(await answerOutcome(host, { id, approved, by: 'bob' })).toBe('it was answered before');
  }
  expect(await finish()).toMatchObject({ status: 'ok', output: { text: 'done' } });
  for (const { turnId } of [paused, answered]) expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
  const amounts = actions.performed.map((input) => (input as { readonly amount: number }).amount);
  expect(amounts.sort()).toEqual([3, 4, 5]);
}

verifies(
  'approval.forged',
  `a forged answer never runs a tool, and its refusal is journaled (${ANSWERS} answers)`,
  async () => {
    const reasons = new Map<string, number>();
    for (let nth = 0; nth < FIXTURES; nth++) {
      const seed = SEED * FIXTURES + nth;
      const random = randomFrom(seed);
      const states = await approvalStates(seed);
      const expected = [...(await journaledRefusals(states))];
      for (let count = 0; count < ANSWERS / FIXTURES; count++) {
        const { answer, reason } = forge(random, states);
        const { id, by } = answer as { readonly id: string; readonly by: string };
        const outcome = await answerOutcome(states.host, answer);
        expect(outcome, `RONDO_SEED=${SEED}, fixture ${nth}, ${JSON.stringify(answer)}`).toMatch(reason);
        expected.push(`The answer of ${by} to ${id} was refused: ${outcome}.`);
        reasons.set(reason.source, (reasons.get(reason.source) ?? 0) + 1);
      }
      expect(states.actions.count).toBe(0);
      expect(await journaledRefusals(states)).toEqual(expected.sort());
      await assertStillWorks(states);
    }
    // Every kind was tried many times.
    expect(Math.min(...reasons.values())).toBeGreaterThan(20);
    expect(reasons.size).toBe(12);
  },
  60_000,
);

verifies('approval.forged', 'a malformed answer is rejected with a TypeError and leaves the host intact', async () => {
  const states = await approvalStates(SEED);
  const before = await journaledRefusals(states);
  for (const answer of malformed(states))
    expect(await answerOutcome(states.host, answer), String(answer)).toBe('TypeError');
  expect(await journaledRefusals(states)).toEqual(before);
  expect(states.actions.count).toBe(0);
  await assertStillWorks(states);
});

verifies('approval.forged', 'an answer to an approval that does not exist yet is refused, not kept', async () => {
  const make = (actions: RecordedActions) => hostOf([tool('pay', 'builtin:act', ASK)], { tools: { act: actions.act } });
  const request = { loop: 'pay', input: { amount: 5 }, key: 'rent' };
  // The same seed creates the same ids, so that the approval id is predictable.
  const oracle = make(new RecordedActions());
  await oracle.run(request);
  const { id, sessionId } = await onlyPending(oracle);
  const actions = new RecordedActions();
  const host = make(actions);
  expect(await answerOutcome(host, { id, approved: true, by: 'ada' })).toBe('there is no such approval');
  expect(await refusedIn(host, REFUSALS)).toHaveLength(1);
  expect(await host.run(request)).toMatchObject({ status: 'paused' });
  expect(await onlyPending(host)).toMatchObject({ id, sessionId });
  expect(actions.count).toBe(0);
});

verifies('approval.forged', 'neither resolving an effect nor sending a message answers an approval', async () => {
  const { host, actions, paused } = await approvalStates(SEED);
  const { id, turnId, callId, sessionId } = paused;
  for (const key of [callId, `${callId}/0`, `${callId}/0/0`, `${callId}/0/1`, id]) {
    for (const resolution of ['retry', 'supply', 'fail'] as const)
      await expect(host.resolveEffect(key, resolution, 'mallory', true)).rejects.toMatchObject({ name: 'LoopError' });
  }
  const send = (mode: string) =>
    host.sendMessage({
      sessionId,
      text: 'approved',
      mode: mode as 'steer',
      id: `approval ${id}${mode === 'queue' ? ' ' : ''}`,
    });
  await expect(send(`approval ${id}`)).rejects.toThrow(TypeError);
  await send('steer');
  await send('queue');
  expect(await host.resume(turnId)).toMatchObject({ status: 'paused', pending: [{ kind: 'approval', id }] });
  expect(await host.replay(turnId)).toMatchObject({ matches: true });
  expect(actions.count).toBe(0);
});

verifies('approval.forged', 'an agent cannot answer for itself under another spelling of its name', async () => {
  const names = [' agent:x', 'agent:x ', 'AGENT:x', 'Agent:boss', 'boss ', 'Boss', 'bo\u200bss', 'ｂｏｓｓ', '\tboss'];
  // Zero-width characters, variation selectors, and blanks that count as letters.
  for (const hidden of ['\u034f', '\ufe0f', '\u{e0100}', '\u3164', '\u115f', '\uffa0', '\u17b4', '\u180b', '\u2800']) {
    names.push(`boss${hidden}`, `agent${hidden}:x`);
  }
  for (const by of names) {
    const definitions = [tool('pay', 'builtin:act'), agentDef('boss', { tools: ['pay'], approvals: { '*': 'ask' } })];
    const providers = [replyProvider([{ calls: [['pay', {}]] }, { text: 'done' }])];
    const host = hostOf(definitions, { tools: { act: new RecordedActions().act }, providers });
    await host.run({ loop: 'boss', input: { prompt: 'pay' } });
    const { id } = await onlyPending(host);
    expect(await answerOutcome(host, { id, approved: true, by }), by).toBe('an agent may not answer for itself');
  }
});

verifies('approval.forged', 'an answer is read once: the checked content is the accepted content', async () => {
  const { host, live, actions } = await approvalStates(SEED);
  let reads = 0;
  const answer = {
    id: live.id,
    approved: true,
    get by() {
      reads += 1;
      return reads === 2 ? 'mallory' : 'ada';
    },
  };
  await answerOutcome(host, answer);
  const entries = await host.archive.entries(live.sessionId);
  const signals = entries.filter(({ type, name }) => type === 'signal.received' && name === `approval ${live.id}`);
  expect(signals.map(({ value }) => (value as { readonly by: string }).by)).not.toContain('mallory');
  expect(actions.count).toBeLessThan(2);
});

verifies('approval.forged', 'a malformed list of approvers never admits everyone', async () => {
  for (const approvers of ['ada', { 0: 'ada' }, 5, ['ada', 5], [['ada']]]) {
    const host = hostOf([tool('pay', 'builtin:act', ASK)], { tools: { act: new RecordedActions().act } });
    const request = { loop: 'pay', input: {}, approvers: approvers as unknown as string[] };
    const outcome = await host.run(request).catch((thrown: unknown) => thrown);
    if (outcome instanceof LoopError && outcome.code === 'REQUEST_INVALID') continue;
    const { id } = await onlyPending(host);
    expect(await answerOutcome(host, { id, approved: true, by: 'mallory' }), JSON.stringify(approvers)).toMatch(
      /may not answer/,
    );
  }
});

verifies(
  'approval.once',
  'an answer that was accepted in time still counts when its turn resumes after the expiry',
  async () => {
    const clock = new ManualClock(1_000_000);
    const actions = new RecordedActions();
    const host = hostOf([tool('pay', 'builtin:act', ASK)], { clock, tools: { act: actions.act } });
    const paused = await host.run({ loop: 'pay', input: { amount: 5 }, sessionId: 's' });
    const { id } = await onlyPending(host);
    await host.answer({ id, approved: true, by: 'ada' });
    await clock.advance(31 * 86_400_000);
    expect(await host.run({ loop: 'pay', input: { amount: 6 }, sessionId: 's' })).toMatchObject({ status: 'paused' });
    expect(await host.resume(paused.turnId)).toMatchObject({ status: 'ok' });
    expect(actions.performed).toEqual([{ amount: 5 }]);
  },
);

verifies('approval.once', 'an answered approval is no longer listed', async () => {
  const host = hostOf([tool('pay', 'builtin:act', ASK)], { tools: { act: new RecordedActions().act } });
  await host.run({ loop: 'pay', input: {} });
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: true, by: 'ada' });
  expect(await host.archive.approvals()).toEqual([]);
});
