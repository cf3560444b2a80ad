import fc from 'fast-check';
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
  const late = { type: 'race.won', key: 't/0', winnerIndex: 1 };
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

const begun = (key: string, bodyKind: string, name = 'x') => ({ ...started(key), name, bodyKind });
const model = (key: string) => ({ type: 'effect.requested', key, kind: 'model', name: 'mock', value: {} });

verifies('lsem.5.body', 'an effect of a code body is traced as rondo.effect, whatever kind and name it has', () => {
  const effects = ['tool', 'model', 'http'].flatMap((kind, index) => [
    { type: 'effect.requested', key: `t/${index}`, kind, name: 'x' },
    { type: 'effect.returned', key: `t/${index}`, value: { notes: 7 } },
  ]);
  const failed = { type: 'effect.failed', key: 't/3', error: { code: 'E', message: 'm' } };
  const events = told([begun('t', 'code'), ...effects, asked('t/3'), failed, { type: 'call.completed', key: 't' }]);
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
  'a prompt that passes an approval gate first has no tool events, and its request is the first one',
  () => {
    const events = told([begun('t', 'prompt'), asked('t/0'), answered('t/0'), model('t/1')]);
    expect(events).toEqual([
      't call.started',
      't rondo.effect.requested',
      't rondo.effect.returned',
      't call.backend.requested',
    ]);
  },
);

verifies('lsem.5.body', 'a call that an earlier version recorded is traced as a tool or as a prompt, as it was', () => {
  const late = { type: 'effect.requested', key: 't/1', kind: 'tool', name: 'other' };
  expect(told([started('t'), asked('t/0'), answered('t/0'), late])).toEqual([
    't call.started',
    't call.tool.invoked',
    't a.b',
    't call.tool.returned',
    't rondo.effect.requested',
  ]);
  expect(told([started('t'), model('t/0')])).toEqual(['t call.started', 't call.backend.requested']);
});

verifies('lsem.5.body', 'an effect that ends after its call was given up leaves no event', () => {
  const call = 't/0/0/0';
  const late = { type: 'race.won', key: 't/0', winnerIndex: 1 };
  const failed = { type: 'effect.failed', key: `${call}/0`, error: { code: 'E', message: 'm' } };
  const events = told([begun('t', 'code'), begun(call, 'code'), asked(`${call}/0`), late, failed]);
  expect(events.filter((event) => event.includes('effect'))).toEqual([`${call} rondo.effect.requested`]);
});

verifies('lsem.6.call.started', 'each event tells of its own call, whichever call came before it', () => {
  const child = fc.record({
    loop: fc.constantFrom('a', 'b'),
    version: fc.constantFrom('1.0.0', '2.0.0'),
    checked: fc.nat(1),
    lasted: fc.nat(2),
    deep: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(child, { maxLength: 12 }), (children) => {
      let at = 1000;
      const entries: Entry[] = [{ ...started('t'), seq: 0, at }];
      const expected = children.map(({ loop, version, checked, lasted, deep }, index) => {
        const key = deep ? `t/${index}/0/${index}` : `t/${index}`;
        entries.push({ ...started(key), name: loop, version, validationMs: checked, seq: 0, at: at + checked });
        at += checked + lasted;
        entries.push({ type: 'call.completed', key, validationMs: 0, seq: 0, at });
        return [
          { loopId: loop, loopVersion: version, parentCallId: 't' },
          { durationMs: checked },
          { durationMs: 0 },
          { totalDurationMs: checked + lasted },
        ];
      });
      const events = traceOf('t', entries).filter(({ callId }) => callId !== 't');
      expect(events.map(({ payload }) => payload)).toEqual(expected.flat());
    }),
  );
});
