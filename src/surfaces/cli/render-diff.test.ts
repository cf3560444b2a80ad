import { expect } from 'vitest';
import { nestedEvents, ragTrace, TraceBuilder } from '../../../spec/support/trace-builder.mjs';
import { verifies } from '../../../spec/verifies.js';
import { diffTurns } from '../../views/turn-diff.js';
import { renderDiff } from './render-diff.js';
import { widthOf } from './terminal-text.js';

const PLAIN = { color: false, width: 80 };

function changedTrace(): TraceBuilder {
  const builder = new TraceBuilder()
    .begin('t2', 'rag', '1.1.0')
    .begin('t2/0', 'expand')
    .begin('t2/0/0', 'ask')
    .done('t2/0/0')
    .done('t2/0');
  builder.begin('t2/1', 'retrieve', '1.2.0').tool('t2/1', 'vector-search', 12).done('t2/1');
  builder.begin('t2/2', 'answer', '2.0.1').model('t2/2', 2100, { model: 'gpt-4o-mini', input: 1204, output: 280 });
  return builder.done('t2/2').done('t2');
}

verifies('cli.tree', 'the differences of two turns are rendered call by call', () => {
  const ends = {
    a: { status: 'ok', output: { answer: 'Paris', sources: [1, 2] } },
    b: { status: 'ok', output: { answer: 'Lyon', sources: [1] } },
  };
  expect(renderDiff(diffTurns(ragTrace().events, changedTrace().events, ends), PLAIN).split('\n')).toEqual([
    '~ rag',
    '    version  1.0.0 → 1.1.0',
    '  - rerank /1  only in the first turn',
    '  ~ answer /2',
    '      model       openai/gpt-4o → openai/gpt-4o-mini',
    '      tokens out  310 → 280',
    '      duration    830 ms → 2.10 s',
    '  + expand /0  only in the second turn, 2 calls',
    'output',
    '  /answer  "Paris" → "Lyon"',
    '  /sources/1  2 → (none)',
    '3 calls in both · 2 differ · 1 only in the first · 2 only in the second ·',
    'different output',
  ]);
});

verifies('cli.tree', 'equal turns are reported as equal', () => {
  const { events } = ragTrace();
  const end = { status: 'ok', output: 1 };
  expect(renderDiff(diffTurns(events, events, { a: end, b: end }), PLAIN)).toBe(
    '4 calls in both · same output · no difference',
  );
  const slow = new TraceBuilder().begin('a', 'x').after(400).done('a').events;
  const fast = new TraceBuilder().begin('a', 'x').after(4).done('a').events;
  expect(renderDiff(diffTurns(slow, fast), PLAIN).split('\n')).toEqual([
    '~ x',
    '    duration  400 ms → 4 ms',
    '1 call in both · 1 differs · only times differ',
  ]);
});

verifies('cli.tree', 'a rendered difference cannot control the terminal and is never wider', () => {
  const builder = new TraceBuilder().begin('t', 'evil\u001b[2J', '1\n2').fail('t', 'BAD', `\u202e${'x'.repeat(5000)}`);
  const ends = { a: { status: 'ok', output: { 'k\u0007': 'v' } }, b: { status: 'error\u009b' } };
  for (const [a, b] of [
    [ragTrace().events, builder.events],
    [nestedEvents(60), []],
    [nestedEvents(60), nestedEvents(20)],
  ] as const) {
    const text = renderDiff(diffTurns(a, b, ends), { color: false, width: 40 });
    for (const line of text.split('\n')) {
      expect(widthOf(line)).toBeLessThanOrEqual(40);
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
    }
  }
});
