import fc from 'fast-check';
import { expect } from 'vitest';
import { nestedEvents, price, ragTrace, stepsOf, TraceBuilder, wideEvents } from '../../spec/support/trace-builder.mjs';
import { verifies } from '../../spec/verifies.js';
import type { TraceEvent } from '../protocol/trace.js';
import { type CallNode, TraceTree, totalsOf, treeOf } from './trace-tree.js';

function treeFrom(events: Iterable<TraceEvent>): CallNode {
  const root = treeOf(events, { price });
  if (root === undefined) throw new Error('There is no call.');
  return root;
}

verifies('cli.tree', 'a tree has the callers, the usage and the durations of its calls', () => {
  const root = treeFrom(ragTrace().events);
  expect(root).toMatchObject({
    callId: 't1',
    loopId: 'rag',
    kind: 'composite',
    status: 'ok',
    durationMs: 1240,
    depth: 0,
  });
  expect(root.children.map(({ loopId, kind, stepIndex, depth }) => ({ loopId, kind, stepIndex, depth }))).toEqual([
    { loopId: 'retrieve', kind: 'tool', stepIndex: 0, depth: 1 },
    { loopId: 'rerank', kind: 'prompt', stepIndex: 1, depth: 1 },
    { loopId: 'answer', kind: 'prompt', stepIndex: 2, depth: 1 },
  ]);
  expect(root.children[0]?.toolName).toBe('vector-search');
  expect(root.children[1]?.backend).toMatchObject({
    model: 'gpt-4o-mini',
    inputTokens: 812,
    outputTokens: 96,
    attempts: 1,
  });
  expect(totalsOf(root)).toMatchObject({ calls: 4, inputTokens: 2016, outputTokens: 406, unpricedTokens: 0 });
  expect(totalsOf(root).costMicros).toBeCloseTo(179.4 + 6110);
});

verifies('cli.tree', 'each response is priced by the model of its request', () => {
  const builder = new TraceBuilder()
    .begin('t', 'ask')
    .model('t', 5, { input: 100, output: 0 })
    .model('t', 5, { backendId: 'x', model: 'y' });
  const { backend } = treeFrom(builder.done('t').events);
  expect(backend).toMatchObject({ backendId: 'x', attempts: 2, inputTokens: 112, costMicros: 15, unpricedTokens: 20 });
});

verifies('cli.tree', 'the running totals equal the totals of the tree', () => {
  const tree = new TraceTree({ price });
  for (const event of ragTrace().events) {
    tree.apply(event);
    if (tree.root !== undefined) expect(tree.totals).toEqual(totalsOf(tree.root));
  }
  expect(tree.totals.calls).toBe(4);
});

verifies('cli.tree', 'retries, fallbacks, cache hits, delays, logs and vendor events are notes of the call', () => {
  const builder = new TraceBuilder().begin('t', 'ask');
  builder.write('t', 'rondo.retry', { attempt: 1, code: 'TIMEOUT', delayMs: 200 });
  builder.write('t', 'rondo.backend.fallback', { from: 'a', to: 'b', code: 'TIMEOUT' });
  builder
    .write('t', 'rondo.cache.read', { key: 'k', hit: false })
    .write('t', 'rondo.cache.read', { hit: true, value: {} });
  builder.write('t', 'rondo.rate.waited', { name: 'a', delayMs: 0 }).write('t', 'rondo.rate.waited', { delayMs: 30 });
  builder.begin('t/0', 'inner').done('t/0').log('t', 'info', 'after').write('t', 'org.x', { a: 1, deep: {}, b: 'two' });
  expect(treeFrom(builder.events).notes).toEqual([
    { before: 0, kind: 'retry', attempt: 1, code: 'TIMEOUT', delayMs: 200 },
    { before: 0, kind: 'fallback', to: 'b' },
    { before: 0, kind: 'cached' },
    { before: 0, kind: 'held', delayMs: 30 },
    { before: 1, kind: 'log', level: 'info', message: 'after' },
    { before: 1, kind: 'event', type: 'org.x', facts: 'a=1 b=two' },
  ]);
});

