import fc from 'fast-check';
import { expect } from 'vitest';
import { nestedEvents, ragTrace, stepsOf, TraceBuilder, wideEvents } from '../../spec/support/trace-builder.mjs';
import { verifies } from '../../spec/verifies.js';
import { canonicalJson } from '../json/canonical.js';
import type { Json } from '../protocol/json.js';
import type { TraceEvent } from '../protocol/trace.js';
import { diffTurns, type OutputDiff } from './turn-diff.js';

const ok = (output: Json) => ({ status: 'ok', output });

function outputDiffs(a: Json, b: Json): readonly OutputDiff[] | undefined {
  const { events } = ragTrace();
  return diffTurns(events, events, { a: ok(a), b: ok(b) }).output?.differs;
}

verifies('cli.tree', 'two turns that did the same have no differences', () => {
  const a = ragTrace().events;
  expect(diffTurns(a, a)).toEqual({ same: true, shared: 4, calls: [] });
  const other = new TraceBuilder()
    .begin('t9', 'rag')
    .begin('t9/0', 'retrieve', '1.2.0')
    .tool('t9/0', 'vector-search', 40)
    .done('t9/0');
  other.begin('t9/1', 'rerank').model('t9/1', 420, { input: 812, output: 96 }).done('t9/1');
  other.begin('t9/2', 'answer', '2.0.1').model('t9/2', 830, { model: 'gpt-4o', input: 1204, output: 310 }).done('t9/2');
  expect(diffTurns(a, other.done('t9').events, { a: ok({ x: [1] }), b: ok({ x: [1] }) })).toEqual({
    same: true,
    shared: 4,
    calls: [],
    output: { differs: [], more: false },
  });
});

verifies('cli.tree', 'differences in version, status, error, model, tokens and duration are reported', () => {
  const other = new TraceBuilder()
    .begin('t2', 'rag', '1.1.0')
    .begin('t2/0', 'retrieve', '1.2.0')
    .tool('t2/0', 'vector-search', 12)
    .done('t2/0');
  other.begin('t2/1', 'rerank').model('t2/1', 900, { model: 'gpt-4o', input: 812, output: 120 }).done('t2/1');
  other.begin('t2/2', 'answer', '2.0.1').requestModel('t2/2', { model: 'gpt-4o' }).fail('t2/2', 'TIMEOUT', 'Too slow.');
  const diff = diffTurns(ragTrace().events, other.fail('t2', 'TIMEOUT', 'Too slow.').events);
  expect(diff).toMatchObject({ same: false, shared: 4 });
  expect(diff.calls).toEqual([
    {
      ...{ loopId: 'rag', path: '', depth: 0, calls: 1 },
      changes: [
        { what: 'version', a: '1.0.0', b: '1.1.0' },
        { what: 'status', a: 'ok', b: 'error' },
        { what: 'error', a: '', b: 'TIMEOUT: Too slow.' },
      ],
    },
    {
      ...{ loopId: 'rerank', path: '/1', depth: 1, calls: 1 },
      changes: [
        { what: 'model', a: 'openai/gpt-4o-mini', b: 'openai/gpt-4o' },
        { what: 'outputTokens', a: 96, b: 120 },
        { what: 'durationMs', a: 398, b: 900 },
      ],
    },
    {
      ...{ loopId: 'answer', path: '/2', depth: 1, calls: 1 },
      changes: [
        { what: 'status', a: 'ok', b: 'error' },
        { what: 'error', a: '', b: 'TIMEOUT: Too slow.' },
        { what: 'inputTokens', a: 1204, b: 0 },
        { what: 'outputTokens', a: 310, b: 0 },
        { what: 'durationMs', a: 830, b: 0 },
      ],
    },
  ]);
});

verifies('cli.tree', 'an inserted step leaves the steps after it matched', () => {
  const other = new TraceBuilder()
    .begin('u', 'rag')
    .begin('u/0', 'expand')
    .begin('u/0/0', 'ask')
    .done('u/0/0')
    .done('u/0');
  other.begin('u/1', 'retrieve', '1.2.0').tool('u/1', 'vector-search', 12).done('u/1');
  other.begin('u/2', 'answer', '2.0.1').model('u/2', 830, { model: 'gpt-4o', input: 1204, output: 310 }).done('u/2');
  const { shared, calls } = diffTurns(ragTrace().events, other.done('u').events);
  expect(shared).toBe(3);
  expect(calls).toEqual([
    { loopId: 'rerank', path: '/1', depth: 1, only: 'a', calls: 1, changes: [] },
    { loopId: 'expand', path: '/0', depth: 1, only: 'b', calls: 2, changes: [] },
  ]);
});

