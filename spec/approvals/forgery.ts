// Generates forged answers, each of which must be refused for its own reason, and approvals in every state to try them on.

import type { Host } from '../../src/host/host.js';
import type { Approval, ApprovalAnswer } from '../../src/protocol/approval.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import {
  ASK,
  gate,
  onlyPending,
  type RandomSource,
  RecordedActions,
  shownIds,
  ticks,
} from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';

/** One approval in each state. No tool has run yet. */
export interface ApprovalStates {
  readonly host: Host;
  readonly actions: RecordedActions;
  /** Pending while its turn runs; ada and bob may answer it. */
  readonly live: Approval;
  /** Pending while its turn is paused. */
  readonly paused: Approval;
  /** Answered; its turn is not resumed yet. */
  readonly answered: Approval;
  /** Denied; its turn has ended. */
  readonly ended: Approval;
  /** Its turn was cancelled. */
  readonly cancelled: Approval;
  readonly expired: Approval;
  /** Ends the running turn and returns its result. */
  finish(): Promise<TurnResult>;
}

const EXPIRY_MS = 30 * 86_400_000;

async function pausedIn(host: Host, sessionId: string, input: object): Promise<Approval> {
  await host.run({ loop: 'wrap', input, sessionId });
  return onlyPending(host, sessionId);
}

/** Creates a host with one approval in each state. */
export async function approvalStates(seed: number): Promise<ApprovalStates> {
  const clock = new ManualClock(1_000_000);
  const actions = new RecordedActions();
  const blocker = gate();
  const boss = agentDef('boss', { tools: ['wrap', 'hold'], approvals: { pay: 'ask' } });
  const wrap = composite('wrap', [{ loopId: 'pay', inputMapping: '$.input' }]);
  const replies = [
    {
      calls: [
        ['wrap', { amount: 5, to: 'ada' }],
        ['hold', {}],
      ] as const,
    },
    { text: 'done' },
  ];
  const host = hostOf([tool('pay', 'builtin:act', ASK), tool('hold', 'builtin:hold'), wrap, boss], {
    clock,
    seed,
    tools: { act: actions.act, hold: () => blocker.passed },
    providers: [replyProvider(replies)],
  });
  const expired = await pausedIn(host, 'expired', { amount: 1 });
  await clock.advance(EXPIRY_MS + 1);
  const cancelled = await pausedIn(host, 'cancelled', { amount: 2 });
  await host.cancel(cancelled.turnId, 'enough');
  const answered = await pausedIn(host, 'answered', { amount: 3 });
  await host.answer({ id: answered.id, approved: true, by: 'ada' });
  const ended = await pausedIn(host, 'ended', { amount: 9 });
  await host.answer({ id: ended.id, approved: false, by: 'ada' });
  await host.resume(ended.turnId);
  const paused = await pausedIn(host, 'paused', { amount: 4 });
  const envelopes: EventEnvelope[] = [];
  const options = { onEnvelope: (envelope: EventEnvelope) => void envelopes.push(envelope) };
  const request = { loop: 'boss', input: { prompt: 'pay' }, sessionId: 'live', approvers: ['ada', 'bob'] };
  const running = host.run(request, options);
  await ticks();
  const [id = ''] = shownIds(envelopes);
  // Answering flushes the session: every earlier entry is durable afterwards.
  await host.answer({ id, approved: true, by: 'agent:first' }).catch(() => {});
  const live = await onlyPending(host, 'live');
  return {
    host,
    actions,
    live,
    paused,
    answered,
    ended,
    cancelled,
    expired,
    finish: () => {
      blocker.open();
      return running;
    },
  };
}

/** A forged answer and the expected reason of its refusal. */
interface ForgedAnswer {
  readonly answer: unknown;
  readonly reason: RegExp;
}

const NO_SUCH = /^there is no such approval$/;
const LETTERS = 'abcdefXYZ0189_-.:/ \u0000\u202e\u200bé漢😀\ud800';

function gibberish(random: RandomSource, length: number): string {
  return Array.from({ length }, () => random.pick([...LETTERS])).join('');
}

/** Returns the text with one character changed. */
function alterCharacter(random: RandomSource, text: string): string {
  const index = random.below(text.length);
  const other = random.pick([...'ABCxyz019'].filter((letter) => letter !== text[index]));
  return `${text.slice(0, index)}${other}${text.slice(index + 1)}`;
}

function forgedId(random: RandomSource, { live, paused, expired }: ApprovalStates): string {
  const digest = live.id.slice(live.id.lastIndexOf(':') + 1);
  return random.pick([
    () => gibberish(random, 1 + random.below(60)),
    () => live.id.slice(0, 1 + random.below(live.id.length - 1)),
    () => `${live.id}${random.pick(['0', ' ', '\u0000', '\u200b', ':'])}`,
    () => ` ${live.id}`,
    () => alterCharacter(random, live.id),
    () => `${paused.turnId}:${digest}`,
    () => `${expired.turnId}:${digest}`,
    () => `nowhere.${random.below(1000)}:${digest}`,
    () => `${live.id.toUpperCase()}`,
    () => `${live.sessionId}.other:${digest}`,
    () => `../${live.id}`,
    () => `approval ${live.id}`,
  ])();
}

const NO_PREDICATE = /written predicate|does not cover this call|cannot give a standing grant/;