verifies('cli.tree', 'a call keeps a bounded number of notes, the newest included', () => {
  const builder = new TraceBuilder().begin('t', 'chatty');
  for (let i = 0; i < 10_050; i++) builder.log('t', 'info', `line ${i}`);
  const { notes, droppedNotes } = treeFrom(builder.events);
  expect(notes.length + droppedNotes).toBe(10_050);
  expect(notes.length).toBeLessThan(200);
  expect(notes.at(-1)).toMatchObject({ message: 'line 10049' });
});

verifies('cli.tree', 'a truncated trace has a tree whose unfinished calls are running', () => {
  const { events } = ragTrace();
  for (let cut = 1; cut < events.length; cut++) {
    expect(treeFrom(events.slice(0, cut)).status).toBe('running');
    const withoutStart = treeFrom(events.slice(cut));
    expect(totalsOf(withoutStart).calls).toBeGreaterThan(0);
  }
  const builder = new TraceBuilder()
    .begin('t', 'outer')
    .write('t', 'child.started', { childCallId: 't/0', loopId: 'inner', stepIndex: 0 });
  expect(treeFrom(builder.events).children[0]).toMatchObject({
    loopId: 'inner',
    loopVersion: undefined,
    status: 'running',
  });
  builder.after(7).write('t', 'child.completed', { childCallId: 't/0', status: 'error' });
  expect(treeFrom(builder.events).children[0]).toMatchObject({ status: 'error', durationMs: 7 });
});

verifies('cli.tree', 'later events do not change a call that has ended', () => {
  const builder = ragTrace().log('t1/0', 'info', 'late').fail('t1', 'CANCELLED', 'late').begin('t1', 'another');
  const root = treeFrom(builder.events);
  expect(root).toMatchObject({ loopId: 'rag', status: 'ok', error: undefined });
  expect(root.children[0]?.notes).toEqual([]);
});

verifies('cli.tree', 'a hostile trace cannot create cycles or pollute a prototype', () => {
  const at = '2026-01-01T00:00:00.000Z';
  const started = (callId: string, parentCallId: string): TraceEvent => ({
    callId,
    ts: at,
    type: 'call.started',
    payload: { loopId: '__proto__', loopVersion: '1', parentCallId },
  });
  const root = treeFrom([started('a', 'a'), started('b', 'c'), started('c', 'b'), started('constructor', 'toString')]);
  expect(root.callId).toBe('a');
  expect(totalsOf(root).calls).toBe(4);
  expect(treeOf([])).toBeUndefined();
});

verifies('cli.tree', 'invalid events are ignored', () => {
  const type = fc.oneof(fc.constantFrom(...new Set(ragTrace().events.map((event) => event.type))), fc.string());
  const id = fc.constantFrom('t', 't/0', 't/1', 't/0/0', '');
  const payload = fc.oneof(
    fc.anything(),
    fc.record({
      childCallId: id,
      parentCallId: id,
      inputTokens: fc.double(),
      totalDurationMs: fc.double(),
      status: fc.string(),
    }),
  );
  const event = fc.oneof(fc.anything(), fc.record({ callId: id, ts: fc.string(), type, payload }));
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      const root = treeOf(events as TraceEvent[]);
      if (root === undefined) return;
      const { inputTokens, outputTokens } = totalsOf(root);
      expect(inputTokens + outputTokens).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: 1000 },
  );
});

verifies('cli.tree', 'the cost of an event does not grow with the tree', () => {
  for (const make of [nestedEvents, wideEvents]) {
    const [small, large] = [make(100), make(1000)];
    const smallCost = stepsOf(() => totalsOf(treeFrom(small)));
    const largeCost = stepsOf(() => totalsOf(treeFrom(large)));
    expect(smallCost).toBeGreaterThan(small.length);
    expect(largeCost / smallCost).toBeCloseTo(large.length / small.length, 0);
  }
  // Computing all totals at every event is quadratic, which shows that the count detects such a cost.
  const quadraticCost = (calls: number) =>
    stepsOf(() => {
      const tree = new TraceTree();
      for (const event of wideEvents(calls)) {
        tree.apply(event);
        if (tree.root !== undefined) totalsOf(tree.root);
      }
    });
  expect(quadraticCost(200) / quadraticCost(20)).toBeGreaterThan(50);
  const events = wideEvents(20_000);
  expect(events.length).toBeGreaterThan(100_000);
  expect(treeFrom(events).children).toHaveLength(20_000);
});
