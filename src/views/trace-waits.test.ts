import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Entry } from '../protocol/entry.js';
import type { TraceEvent } from '../protocol/trace.js';
import { traceOf } from './trace.js';
import { treeOf } from './trace-tree.js';

/** Returns the vendor events of a call of this kind with these entries, one millisecond apart. */
function vendorEventsOf(bodyKind: string | undefined, drafts: readonly Omit<Entry, 'seq' | 'at'>[]): TraceEvent[] {
  const started = { type: 'call.started', key: 't', name: 'x', version: '1.0.0', bodyKind };
  const entries = [started, ...drafts].map((draft, seq) => ({ ...draft, seq, at: seq }) as Entry);
  return traceOf('t', entries).filter(({ type }) => type.startsWith('rondo.'));
}

const started = { callId: 't', ts: '1970-01-01T00:00:00.000Z', type: 'call.started', payload: { loopId: 'x' } };
const effectOpened = { type: 'effect.opened', key: 't/0', kind: 'tool', name: 'pay' };
const timer = (key: string) => [
  { type: 'timer.set', key, until: 2000, value: 2000 },
  { type: 'timer.fired', key },
];
const wait = (key: string, name: string, value?: Entry['value']) => [
  { type: 'wait.opened', key, name },
  { type: 'wait.settled', key, signalId: 'i', value },
];

verifies('lsem.5.body', 'the sleep and the signals of a code body are events of its call', () => {
  const entries = [...timer('t/0'), ...wait('t/1/0/0', 'paid', { amount: 5 }), ...wait('t/2', 'go')];
  expect(vendorEventsOf('code', entries)).toMatchObject([
    { callId: 't', type: 'rondo.wait.opened', payload: { key: 't/0', until: '1970-01-01T00:00:02.000Z' } },
    { callId: 't', type: 'rondo.timer.fired', payload: { key: 't/0', durationMs: 1 } },
    { type: 'rondo.wait.opened', payload: { key: 't/1/0/0', signal: 'paid' } },
    { type: 'rondo.signal.received', payload: { name: 'paid', durationMs: 1, payload: { amount: 5 } } },
    { type: 'rondo.wait.opened', payload: { signal: 'go' } },
    { type: 'rondo.signal.received', payload: { name: 'go', durationMs: 1 } },
  ]);
  expect(vendorEventsOf('agent', entries)).toEqual([]);
});

verifies('lsem.5.body', 'of the waits of layers, only an approval has an event, which names who answered', () => {
  const answer = { approved: false, by: 'ada', at: 7, reason: 'no' };
  const entries = [effectOpened, ...timer('t/0/0'), ...wait('t/0/1', 'approval t:a', answer)];
  const settled = { type: 'effect.settled', key: 't/0', error: { code: 'E', message: 'm' } };
  const events = vendorEventsOf('code', [...entries, settled, ...timer('t/0/2')]);
  expect(events).toMatchObject([
    {
      type: 'rondo.approval.answered',
      payload: { id: 't:a', approved: false, by: 'ada', reason: 'no', at: '1970-01-01T00:00:00.007Z' },
    },
    { type: 'rondo.wait.opened' },
    { type: 'rondo.timer.fired' },
  ]);
});

verifies('lsem.5.body', 'a branch that waits when its race is lost stops waiting in the trace', () => {
  const opened = [
    { type: 'wait.opened', key: 't/0/0/0', name: 'paid' },
    { type: 'timer.set', key: 't/0/1/0', until: 2000, value: 2000 },
  ];
  const entries = [
    ...opened,
    { type: 'timer.fired', key: 't/0/1/0' },
    { type: 'race.won', key: 't/0', winnerIndex: 1 },
  ];
  const events = vendorEventsOf('code', entries);
  expect(events.slice(2)).toMatchObject([
    { type: 'rondo.timer.fired' },
    { callId: 't', type: 'rondo.wait.cancelled', payload: { key: 't/0/0/0' } },
  ]);
  const notesAfter = (count: number) => treeOf([started, ...events.slice(0, count)])?.notes.map(({ kind }) => kind);
  expect(notesAfter(2)).toEqual(['waiting', 'waiting']);
  expect(notesAfter(3)).toEqual(['waiting', 'slept']);
  expect(notesAfter(4)).toEqual(['slept']);
});

verifies('lsem.5.body', 'a call that a standing grant approved names the approval that gave it', () => {
  const gate = (verdict: object) => [
    { type: 'effect.requested', key: 't/0/0', kind: 'gate', name: 'pay' },
    { type: 'effect.returned', key: 't/0/0', value: { ...verdict } },
  ];
  const granted = gate({ verdict: 'granted', grant: 's.1:a' });
  expect(vendorEventsOf(undefined, [effectOpened, ...granted])).toMatchObject([
    { type: 'rondo.approval.granted', payload: { id: 's.1:a' } },
  ]);
  expect(vendorEventsOf(undefined, [effectOpened, ...gate({ verdict: 'waived' })])).toEqual([]);
});