verifies('cli.tree', 'calls whose ids are not paths are aligned by position', () => {
  const rename = (events: readonly TraceEvent[], ids: ReadonlyMap<string, string>): TraceEvent[] =>
    JSON.parse(JSON.stringify(events), (_, value) => (typeof value === 'string' ? (ids.get(value) ?? value) : value));
  const names = ['t1', 't1/0', 't1/1', 't1/2'];
  const foreign = (side: string) => rename(ragTrace().events, new Map(names.map((id, i) => [id, `${side}-${7 * i}`])));
  expect(diffTurns(foreign('x'), foreign('y'))).toEqual({ same: true, shared: 4, calls: [] });
  expect(diffTurns([], foreign('y'))).toMatchObject({ same: false, shared: 0, calls: [{ only: 'b', calls: 4 }] });
  expect(diffTurns([], [])).toEqual({ same: true, shared: 0, calls: [] });
});

verifies('cli.tree', 'a paused turn differs from an ended one', () => {
  const { events } = ragTrace();
  const { calls } = diffTurns(events, events, { a: ok(1), b: { status: 'paused' } });
  expect(calls[0]?.changes).toEqual([{ what: 'status', a: 'ok', b: 'paused' }]);
});

verifies('cli.tree', 'every difference of the outputs has its JSON pointer and both values', () => {
  expect(outputDiffs({ a: 1 }, { a: 1 })).toEqual([]);
  expect(outputDiffs({ 'a/b~': [1, { x: null }], gone: 1, same: {} }, { 'a/b~': [1, { x: 0 }, 3], same: {} })).toEqual([
    { path: '/a~1b~0/1/x', a: 'null', b: '0' },
    { path: '/a~1b~0/2', b: '3' },
    { path: '/gone', a: '1' },
  ]);
  expect(outputDiffs([1], { 0: 1 })).toEqual([{ path: '', a: '[1 items]', b: '{0}' }]);
  expect(outputDiffs('x'.repeat(500), `${'x'.repeat(499)}y`)).toEqual([
    { path: '', a: `"…${'x'.repeat(21)}"`, b: `"…${'x'.repeat(20)}y"` },
  ]);
  const proto = (value: number): Json => JSON.parse(`{"__proto__": ${value}, "toString": ${value}}`);
  expect(outputDiffs(proto(1), proto(2))?.map(({ path }) => path)).toEqual(['/__proto__', '/toString']);
});

verifies('cli.tree', 'reported differences are bounded, and outputs deeper than the call stack are compared', () => {
  const { events } = ragTrace();
  const list = (n: number): Json => Array.from({ length: 1000 }, () => n);
  const { output } = diffTurns(events, events, { a: ok(list(1)), b: ok(list(2)) });
  expect(output?.differs).toHaveLength(20);
  expect(output?.more).toBe(true);
  const nested = (inner: Json): Json => {
    let value = inner;
    for (let i = 0; i < 50_000; i++) value = [value];
    return value;
  };
  expect(outputDiffs(nested(1), nested(2))?.[0]?.path).toHaveLength(100_000);
});

verifies('cli.tree', 'outputs have a difference exactly if their canonical JSON differs', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const left = JSON.parse(JSON.stringify(a));
      const right = JSON.parse(JSON.stringify(b));
      expect(outputDiffs(left, structuredClone(left))).toEqual([]);
      expect(outputDiffs(left, right)?.length === 0).toBe(canonicalJson(left) === canonicalJson(right));
    }),
    { numRuns: 500 },
  );
});

verifies('cli.tree', 'the cost of a comparison is linear in the number of calls', () => {
  for (const make of [nestedEvents, wideEvents]) {
    const [small, large] = [make(100), make(1000)];
    const steps = (events: readonly TraceEvent[]) => stepsOf(() => diffTurns(events, events.slice(0, -3)));
    expect(steps(large) / steps(small)).toBeCloseTo(large.length / small.length, 0);
  }
  const many = wideEvents(20_000);
  expect(diffTurns(many, many).shared).toBe(20_001);
});
