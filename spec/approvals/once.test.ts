import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import type { Host } from '../../src/host/host.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import {
  ASK,
  answerOutcome,
  gate,
  ofType,
  onlyPending,
  type RandomSource,
  RecordedActions,
  randomFrom,
  SEED,
  shownIds,
  ticks,
} from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { repetitions } from '../support/repetitions.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const ROUNDS = repetitions(500);

interface AnswerInput {
  readonly approved: boolean;
  readonly by: string;
}

/** Returns two to six answers that contradict, repeat or resemble each other. */
function conflictingAnswers(random: RandomSource): readonly AnswerInput[] {
  const yes = { approved: true, by: 'ada' };
  const no = { approved: false, by: 'ada' };
  const others = [yes, no, { approved: true, by: 'bob' }, { approved: false, by: 'bob' }];
  const fixed = random.pick([
    [yes, no],
    [no, yes],
    [yes, yes],
    [no, no],
    [yes, { approved: true, by: 'bob' }],
  ]);
  return random.next() < 0.5 ? fixed : Array.from({ length: 2 + random.below(5) }, () => random.pick(others));
}

/** Sends all answers concurrently, some a few microtasks later. Returns the outcome of each. */
function answerConcurrently(
  random: RandomSource,
  hosts: readonly Host[],
  id: string,
  answers: readonly AnswerInput[],
): Promise<string[]> {
  const delays = answers.map(() => (random.next() < 0.3 ? random.below(6) : 0));
  const send = async (answer: AnswerInput, nth: number): Promise<string> => {
    for (let count = 0; count < (delays[nth] ?? 0); count++) await undefined;
    return answerOutcome(random.pick(hosts), { id, ...answer });
  };
  return Promise.all(answers.map(send));
}

/** Asserts that one answer was accepted and is the only one in the journal. Returns whether it approves. */
async function assertOne(
  host: Host,
  id: string,
  answers: readonly AnswerInput[],
  outcomes: readonly string[],
  where: string,
) {
  const session = id.slice(0, id.indexOf('.'));
  const entries = await host.archive.entries(session);
  const signals = ofType(entries, 'signal.received').filter(({ name }) => name === `approval ${id}`);
  expect(signals, where).toHaveLength(1);
  const accepted = answers.filter((_, nth) => outcomes[nth] === 'accepted');
  expect(accepted, `${where}: ${outcomes.join(', ')}`).toHaveLength(1);
  expect(signals[0]?.value, where).toMatchObject({ ...accepted[0] });
  return accepted[0]?.approved === true;
}

const PAY = tool('pay', 'builtin:act', ASK);

/** Several hosts on one store. */
function hostsOf(count: number): { readonly hosts: readonly [Host, ...Host[]]; readonly actions: RecordedActions } {
  const store = memoryStore();
  const actions = new RecordedActions();
  const make = (seed: number) => hostOf([PAY], { store, tools: { act: actions.act }, seed });
  return { actions, hosts: [make(0), ...Array.from({ length: count - 1 }, (_, nth) => make(nth + 1))] };
}

async function pausedRound(
  random: RandomSource,
  { hosts, actions }: ReturnType<typeof hostsOf>,
  where: string,
): Promise<void> {
  const [host] = hosts;
  const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 5 } });
  const { id } = await onlyPending(host, sessionId);
  const answers = conflictingAnswers(random);
  const before = actions.count;
  const outcomes = await answerConcurrently(random, hosts, id, answers);
  // A host whose claim of the session is older is refused by the fence.
  const refusals = outcomes.filter(
    (outcome) => outcome !== 'accepted' && (hosts.length === 1 || !/tried to write/.test(outcome)),
  );
  expect([...new Set(refusals)], where).toEqual(refusals.length === 0 ? [] : ['it was answered before']);
  const approved = await assertOne(host, id, answers, outcomes, where);
  expect(await host.resume(turnId), where).toMatchObject({ status: approved ? 'ok' : 'error' });
  expect(await host.resume(turnId), where).toMatchObject({ status: approved ? 'ok' : 'error' });
  expect(actions.count - before, where).toBe(approved ? 1 : 0);
  expect(await answerOutcome(host, { id, approved: true, by: 'eve' })).toBe('it was answered before');
}

