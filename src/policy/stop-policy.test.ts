import fc from 'fast-check';
import { expect } from 'vitest';
import { counter } from '../../spec/support/hosted-fixture.js';
import { verifies } from '../../spec/verifies.js';
import type { HostedLoopDocument, StopPolicy, TurnRetry } from '../protocol/hosted-loop.js';
import type { Json } from '../protocol/json.js';
import { type EndedTurnFacts, isTerminal, stopAfterTurn, stopBeforeTurn, valueAt } from './stop-policy.js';

const NOW = Date.UTC(2026, 0, 5);
const later = (ms: number): string => new Date(NOW + ms).toISOString();

/** A successful turn after which nothing stops a loop that may have ten. */
const FACTS: EndedTurnFacts = {
  ...{ turns: 1, now: NOW, status: 'ok', output: { done: false, sure: 0.1 } },
  ...{ wasDenied: false, unchanged: 0, failures: 0 },
};
const FAILED: Partial<EndedTurnFacts> = { status: 'error', output: undefined, code: 'TOOL_FAILED', failures: 1 };

const policy = (stop: Partial<StopPolicy>, retry?: TurnRetry): HostedLoopDocument =>
  counter({ stop: { maxTurns: 10, ...stop }, ...(retry && { retry }) });

const reasonOf = (stop: Partial<StopPolicy>, facts: Partial<EndedTurnFacts> = {}, retry?: TurnRetry) =>
  stopAfterTurn(policy(stop, retry), { ...FACTS, ...facts })?.reason;

const SURE = { confidence: { path: '$.sure', atLeast: 0.9 } };
const DONE = { terminal: { path: '$.done', equals: true } };
const RETRY = { maxFailures: 3 };

type Row = readonly [
  reason: string | undefined,
  stop: Partial<StopPolicy>,
  facts?: Partial<EndedTurnFacts>,
  retry?: TurnRetry,
];
const rows: readonly Row[] = [
  [undefined, {}],
  ['max_turns', {}, { turns: 10 }],
  ['max_turns', {}, { turns: 11 }],
  ['max_turns', {}, { turns: Number.NaN }],
  [undefined, {}, { turns: 9 }],
  ['deadline', { deadline: later(0) }],
  ['deadline', { deadline: later(-1) }],
  ['deadline', { deadline: 'no time' }],
  [undefined, { deadline: later(1) }],
  ['approval', {}, { wasDenied: true }],
  ['approval', { approval: 'denied' }, { wasDenied: true }],
  ['approval', { approval: 'pending' }, { wasDenied: true }],
  [undefined, { approval: 'ignore' }, { wasDenied: true }],
  ['turn_failed', { approval: 'ignore' }, { ...FAILED, wasDenied: true }],
  ['turn_failed', {}, FAILED],
  ['turn_failed', {}, { ...FAILED, status: 'cancelled' }],
  ['turn_failed', {}, { ...FAILED, status: 'stopped' }],
  [undefined, {}, { ...FAILED, failures: 2 }, RETRY],
  ['turn_failed', {}, { ...FAILED, failures: 3 }, RETRY],
  ['terminal', DONE, { output: { done: true } }],
  [undefined, DONE, { output: { done: 'true' } }],
  [undefined, DONE, { output: {} }],
  [undefined, DONE, { output: null }],
  [undefined, DONE, { ...FAILED, output: { done: true } }, RETRY],
  ['terminal', { terminal: { path: '$.done', equals: null } }, { output: { done: null } }],
  [undefined, { terminal: { path: '$.done', equals: null } }, { output: {} }],
  ['confidence', SURE, { output: { sure: 0.9 } }],
  [undefined, SURE, { output: { sure: 0.89 } }],
  ['confidence', SURE, { output: {} }],
  ['confidence', SURE, { output: { sure: '0.1' } }],
  ['confidence', SURE, { output: { sure: null } }],
  ['confidence', SURE, { output: { sure: [0.1] } }],
  ['confidence', SURE, { output: undefined }],
  [undefined, SURE, FAILED, RETRY],
  ['no_progress', { noProgress: 2 }, { unchanged: 2 }],
  [undefined, { noProgress: 2 }, { unchanged: 1 }],
  [undefined, {}, { unchanged: 99 }],
];

