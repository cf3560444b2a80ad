import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Host } from '../../src/host/host.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import {
  ASK,
  Deeds,
  type Dice,
  diceOf,
  gate,
  ofType,
  onlyPending,
  SEED,
  shownIds,
  ticks,
  told,
} from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { agentDef, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const ROUNDS = 500;

interface Given {
  readonly approved: boolean;
  readonly by: string;
}

/** Two to six answers that contradict, repeat or resemble each other. */
function volley(dice: Dice): readonly Given[] {
  const yes = { approved: true, by: 'ada' };
  const no = { approved: false, by: 'ada' };
  const others = [yes, no, { approved: true, by: 'bob' }, { approved: false, by: 'bob' }];
  const fixed = dice.pick([
    [yes, no],
    [no, yes],
    [yes, yes],
    [no, no],
    [yes, { approved: true, by: 'bob' }],
  ]);
  return dice.random() < 0.5 ? fixed : Array.from({ length: 2 + dice.below(5) }, () => dice.pick(others));
}

/** Gives all answers in the same moment, some a few breaths later; how each was taken. */
function shoot(dice: Dice, hosts: readonly Host[], id: string, answers: readonly Given[]): Promise<string[]> {
  const late = answers.map(() => (dice.random() < 0.3 ? dice.below(6) : 0));
  const give = async (answer: Given, nth: number): Promise<string> => {
    for (let breath = 0; breath < (late[nth] ?? 0); breath++) await undefined;
    return told(dice.pick(hosts), { id, ...answer });
  };
  return Promise.all(answers.map(give));
}

/** That one answer was taken, that the journal holds that one alone, and what it said. */
async function assertOne(host: Host, id: string, answers: readonly Given[], ends: readonly string[], where: string) {
  const session = id.slice(0, id.indexOf('.'));
  const entries = await host.archive.entries(session);
  const signals = ofType(entries, 'signal.received').filter(({ name }) => name === `approval ${id}`);
  expect(signals, where).toHaveLength(1);
  const taken = answers.filter((_, nth) => ends[nth] === 'taken');
  expect(taken, `${where}: ${ends.join(', ')}`).toHaveLength(1);
  expect(signals[0]?.value, where).toMatchObject({ ...taken[0] });
  return taken[0]?.approved === true;
}

const PAY = tool('pay', 'builtin:act', ASK);

/** Hosts over one store, for many sessions. */
function hostsOf(count: number): { readonly hosts: readonly [Host, ...Host[]]; readonly deeds: Deeds } {
  const store = memoryStore();
  const deeds = new Deeds();
  const make = (seed: number) => hostOf([PAY], { store, tools: { act: deeds.act }, seed });
  return { deeds, hosts: [make(0), ...Array.from({ length: count - 1 }, (_, nth) => make(nth + 1))] };
}

async function pausedRound(dice: Dice, { hosts, deeds }: ReturnType<typeof hostsOf>, where: string): Promise<void> {
  const [host] = hosts;
  const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 5 } });
  const { id } = await onlyPending(host, sessionId);
  const answers = volley(dice);
  const before = deeds.count;
  const ends = await shoot(dice, hosts, id, answers);
  // An older writer of a session is refused, and tells so.
  const refusals = ends.filter((end) => end !== 'taken' && (hosts.length === 1 || !/tried to write/.test(end)));
  expect([...new Set(refusals)], where).toEqual(refusals.length === 0 ? [] : ['it was answered before']);
  const approved = await assertOne(host, id, answers, ends, where);
  expect(await host.resume(turnId), where).toMatchObject({ status: approved ? 'ok' : 'error' });
  expect(await host.resume(turnId), where).toMatchObject({ status: approved ? 'ok' : 'error' });
  expect(deeds.count - before, where).toBe(approved ? 1 : 0);
  expect(await told(host, { id, approved: true, by: 'eve' })).toBe('it was answered before');
}

