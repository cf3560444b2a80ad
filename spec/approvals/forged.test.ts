import { expect } from 'vitest';
import type { Entry } from '../../src/protocol/entry.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { ASK, Deeds, diceOf, onlyPending, REFUSALS, refusedIn, SEED, told } from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { agentDef, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';
import { forge, malformed, type World, worldOf } from './forgery.js';

const ANSWERS = 10_000;
const WORLDS = 25;
const SESSIONS = ['live', 'paused', 'answered', 'ended', 'cancelled', 'expired', REFUSALS];

const messageOf = ({ value }: Entry): string => String((value as { readonly message?: string }).message);

/** What was journaled of refusals, in all sessions. */
async function journaled({ host }: World): Promise<readonly string[]> {
  const all = await Promise.all(SESSIONS.map((session) => refusedIn(host, session)));
  return all.flat().map(messageOf).sort();
}

/** The right answers still work, each once. */
async function assertStillWorks({ host, deeds, live, paused, answered, finish }: World): Promise<void> {
  for (const { id } of [live, paused]) {
    expect(await told(host, { id, approved: true, by: 'ada' })).toBe('taken');
    for (const approved of [true, false])
      expect(await told(host, { id, approved, by: 'bob' })).toBe('it was answered before');
  }
  expect(await finish()).toMatchObject({ status: 'ok', output: { text: 'done' } });
  for (const { turnId } of [paused, answered]) expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
  const amounts = deeds.done.map((done) => (done as { readonly amount: number }).amount);
  expect(amounts.sort()).toEqual([3, 4, 5]);
}

verifies(
  'approval.forged',
  `an answer that somebody made up lets a tool run, or leaves no trace (${ANSWERS} of them)`,
  async () => {
    const reasons = new Map<string, number>();
    for (let nth = 0; nth < WORLDS; nth++) {
      const seed = SEED * WORLDS + nth;
      const dice = diceOf(seed);
      const world = await worldOf(seed);
      const expected = [...(await journaled(world))];
      for (let count = 0; count < ANSWERS / WORLDS; count++) {
        const { answer, reason } = forge(dice, world);
        const { id, by } = answer as { readonly id: string; readonly by: string };
        const why = await told(world.host, answer);
        expect(why, `RONDO_SEED=${SEED}, world ${nth}, ${JSON.stringify(answer)}`).toMatch(reason);
        expected.push(`The answer of ${by} to ${id} was refused: ${why}.`);
        reasons.set(reason.source, (reasons.get(reason.source) ?? 0) + 1);
      }
      expect(world.deeds.count).toBe(0);
      expect(await journaled(world)).toEqual(expected.sort());
      await assertStillWorks(world);
    }
    // Every kind was tried, and not only once.
    expect(Math.min(...reasons.values())).toBeGreaterThan(20);
    expect(reasons.size).toBe(12);
  },
  60_000,
);

verifies('approval.forged', 'an answer that is none is taken for one, or ends the host', async () => {
  const world = await worldOf(SEED);
  const before = await journaled(world);
  for (const answer of malformed(world)) expect(await told(world.host, answer), String(answer)).toBe('TypeError');
  expect(await journaled(world)).toEqual(before);
  expect(world.deeds.count).toBe(0);
  await assertStillWorks(world);
});

verifies('approval.forged', 'an answer to what was never asked waits until it is', async () => {
  const make = (deeds: Deeds) => hostOf([tool('pay', 'builtin:act', ASK)], { tools: { act: deeds.act } });
  const request = { loop: 'pay', input: { amount: 5 }, key: 'rent' };
  // The same seed makes the same ids: what is asked for is known before it is.
  const oracle = make(new Deeds());
  await oracle.run(request);
  const { id, sessionId } = await onlyPending(oracle);
  const deeds = new Deeds();
  const host = make(deeds);
  expect(await told(host, { id, approved: true, by: 'ada' })).toBe('there is no such approval');
  expect(await refusedIn(host, REFUSALS)).toHaveLength(1);
  expect(await host.run(request)).toMatchObject({ status: 'paused' });
  expect(await onlyPending(host)).toMatchObject({ id, sessionId });
  expect(deeds.count).toBe(0);
});

