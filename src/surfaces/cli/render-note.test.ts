import { expect } from 'vitest';
import { TraceBuilder } from '../../../spec/support/trace-builder.mjs';
import { verifies } from '../../../spec/verifies.js';
import { renderTree } from './render-tree.js';

/** Renders a call with these events. */
function linesOf(events: readonly (readonly [string, object])[], full = false): readonly string[] {
  const builder = new TraceBuilder().begin('t1', 'order');
  for (const [type, payload] of events) builder.write('t1', type, payload);
  return renderTree(builder.done('t1').events, { color: false, width: 60, full })
    .split('\n')
    .slice(1, -1)
    .map((line) => line.trim());
}

verifies('cli.tree', 'sleeps, signals and approvals are notes in words, and internal events are left out', () => {
  const answer = { id: 's.1:a', by: 'ada', at: '2026-11-17T14:32:15.000Z' };
  const lines = linesOf([
    ['rondo.round.begun', { round: 1 }],
    ['rondo.inbox.read', { count: 0 }],
    ['rondo.timer.fired', { durationMs: 2000 }],
    ['rondo.signal.received', { name: 'paid', durationMs: 5, payload: { amount: 5 } }],
    ['rondo.approval.requested', { id: 's.1:a' }],
    ['rondo.approval.answered', { ...answer, approved: true }],
    ['rondo.approval.answered', { ...answer, approved: false, reason: 'no' }],
    ['rondo.approval.granted', { id: 's.1:a' }],
  ]);
  expect(lines).toEqual([
    'slept 2.00 s',
    'received signal paid {"amount":5}',
    'approval requested: s.1:a',
    'approved by ada at 2026-11-17T14:32:15.000Z',
    'denied by ada at 2026-11-17T14:32:15.000Z: no',
    'approved by the standing grant of s.1:a',
  ]);
});

verifies('cli.inspect', 'a full tree shortens no note, no error and no payload, and drops none', () => {
  const message = 'word '.repeat(1000).trim();
  const id = 'x'.repeat(300);
  const events: [string, object][] = [
    ['log', { level: 'info', message }],
    ['rondo.approval.requested', { id }],
    ['acme.note', { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 'y'.repeat(200) }],
    ...Array.from({ length: 400 }, (_, i): [string, object] => ['log', { level: 'info', message: `line ${i}.` }]),
  ];
  const text = linesOf(events, true).join(' ');
  expect(text.match(/word/g)).toHaveLength(1000);
  expect(text.match(/x/g)).toHaveLength(300);
  expect(text.match(/y/g)).toHaveLength(200);
  for (const part of ['g=7', 'line 0.', 'line 399.']) expect(text).toContain(part);
  expect(text).not.toContain('…');
  expect(linesOf(events).join(' ')).toContain('…');
});
