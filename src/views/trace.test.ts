import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Entry } from '../protocol/entry.js';
import { traceOf } from './trace.js';

/** Returns the events of these entries as `callId type`, without the validation of inputs. */
function eventsOf(drafts: readonly Omit<Entry, 'seq' | 'at'>[]): readonly string[] {
  const entries = drafts.map((draft, seq) => ({ ...draft, seq, at: 1000 + seq }) as Entry);
  return traceOf('t', entries)
    .filter(({ type }) => type !== 'call.input.validated')
    .map(({ callId, type }) => `${callId} ${type}`);
}

const callStarted = (key: string) => ({ type: 'call.started', key, name: 'x', version: '1.0.0' });
const toolRequested = (key: string) => ({ type: 'effect.requested', key, kind: 'tool', name: 'x' });
const toolReturned = (key: string) => ({
  type: 'effect.returned',
  key,
  value: { output: 1, notes: [{ type: 'a.b' }] },
});

verifies('lsem.5.tool', 'the late response of a call that lost a race has no event', () => {
  const call = 't/0/0/0';
  const raceWon = { type: 'race.won', key: 't/0', winnerIndex: 1 };
  const events = eventsOf([
    callStarted('t'),
    callStarted(call),
    toolRequested(`${call}/0`),
    raceWon,
    toolReturned(`${call}/0`),
  ]);
  expect(events).toEqual([
    't call.started',
    't child.started',
    `${call} call.started`,
    `${call} call.tool.invoked`,
    `${call} call.errored`,
    't child.completed',
  ]);
});

verifies('lsem.5.transition', 'a call that ends before its child first ends the child', () => {
  const callErrored = { type: 'call.errored', error: { code: 'SCOPE_BUSY', message: 'm' } };
  const events = eventsOf([
    callStarted('t'),
    callStarted('t/0'),
    { ...callErrored, key: 't' },
    { ...callErrored, key: 't/0' },
  ]);
  expect(events).toEqual([
    't call.started',
    't child.started',
    't/0 call.started',
    't/0 call.errored',
    't child.completed',
    't call.errored',
  ]);
});

const callOfKind = (key: string, bodyKind: string, name = 'x') => ({ ...callStarted(key), name, bodyKind });
const modelRequested = (key: string) => ({ type: 'effect.requested', key, kind: 'model', name: 'mock', value: {} });

verifies('lsem.5.body', 'an effect of a code body is traced as rondo.effect, whatever kind and name it has', () => {
  const effects = ['tool', 'model', 'http'].flatMap((kind, index) => [
    { type: 'effect.requested', key: `t/${index}`, kind, name: 'x' },
    { type: 'effect.returned', key: `t/${index}`, value: { notes: 7 } },
  ]);
  const effectFailed = { type: 'effect.failed', key: 't/3', error: { code: 'E', message: 'm' } };
  const events = eventsOf([
    callOfKind('t', 'code'),
    ...effects,
    toolRequested('t/3'),
    effectFailed,
    { type: 'call.completed', key: 't' },
  ]);
  expect(events).toEqual([
    't call.started',
    ...Array(3).fill(['t rondo.effect.requested', 't rondo.effect.returned']).flat(),
    't rondo.effect.requested',
    't rondo.effect.failed',
    't call.output.validated',
    't call.completed',
  ]);
});

verifies(
  'lsem.5.body',
  'the gate of a prompt has no tool events, and the first model request is the request of the prompt',
  () => {
    const events = eventsOf([
      callOfKind('t', 'prompt'),
      toolRequested('t/0'),
      toolReturned('t/0'),
      modelRequested('t/1'),
    ]);
    expect(events).toEqual([
      't call.started',
      't rondo.effect.requested',
      't rondo.effect.returned',
      't call.backend.requested',
    ]);
  },
);

verifies('lsem.5.body', 'a call that an earlier version recorded is traced as a tool or a prompt', () => {
  const otherEffect = { type: 'effect.requested', key: 't/1', kind: 'tool', name: 'other' };
  expect(eventsOf([callStarted('t'), toolRequested('t/0'), toolReturned('t/0'), otherEffect])).toEqual([
    't call.started',
    't call.tool.invoked',
    't a.b',
    't call.tool.returned',
    't rondo.effect.requested',
  ]);
  expect(eventsOf([callStarted('t'), modelRequested('t/0')])).toEqual(['t call.started', 't call.backend.requested']);
});

verifies('lsem.5.body', 'an effect that ends after its call has no event', () => {
  const call = 't/0/0/0';
  const raceWon = { type: 'race.won', key: 't/0', winnerIndex: 1 };
  const effectFailed = { type: 'effect.failed', key: `${call}/0`, error: { code: 'E', message: 'm' } };
  const events = eventsOf([
    callOfKind('t', 'code'),
    callOfKind(call, 'code'),
    toolRequested(`${call}/0`),
    raceWon,
    effectFailed,
  ]);
  expect(events.filter((event) => event.includes('effect'))).toEqual([`${call} rondo.effect.requested`]);
});

verifies('lsem.6.call.started', 'the payload of each event describes its own call, even if payloads are shared', () => {
  const child = fc.record({
    loop: fc.constantFrom('a', 'b'),
    version: fc.constantFrom('1.0.0', '2.0.0'),
    validationMs: fc.nat(1),
    runMs: fc.nat(2),
    deep: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(child, { maxLength: 12 }), (children) => {
      let at = 1000;
      const entries: Entry[] = [{ ...callStarted('t'), seq: 0, at }];
      const expected = children.map(({ loop, version, validationMs, runMs, deep }, index) => {
        const key = deep ? `t/${index}/0/${index}` : `t/${index}`;
        entries.push({ ...callStarted(key), name: loop, version, validationMs, seq: 0, at: at + validationMs });
        at += validationMs + runMs;
        entries.push({ type: 'call.completed', key, validationMs: 0, seq: 0, at });
        return [
          { loopId: loop, loopVersion: version, parentCallId: 't' },
          { durationMs: validationMs },
          { durationMs: 0 },
          { totalDurationMs: validationMs + runMs },
        ];
      });
      const events = traceOf('t', entries).filter(({ callId }) => callId !== 't');
      expect(events.map(({ payload }) => payload)).toEqual(expected.flat());
    }),
  );
});
