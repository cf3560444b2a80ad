import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Entry } from '../protocol/entry.js';
import { traceOf } from './trace.js';

/** The events of these entries as `callId type`, without those of the input. */
function told(entries: readonly Omit<Entry, 'seq' | 'at'>[]): readonly string[] {
  const placed = entries.map((entry, seq) => ({ ...entry, seq, at: 1000 + seq }) as Entry);
  return traceOf('t', placed)
    .filter(({ type }) => type !== 'call.input.validated')
    .map(({ callId, type }) => `${callId} ${type}`);
}

const started = (key: string) => ({ type: 'call.started', key, name: 'x', version: '1.0.0' });
const asked = (key: string) => ({ type: 'effect.requested', key, kind: 'tool', name: 'x' });
const answered = (key: string) => ({ type: 'effect.returned', key, value: { output: 1, notes: [{ type: 'a.b' }] } });

verifies('lsem.5.tool', 'the late answer of a call that lost a race becomes an answer of the call around it', () => {
  const call = 't/0/0/0';
  const late = { type: 'race.won', key: 't/0', winner: 1 };
  const events = told([started('t'), started(call), asked(`${call}/0`), late, answered(`${call}/0`)]);
  expect(events).toEqual([
    't call.started',
    't child.started',
    `${call} call.started`,
    `${call} call.tool.invoked`,
    `${call} call.errored`,
    't child.completed',
  ]);
});

verifies('lsem.5.transition', 'a call that ends before the child it did not wait for has no last event', () => {
  const failed = { type: 'call.errored', error: { code: 'SCOPE_BUSY', message: 'm' } };
  const events = told([started('t'), started('t/0'), { ...failed, key: 't' }, { ...failed, key: 't/0' }]);
  expect(events).toEqual([
    't call.started',
    't child.started',
    't/0 call.started',
    't/0 call.errored',
    't child.completed',
    't call.errored',
  ]);
});