for (const [reason, stop, facts = {}, retry] of rows)
  verifies(
    'hosted.stops',
    `${JSON.stringify(stop)} after ${JSON.stringify(facts)}${retry ? ' with a retry' : ''}: ${reason ?? 'goes on'}`,
    async () => expect(reasonOf(stop, facts, retry)).toBe(reason),
  );

verifies('hosted.stops', 'the conditions are reported in a fixed order, what a person decided first', async () => {
  const output = { done: true, sure: 1 };
  const all = { ...DONE, ...SURE, noProgress: 1, deadline: later(0) };
  const facts = { output, unchanged: 1, turns: 10 };
  expect(reasonOf(all, { ...facts, wasDenied: true, failures: 1 })).toBe('approval');
  expect(reasonOf(all, { ...facts, ...FAILED })).toBe('turn_failed');
  expect(reasonOf(all, facts)).toBe('terminal');
  expect(reasonOf(all, { ...facts, output: { sure: 1 } })).toBe('confidence');
  expect(reasonOf(all, { ...facts, output: { sure: 0 } })).toBe('no_progress');
  expect(reasonOf(all, { ...facts, output: { sure: 0 }, unchanged: 0 })).toBe('max_turns');
  expect(reasonOf(all, { output: { sure: 0 } })).toBe('deadline');
});

verifies('hosted.stops', 'before a turn, only the maximum of turns and the deadline stop', async () => {
  const document = policy({ ...DONE, ...SURE, noProgress: 1, deadline: later(5) });
  expect(stopBeforeTurn(document, { turns: 9, now: NOW + 4 })).toBeUndefined();
  expect(stopBeforeTurn(document, { turns: 10, now: NOW })?.reason).toBe('max_turns');
  expect(stopBeforeTurn(document, { turns: 9, now: NOW + 5 })?.reason).toBe('deadline');
});

verifies('hosted.stops', 'a path that selects several values, or none, has no value', async () => {
  expect(valueAt({ a: [{ b: 1 }] }, '$.a[0].b')).toBe(1);
  expect(valueAt({ a: [{ b: 1 }] }, '$.a[*].b')).toBeUndefined();
  expect(valueAt({ a: 1 }, '$.b')).toBeUndefined();
  expect(valueAt(undefined, '$')).toBeUndefined();
  expect(valueAt({}, '$.constructor')).toBeUndefined();
  expect(isTerminal({ path: '$.a', equals: { b: 1, c: 2 } }, { status: 'ok', output: { a: { c: 2, b: 1 } } })).toBe(
    true,
  );
});

const conditions = fc.record(
  {
    deadline: fc.constantFrom(later(-1), later(1)),
    approval: fc.constantFrom<'denied' | 'pending'>('denied', 'pending'),
    confidence: fc.constant(SURE.confidence),
    terminal: fc.constant(DONE.terminal),
    noProgress: fc.integer({ min: 1, max: 4 }),
  },
  { requiredKeys: [] },
);
const outputs: fc.Arbitrary<Json | undefined> = fc.option(
  fc.record({ done: fc.jsonValue() as fc.Arbitrary<Json>, sure: fc.jsonValue() as fc.Arbitrary<Json> }),
  { nil: undefined },
);
const anyFacts: fc.Arbitrary<EndedTurnFacts> = fc.record({
  turns: fc.integer({ min: 1, max: 12 }),
  now: fc.constant(NOW),
  status: fc.constantFrom('ok', 'error', 'stopped', 'cancelled'),
  output: outputs,
  wasDenied: fc.boolean(),
  unchanged: fc.integer({ min: 0, max: 5 }),
  failures: fc.integer({ min: 0, max: 5 }),
});

verifies(
  'hosted.stops',
  'a further condition can only stop a loop; none lets one go on that stops without it',
  async () => {
    fc.assert(
      fc.property(conditions, conditions, anyFacts, (some, more, facts) => {
        const fewer = stopAfterTurn(policy(some), facts);
        const all = stopAfterTurn(policy({ ...more, ...some }), facts);
        if (fewer !== undefined) expect(all, 'a further condition lets the loop go on').toBeDefined();
      }),
    );
  },
);

verifies(
  'hosted.stops',
  'no output of a turn, whatever it contains, lets a loop have more turns than its maximum',
  async () => {
    fc.assert(
      fc.property(conditions, anyFacts, (some, facts) => {
        expect(stopAfterTurn(policy(some), { ...facts, turns: 10 })).toBeDefined();
      }),
    );
  },
);