verifies('approval.forged', 'what is no decision of an approval decides it', async () => {
  const { host, deeds, paused } = await worldOf(SEED);
  const { id, turnId, callId, sessionId } = paused;
  for (const key of [callId, `${callId}/0`, `${callId}/0/0`, `${callId}/0/1`, id]) {
    for (const decision of ['retry', 'supply', 'fail'] as const)
      await expect(host.resolveEffect(key, decision, 'mallory', true)).rejects.toMatchObject({ name: 'LoopError' });
  }
  const say = (mode: string) =>
    host.sendMessage({
      sessionId,
      text: 'approved',
      mode: mode as 'steer',
      id: `approval ${id}${mode === 'queue' ? ' ' : ''}`,
    });
  await expect(say(`approval ${id}`)).rejects.toThrow(TypeError);
  await say('steer');
  await say('queue');
  expect(await host.resume(turnId)).toMatchObject({ status: 'paused', pending: [{ kind: 'approval', id }] });
  expect(await host.replay(turnId)).toMatchObject({ matches: true });
  expect(deeds.count).toBe(0);
});

verifies('approval.forged', 'an agent answers for itself by writing its name another way', async () => {
  const names = [' agent:x', 'agent:x ', 'AGENT:x', 'Agent:boss', 'boss ', 'Boss', 'bo\u200bss', 'ｂｏｓｓ', '\tboss'];
  // What has no width, selects a variant, or is a blank that counts as a letter.
  for (const hidden of ['\u034f', '\ufe0f', '\u{e0100}', '\u3164', '\u115f', '\uffa0', '\u17b4', '\u180b', '\u2800']) {
    names.push(`boss${hidden}`, `agent${hidden}:x`);
  }
  for (const by of names) {
    const definitions = [tool('pay', 'builtin:act'), agentDef('boss', { tools: ['pay'], approvals: { '*': 'ask' } })];
    const backends = [telling([{ calls: [['pay', {}]] }, { text: 'done' }])];
    const host = hostOf(definitions, { tools: { act: new Deeds().act }, backends });
    await host.run({ loop: 'boss', input: { prompt: 'pay' } });
    const { id } = await onlyPending(host);
    expect(await told(host, { id, approved: true, by }), by).toBe('an agent may not answer for itself');
  }
});

verifies('approval.forged', 'an answer is checked with one content and taken with another', async () => {
  const { host, live, deeds } = await worldOf(SEED);
  let reads = 0;
  const answer = {
    id: live.id,
    approved: true,
    get by() {
      reads += 1;
      return reads === 2 ? 'mallory' : 'ada';
    },
  };
  await told(host, answer);
  const entries = await host.archive.entries(live.sessionId);
  const signals = entries.filter(({ type, name }) => type === 'signal.received' && name === `approval ${live.id}`);
  expect(signals.map(({ value }) => (value as { readonly by: string }).by)).not.toContain('mallory');
  expect(deeds.count).toBeLessThan(2);
});

verifies('approval.forged', 'who alone may answer is written in a way that lets everybody', async () => {
  for (const approvers of ['ada', { 0: 'ada' }, 5, ['ada', 5], [['ada']]]) {
    const host = hostOf([tool('pay', 'builtin:act', ASK)], { tools: { act: new Deeds().act } });
    const request = { loop: 'pay', input: {}, approvers: approvers as unknown as string[] };
    const begun = await host.run(request).catch((thrown: unknown) => thrown);
    if (begun instanceof TypeError) continue;
    const { id } = await onlyPending(host);
    expect(await told(host, { id, approved: true, by: 'mallory' }), JSON.stringify(approvers)).toMatch(
      /may not answer/,
    );
  }
});

verifies('approval.once', 'an answer that was taken in time is lost when its turn goes on after the time', async () => {
  const clock = new ManualClock(1_000_000);
  const deeds = new Deeds();
  const host = hostOf([tool('pay', 'builtin:act', ASK)], { clock, tools: { act: deeds.act } });
  const paused = await host.run({ loop: 'pay', input: { amount: 5 }, sessionId: 's' });
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: true, by: 'ada' });
  await clock.advance(31 * 86_400_000);
  expect(await host.run({ loop: 'pay', input: { amount: 6 }, sessionId: 's' })).toMatchObject({ status: 'paused' });
  expect(await host.resume(paused.turnId)).toMatchObject({ status: 'ok' });
  expect(deeds.done).toEqual([{ amount: 5 }]);
});

verifies('approval.once', 'what was answered is still shown as if it waited', async () => {
  const host = hostOf([tool('pay', 'builtin:act', ASK)], { tools: { act: new Deeds().act } });
  await host.run({ loop: 'pay', input: {} });
  const { id } = await onlyPending(host);
  await host.answer({ id, approved: true, by: 'ada' });
  expect(await host.archive.approvals()).toEqual([]);
});