/** A host whose turns run on while they wait for an answer. */
function busyHost(): { readonly host: Host; readonly deeds: Deeds; readonly open: () => void } {
  const deeds = new Deeds();
  let held = gate();
  const hold = () => {
    held = gate();
    return held.passed;
  };
  const replies = [{ calls: [['pay', { amount: 5 }] as const, ['hold', {}] as const] }, { text: 'done' }];
  const host = hostOf([PAY, tool('hold', 'builtin:hold'), agentDef('boss', { tools: ['pay', 'hold'] })], {
    tools: { act: deeds.act, hold },
    backends: [telling(replies)],
  });
  return { host, deeds, open: () => held.open() };
}

async function liveRound(dice: Dice, { host, deeds, open }: ReturnType<typeof busyHost>, where: string): Promise<void> {
  const envelopes: EventEnvelope[] = [];
  const options = { onEnvelope: (envelope: EventEnvelope) => void envelopes.push(envelope) };
  const before = deeds.count;
  const running = host.run({ loop: 'boss', input: { prompt: 'pay' } }, options);
  await ticks(5);
  const [id = ''] = shownIds(envelopes);
  const answers = volley(dice);
  const ends = await shoot(dice, [host], id, answers);
  expect(new Set(ends), where).toEqual(new Set(['taken', 'it was answered before']));
  const approved = await assertOne(host, id, answers, ends, where);
  open();
  expect(await running, where).toMatchObject({ status: 'ok' });
  expect(deeds.count - before, where).toBe(approved ? 1 : 0);
}

verifies(
  'approval.once',
  `of two answers in the same moment both are taken, or none (${ROUNDS} times)`,
  async () => {
    const dice = diceOf(SEED);
    const busy = busyHost();
    const idle = [hostsOf(1), hostsOf(2)];
    for (let round = 0; round < ROUNDS; round++) {
      const where = `RONDO_SEED=${SEED}, round ${round}`;
      const hosts = idle[round % 3];
      if (hosts === undefined) await liveRound(dice, busy, where);
      else await pausedRound(dice, hosts, where);
    }
  },
  60_000,
);

verifies(
  'approval.once',
  'somebody resumes the turn in the moment of the answer, and it runs twice or never',
  async () => {
    const dice = diceOf(SEED + 1);
    const {
      hosts: [host],
      deeds,
    } = hostsOf(1);
    for (let round = 0; round < 200; round++) {
      const before = deeds.count;
      const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 5 } });
      const { id } = await onlyPending(host, sessionId);
      const works = [
        () => told(host, { id, approved: true, by: 'ada' }),
        () => host.resume(turnId).then(({ status }) => status),
        () => host.resume(turnId).then(({ status }) => status),
        () => told(host, { id, approved: false, by: 'bob' }),
      ];
      const ends = await Promise.all(dice.shuffled(works).map((work) => work()));
      const { status } = await host.resume(turnId);
      const [signal] = ofType(await host.archive.entries(sessionId), 'signal.received');
      const approved = JSON.stringify(signal?.value).includes('"approved":true');
      expect(ends.filter((end) => end === 'taken')).toHaveLength(1);
      expect([status, deeds.count - before]).toEqual(approved ? ['ok', 1] : ['error', 0]);
    }
  },
);

verifies('approval.once', 'an answer that a cancel overtook lets the tool run, or the cancel is lost', async () => {
  const dice = diceOf(SEED + 2);
  const {
    hosts: [host],
    deeds,
  } = hostsOf(1);
  for (let round = 0; round < 200; round++) {
    const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 5 } });
    const { id } = await onlyPending(host, sessionId);
    const works = [() => told(host, { id, approved: true, by: 'ada' }), () => host.cancel(turnId, 'stop')];
    await Promise.all(dice.shuffled(works).map((work) => work()));
    expect(await host.resume(turnId)).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
    expect(deeds.count).toBe(0);
    expect(await host.replay(turnId)).toMatchObject({ matches: true });
  }
});