/** Invalid predicates: for everything, for another call, or malformed. */
const INVALID_PREDICATES: readonly unknown[] = [
  {},
  true,
  false,
  null,
  5,
  'properties',
  [],
  ['const'],
  { type: 'object' },
  { description: 'all of them', title: 'x' },
  { const: { amount: 6, to: 'ada' } },
  { enum: [] },
  { enum: 'all' },
  { properties: 5 },
  { properties: { amount: { maximum: 4 } }, required: ['amount'] },
  { properties: { amount: { pattern: '(' } }, $ref: '#/nowhere' },
  { allOf: [{ $ref: 'https://elsewhere.test/schema' }] },
  { not: {} },
  { not: true },
];

/** Returns a valid answer, which the forgers alter in one member. */
function validAnswer({ live }: ApprovalStates): ApprovalAnswer {
  const { id, sessionId, callId, tool, argumentsDigest } = live;
  return { id, approved: true, by: 'ada', sessionId, callId, tool, argumentsDigest };
}

type Forger = (random: RandomSource, states: ApprovalStates) => ForgedAnswer;

const FORGERS: readonly Forger[] = [
  (random, states) => ({
    answer: { id: forgedId(random, states), approved: random.next() < 0.8, by: 'ada' },
    reason: NO_SUCH,
  }),
  (random, states) => ({ answer: { ...validAnswer(states), id: forgedId(random, states) }, reason: NO_SUCH }),
  (_, states) => ({
    answer: { ...validAnswer(states), id: states.paused.id },
    reason: /^its sessionId does not match$/,
  }),
  (_, states) => {
    const { sessionId: _omitted, ...rest } = validAnswer(states);
    return { answer: { ...rest, id: states.paused.id }, reason: /^its (callId|argumentsDigest) does not match$/ };
  },
  (random, states) => {
    const callId = random.pick([
      states.paused.callId,
      alterCharacter(random, states.live.callId),
      '',
      `${states.live.callId}/0`,
    ]);
    return { answer: { ...validAnswer(states), callId }, reason: /^its callId does not match$/ };
  },
  (random, states) => {
    const argumentsDigest = random.pick([
      alterCharacter(random, states.live.argumentsDigest),
      states.paused.argumentsDigest,
      '',
    ]);
    return { answer: { ...validAnswer(states), argumentsDigest }, reason: /^its argumentsDigest does not match$/ };
  },
  (random, states) => {
    const tool = random.pick(['wrap', 'hold', 'Pay', 'pay ', '', '__proto__', '*']);
    return { answer: { ...validAnswer(states), tool }, reason: /^its tool does not match$/ };
  },
  (random, states) => {
    const by = random.pick([
      'mallory',
      'Ada',
      'ada ',
      'ad',
      'ada,bob',
      'root',
      'a\u0000da',
      '\u202eada',
      '*',
      'toString',
    ]);
    return { answer: { ...validAnswer(states), by }, reason: /may not answer it$/ };
  },
  (random, states) => {
    const by = random.pick(['boss', 'wrap', 'pay', 'agent:', 'agent:boss', 'agent:ada']);
    return { answer: { ...validAnswer(states), by }, reason: /^an agent may not answer for itself$/ };
  },
  (random, { answered, ended }) => {
    const answer = {
      id: random.pick([answered, ended]).id,
      approved: random.next() < 0.5,
      by: random.pick(['ada', 'bob']),
    };
    return { answer, reason: /^it was answered before$/ };
  },
  (random, { expired }) => {
    const answer = { id: expired.id, approved: random.next() < 0.5, by: 'ada' };
    return { answer, reason: /^it expired at / };
  },
  (random, { cancelled }) => {
    const answer = { id: cancelled.id, approved: random.next() < 0.5, by: 'ada' };
    return { answer, reason: /^its turn no longer waits for it$/ };
  },
  (random, states) => ({
    answer: { ...validAnswer(states), standing: random.pick(INVALID_PREDICATES) },
    reason: NO_PREDICATE,
  }),
  (_, states) => {
    const standing = { const: states.live.arguments };
    return { answer: { ...validAnswer(states), approved: false, standing }, reason: NO_PREDICATE };
  },
];

/** The forgers for the running turn. Refusing these answers needs no read of the journal. */
const QUICK: readonly Forger[] = FORGERS.filter((_, index) => [4, 5, 6, 7, 8, 12, 13].includes(index));

/** Returns one forged answer; most are for the running turn. */
export function forge(random: RandomSource, states: ApprovalStates): ForgedAnswer {
  return random.pick(random.next() < 0.75 ? QUICK : FORGERS)(random, states);
}

/** Returns values that are not answers. */
export function malformed({ live: { id } }: ApprovalStates): readonly unknown[] {
  const valid = { id, approved: true, by: 'ada' };
  return [
    ...[null, undefined, 5, 'yes', true, [], [valid], {}, () => valid],
    ...[{ id }, { id, approved: true }, { approved: true, by: 'ada' }, { id, by: 'ada' }],
    ...['true', 1, 'yes', null, {}, undefined].map((approved) => ({ ...valid, approved })),
    ...['', '  ', 5, null, undefined, ['ada'], { toString: () => 'ada' }].map((by) => ({ ...valid, by })),
    ...['', 5, null, [id], { id }].map((other) => ({ ...valid, id: other })),
    ...['sessionId', 'callId', 'tool', 'argumentsDigest', 'reason'].map((member) => ({ ...valid, [member]: 5 })),
    { ...valid, reason: 'x'.repeat(4001) },
    { ...valid, by: 'x'.repeat(4001) },
    { ...valid, approve: true },
    { ...valid, arguments: {} },
    JSON.parse(`{"id":${JSON.stringify(id)},"approved":true,"by":"ada","__proto__":{"by":"bob"}}`),
  ];
}
