// Bad answers by the thousand, each of a kind that must be refused for its own reason, and a world to try them on.

import type { Host } from '../../src/host/host.js';
import type { Approval, ApprovalAnswer } from '../../src/protocol/approval.js';
import type { EventEnvelope } from '../../src/protocol/events.js';
import type { TurnResult } from '../../src/protocol/trace.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { ASK, Deeds, type Dice, gate, onlyPending, shownIds, ticks } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { agentDef, told as telling } from '../support/scripted-agents.js';

/** Approvals in every state that one can be in, and nothing done yet. */
export interface World {
  readonly host: Host;
  readonly deeds: Deeds;
  /** Waits while its turn runs, and may be answered by ada or bob. */
  readonly live: Approval;
  /** Waits while nobody is at its turn. */
  readonly paused: Approval;
  /** Answered, and waits for somebody to go on with it. */
  readonly answered: Approval;
  /** Of a turn that was denied and has ended. */
  readonly ended: Approval;
  /** Of a turn that was cancelled. */
  readonly cancelled: Approval;
  readonly expired: Approval;
  /** Lets the turn that runs come to its end. */
  finish(): Promise<TurnResult>;
}

const MONTH = 30 * 86_400_000;

async function pausedIn(host: Host, sessionId: string, input: object): Promise<Approval> {
  await host.run({ loop: 'wrap', input, sessionId });
  return onlyPending(host, sessionId);
}

export async function worldOf(seed: number): Promise<World> {
  const clock = new ManualClock(1_000_000);
  const deeds = new Deeds();
  const held = gate();
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
    tools: { act: deeds.act, hold: () => held.passed },
    backends: [telling(replies)],
  });
  const expired = await pausedIn(host, 'expired', { amount: 1 });
  await clock.advance(MONTH + 1);
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
  // Whatever is taken or refused in a session makes all that came before it durable.
  await host.answer({ id, approved: true, by: 'agent:first' }).catch(() => {});
  const live = await onlyPending(host, 'live');
  return {
    host,
    deeds,
    live,
    paused,
    answered,
    ended,
    cancelled,
    expired,
    finish: () => {
      held.open();
      return running;
    },
  };
}

/** A bad answer, and the reason that it must be refused for. */
export interface Forged {
  readonly answer: unknown;
  readonly reason: RegExp;
}

const NO_SUCH = /^there is no such approval$/;
const LETTERS = 'abcdefXYZ0189_-.:/ \u0000\u202e\u200bé漢😀\ud800';

function gibberish(dice: Dice, length: number): string {
  return Array.from({ length }, () => dice.pick([...LETTERS])).join('');
}

/** The text with one character of it changed. */
function bent(dice: Dice, text: string): string {
  const place = dice.below(text.length);
  const other = dice.pick([...'ABCxyz019'].filter((letter) => letter !== text[place]));
  return `${text.slice(0, place)}${other}${text.slice(place + 1)}`;
}

function forgedId(dice: Dice, { live, paused, expired }: World): string {
  const digest = live.id.slice(live.id.lastIndexOf(':') + 1);
  return dice.pick([
    () => gibberish(dice, 1 + dice.below(60)),
    () => live.id.slice(0, 1 + dice.below(live.id.length - 1)),
    () => `${live.id}${dice.pick(['0', ' ', '\u0000', '\u200b', ':'])}`,
    () => ` ${live.id}`,
    () => bent(dice, live.id),
    () => `${paused.turnId}:${digest}`,
    () => `${expired.turnId}:${digest}`,
    () => `nowhere.${dice.below(1000)}:${digest}`,
    () => `${live.id.toUpperCase()}`,
    () => `${live.sessionId}.other:${digest}`,
    () => `../${live.id}`,
    () => `approval ${live.id}`,
  ])();
}

const NO_PREDICATE = /written predicate|does not cover this call|cannot give a standing grant/;