/** A host whose turns keep running while an approval is pending. */
function busyHost(): { readonly host: Host; readonly actions: RecordedActions; readonly open: () => void } {
  const actions = new RecordedActions();
  let blocker = gate();
  const hold = () => {
    blocker = gate();
    return blocker.passed;
  };
  const replies = [{ calls: [['pay', { amount: 5 }] as const, ['hold', {}] as const] }, { text: 'done' }];
  const host = hostOf([PAY, tool('hold', 'builtin:hold'), agentDef('boss', { tools: ['pay', 'hold'] })], {
    tools: { act: actions.act, hold },
    providers: [replyProvider(replies)],
  });
  return { host, actions, open: () => blocker.open() };
}

async function liveRound(
  random: RandomSource,
  { host, actions, open }: ReturnType<typeof busyHost>,
  where: string,
): Promise<void> {
  const envelopes: EventEnvelope[] = [];
  const options = { onEnvelope: (envelope: EventEnvelope) => void envelopes.push(envelope) };
  const before = actions.count;
  const running = host.run({ loop: 'boss', input: { prompt: 'pay' } }, options);
  await ticks(5);
  const [id = ''] = shownIds(envelopes);
  const answers = conflictingAnswers(random);
  const outcomes = await answerConcurrently(random, [host], id, answers);
  expect(new Set(outcomes), where).toEqual(new Set(['accepted', 'it was answered before']));
  const approved = await assertOne(host, id, answers, outcomes, where);
  open();
  expect(await running, where).toMatchObject({ status: 'ok' });
  expect(actions.count - before, where).toBe(approved ? 1 : 0);
}

verifies(
  'approval.once',
  `exactly one of several concurrent answers is accepted (${ROUNDS} rounds)`,
  async () => {
    const random = randomFrom(SEED);
    const busy = busyHost();
    const idle = [hostsOf(1), hostsOf(2)];
    for (let round = 0; round < ROUNDS; round++) {
      const where = `RONDO_SEED=${SEED}, round ${round}`;
      const hosts = idle[round % 3];
      if (hosts === undefined) await liveRound(random, busy, where);
      else await pausedRound(random, hosts, where);
    }
  },
  60_000,
);

verifies('approval.once', 'a tool runs exactly once if its turn is resumed during the answer', async () => {
  const random = randomFrom(SEED + 1);
  const {
    hosts: [host],
    actions,
  } = hostsOf(1);
  for (let round = 0; round < 200; round++) {
    const before = actions.count;
    const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 5 } });
    const { id } = await onlyPending(host, sessionId);
    const works = [
      () => answerOutcome(host, { id, approved: true, by: 'ada' }),
      () => host.resume(turnId).then(({ status }) => status),
      () => host.resume(turnId).then(({ status }) => status),
      () => answerOutcome(host, { id, approved: false, by: 'bob' }),
    ];
    const outcomes = await Promise.all(random.shuffle(works).map((work) => work()));
    const { status } = await host.resume(turnId);
    const [signal] = ofType(await host.archive.entries(sessionId), 'signal.received');
    const approved = JSON.stringify(signal?.value).includes('"approved":true');
    expect(outcomes.filter((outcome) => outcome === 'accepted')).toHaveLength(1);
    expect([status, actions.count - before]).toEqual(approved ? ['ok', 1] : ['error', 0]);
  }
});

verifies('approval.once', 'a concurrent cancel always wins over an answer', async () => {
  const random = randomFrom(SEED + 2);
  const {
    hosts: [host],
    actions,
  } = hostsOf(1);
  for (let round = 0; round < 200; round++) {
    const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 5 } });
    const { id } = await onlyPending(host, sessionId);
    const works = [() => answerOutcome(host, { id, approved: true, by: 'ada' }), () => host.cancel(turnId, 'stop')];
    await Promise.all(random.shuffle(works).map((work) => work()));
    expect(await host.resume(turnId)).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } });
    expect(actions.count).toBe(0);
    expect(await host.replay(turnId)).toMatchObject({ matches: true });
  }
});