/** Grants that are for everything, for something else, or nothing that can be read. */
const VOID: readonly unknown[] = [
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

/** The right answer, as it stands, to be made wrong in one place. */
function right({ live }: World): ApprovalAnswer {
  const { id, sessionId, callId, tool, argumentsDigest } = live;
  return { id, approved: true, by: 'ada', sessionId, callId, tool, argumentsDigest };
}

type Forger = (dice: Dice, world: World) => Forged;

const FORGERS: readonly Forger[] = [
  (dice, world) => ({
    answer: { id: forgedId(dice, world), approved: dice.random() < 0.8, by: 'ada' },
    reason: NO_SUCH,
  }),
  (dice, world) => ({ answer: { ...right(world), id: forgedId(dice, world) }, reason: NO_SUCH }),
  (_, world) => ({ answer: { ...right(world), id: world.paused.id }, reason: /^its sessionId does not match$/ }),
  (_, world) => {
    const { sessionId: _own, ...rest } = right(world);
    return { answer: { ...rest, id: world.paused.id }, reason: /^its (callId|argumentsDigest) does not match$/ };
  },
  (dice, world) => {
    const callId = dice.pick([world.paused.callId, bent(dice, world.live.callId), '', `${world.live.callId}/0`]);
    return { answer: { ...right(world), callId }, reason: /^its callId does not match$/ };
  },
  (dice, world) => {
    const argumentsDigest = dice.pick([bent(dice, world.live.argumentsDigest), world.paused.argumentsDigest, '']);
    return { answer: { ...right(world), argumentsDigest }, reason: /^its argumentsDigest does not match$/ };
  },
  (dice, world) => {
    const tool = dice.pick(['wrap', 'hold', 'Pay', 'pay ', '', '__proto__', '*']);
    return { answer: { ...right(world), tool }, reason: /^its tool does not match$/ };
  },
  (dice, world) => {
    const by = dice.pick([
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
    return { answer: { ...right(world), by }, reason: /may not answer it$/ };
  },
  (dice, world) => {
    const by = dice.pick(['boss', 'wrap', 'pay', 'agent:', 'agent:boss', 'agent:ada']);
    return { answer: { ...right(world), by }, reason: /^an agent may not answer for itself$/ };
  },
  (dice, { answered, ended }) => {
    const answer = {
      id: dice.pick([answered, ended]).id,
      approved: dice.random() < 0.5,
      by: dice.pick(['ada', 'bob']),
    };
    return { answer, reason: /^it was answered before$/ };
  },
  (dice, { expired }) => {
    const answer = { id: expired.id, approved: dice.random() < 0.5, by: 'ada' };
    return { answer, reason: /^it expired at / };
  },
  (dice, { cancelled }) => {
    const answer = { id: cancelled.id, approved: dice.random() < 0.5, by: 'ada' };
    return { answer, reason: /^its turn no longer waits for it$/ };
  },
  (dice, world) => ({ answer: { ...right(world), standing: dice.pick(VOID) }, reason: NO_PREDICATE }),
  (_, world) => {
    const standing = { const: world.live.arguments };
    return { answer: { ...right(world), approved: false, standing }, reason: NO_PREDICATE };
  },
];

/** Those of the kinds above that are tried on a turn that runs: none of them has to read a journal. */
const QUICK: readonly Forger[] = FORGERS.filter((_, place) => [4, 5, 6, 7, 8, 12, 13].includes(place));

/** One bad answer; most of them are for the turn that runs. */
export function forge(dice: Dice, world: World): Forged {
  return dice.pick(dice.random() < 0.75 ? QUICK : FORGERS)(dice, world);
}

/** What is no answer at all. */
export function malformed({ live: { id } }: World): readonly unknown[] {
  const good = { id, approved: true, by: 'ada' };
  return [
    ...[null, undefined, 5, 'yes', true, [], [good], {}, () => good],
    ...[{ id }, { id, approved: true }, { approved: true, by: 'ada' }, { id, by: 'ada' }],
    ...['true', 1, 'yes', null, {}, undefined].map((approved) => ({ ...good, approved })),
    ...['', '  ', 5, null, undefined, ['ada'], { toString: () => 'ada' }].map((by) => ({ ...good, by })),
    ...['', 5, null, [id], { id }].map((other) => ({ ...good, id: other })),
    ...['sessionId', 'callId', 'tool', 'argumentsDigest', 'reason'].map((member) => ({ ...good, [member]: 5 })),
    { ...good, reason: 'x'.repeat(4001) },
    { ...good, by: 'x'.repeat(4001) },
    { ...good, approve: true },
    { ...good, arguments: {} },
    JSON.parse(`{"id":${JSON.stringify(id)},"approved":true,"by":"ada","__proto__":{"by":"bob"}}`),
  ];
}
