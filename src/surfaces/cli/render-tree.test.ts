import fc from 'fast-check';
import { expect } from 'vitest';
import {
  nestedEvents,
  price,
  ragTrace,
  stepsOf,
  TraceBuilder,
  wideEvents,
} from '../../../spec/support/trace-builder.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { type RenderTreeOptions, renderTree } from './render-tree.js';
import { widthOf } from './terminal-text.js';

/** Checks the lines of the rendered tree. */
function expectTree(
  events: Iterable<TraceEvent>,
  lines: readonly string[],
  options: Partial<RenderTreeOptions> = {},
): void {
  expect(renderTree(events, { color: false, width: 80, ...options }).split('\n')).toEqual(lines);
}

verifies('cli.tree', 'a single prompt is rendered in one line', () => {
  const builder = new TraceBuilder().begin('t1', 'hello').model('t1', 430, { input: 812, output: 96 }).done('t1');
  expectTree(builder.events, ['✓ hello@1.0.0  gpt-4o-mini 812→96 tok  430 ms', '1 call · 812→96 tok · 430 ms']);
  expectTree(
    builder.events,
    ['✓ hello@1.0.0  gpt-4o-mini 812→96 tok  $0.0002  430 ms', '1 call · 812→96 tok · $0.0002 · 430 ms'],
    {
      price,
    },
  );
});

verifies('cli.tree', 'the steps, costs and durations of a composite are aligned', () => {
  expectTree(
    ragTrace().events,
    [
      '✓ rag@1.0.0                                         1.24 s',
      '├─ ✓ retrieve@1.2.0  vector-search                   12 ms',
      '├─ ✓ rerank@1.0.0  gpt-4o-mini 812→96 tok  $0.0002  398 ms',
      '└─ ✓ answer@2.0.1  gpt-4o 1,204→310 tok    $0.0061  830 ms',
      '4 calls · 2,016→406 tok · $0.0063 · 1.24 s',
    ],
    { price },
  );
});

verifies('cli.tree', 'a failure deep in the tree is shown once, where it happened', () => {
  const message =
    'Too many requests wait for the rate limit of "crawl"; ask again later, or raise the limit in its policy.';
  const builder = new TraceBuilder().begin('t1', 'report').begin('t1/0', 'collect').begin('t1/0/0', 'fetch');
  builder
    .tool('t1/0/0', 'exec:./crawl', 2400)
    .done('t1/0/0')
    .begin('t1/0/1', 'fetch')
    .write('t1/0/1', 'call.tool.invoked', { toolName: 'exec:./crawl' });
  builder.after(120_600).fail('t1/0/1', 'TOOL_FAILED', message).fail('t1/0', 'TOOL_FAILED', message);
  expectTree(builder.after(3).fail('t1', 'MAPPING_FAILED', '$.pages found nothing.').events, [
    '✗ report@1.0.0                     2 m 03 s',
    '│ MAPPING_FAILED  $.pages found nothing.',
    '└─ ✗ collect@1.0.0                 2 m 03 s',
    '   ├─ ✓ fetch@1.0.0  exec:./crawl    2.40 s',
    '   └─ ✗ fetch@1.0.0  exec:./crawl  2 m 01 s',
    '        TOOL_FAILED  Too many requests wait for the rate limit of "crawl"; ask',
    '        again later, or raise the limit in its policy.',
    '4 calls · 2 m 03 s',
  ]);
});

verifies('cli.tree', 'cache hits, retries, fallbacks and rate limits are shown', () => {
  const builder = new TraceBuilder().begin('t1', 'pair').begin('t1/0', 'ask').requestModel('t1/0').after(100);
  builder
    .write('t1/0', 'rondo.retry', { attempt: 1, code: 'BACKEND_FAILED', delayMs: 200 })
    .after(200)
    .requestModel('t1/0')
    .after(100);
  builder
    .write('t1/0', 'rondo.retry', { attempt: 2, code: 'BACKEND_FAILED', delayMs: 400 })
    .after(400)
    .requestModel('t1/0')
    .after(100);
  builder.write('t1/0', 'rondo.backend.fallback', { from: 'openai', to: 'mock', code: 'BACKEND_FAILED' });
  builder.model('t1/0', 2, { backendId: 'mock', model: 'mock' }).done('t1/0');
  builder.begin('t1/1', 'ask').write('t1/1', 'rondo.cache.read', { key: 'k', hit: true, value: {} }).done('t1/1');
  builder
    .begin('t1/2', 'ask')
    .write('t1/2', 'rondo.rate.waited', { name: 'openai', delayMs: 1500 })
    .after(1500)
    .model('t1/2', 10);
  expectTree(builder.done('t1/2').done('t1').events, [
    '✓ pair@1.0.0                          2.41 s',
    '├─ ✓ ask@1.0.0  mock ×4 12→8 tok      902 ms',
    '│    retry 1 after 200 ms (BACKEND_FAILED)',
    '│    retry 2 after 400 ms (BACKEND_FAILED)',
    '│    fell back to mock',
    '├─ ✓ ask@1.0.0                          0 ms',
    '│    from cache',
    '└─ ✓ ask@1.0.0  gpt-4o-mini 12→8 tok  1.51 s',
    '     waited 1.50 s for the rate limit',
    '4 calls · 24→16 tok · 2.41 s',
  ]);
});

verifies('cli.tree', 'log messages of a body are shown in chronological order', () => {
  const builder = new TraceBuilder()
    .begin('t1', 'job')
    .log('t1', 'info', 'two pages')
    .begin('t1/0', 'page')
    .log('t1/0', 'debug', 'small')
    .after(5);
  builder
    .done('t1/0')
    .log('t1', 'warn', 'the first is empty')
    .begin('t1/1', 'page')
    .done('t1/1')
    .log('t1', 'error', 'so is the other');
  expectTree(builder.write('t1', 'acme.index.built', { pages: 2, kind: 'flat' }).done('t1').events, [
    '✓ job@1.0.0      5 ms',
    '│ info   two pages',
    '├─ ✓ page@1.0.0  5 ms',
    '│    debug  small',
    '│ warn   the first is empty',
    '└─ ✓ page@1.0.0  0 ms',
    '  error  so is the other',
    '  acme.index.built pages=2 kind=flat',
    '3 calls · 5 ms',
  ]);
});

verifies('cli.tree', 'an incomplete trace is shown as not finished', () => {
  const builder = new TraceBuilder().begin('t1', 'rag').begin('t1/0', 'retrieve').tool('t1/0', 'find', 8).done('t1/0');
  builder
    .begin('t1/1', 'answer')
    .requestModel('t1/1')
    .write('t1', 'child.started', { childCallId: 't1/2', loopId: 'cite', stepIndex: 2 });
  expectTree(builder.events, [
    '● rag@1.0.0',
    '├─ ✓ retrieve@1.0.0  find       8 ms',
    '├─ ● answer@1.0.0  gpt-4o-mini',
    '└─ … cite',
    '4 calls · not finished',
  ]);
  expectTree([], ['no calls']);
});

verifies('cli.tree', 'a total with unknown prices is shown as a lower bound', () => {
  const builder = new TraceBuilder()
    .begin('t1', 'two')
    .begin('t1/0', 'a')
    .model('t1/0', 1, { input: 1e6, output: 0 })
    .done('t1/0');
  builder.begin('t1/1', 'b').model('t1/1', 1, { backendId: 'own', model: 'm' }).done('t1/1').done('t1');
  expect(renderTree(builder.events, { color: false, width: 80, price })).toContain('· at least $0.1500 ·');
});

verifies('cli.tree', 'hostile names and messages are escaped', () => {
  const builder = new TraceBuilder()
    .begin('t1', '\u001b[2Jevil\u202e', '1\n2')
    .begin('t1/0', 'x'.repeat(10_000), '9'.repeat(10_000));
  builder.tool('t1/0', 'a\u0007b', 1).log('t1/0', '\u001b[31m', 'one\ntwo\u200b').fail('t1/0', 'BAD\r', '\u009b2J');
  const long = `${'x'.repeat(64)}…@999999999…`;
  expectTree(
    builder.done('t1').events,
    [
      `✓ \\x1b[2Jevil\\u202e@1⏎2${' '.repeat(60)}1 ms`,
      `└─ ✗ ${long}  1 ms`,
      '     BAD\\r  \\x9b2J',
      '     \\x1b[31m  one⏎two\\u200b',
      '2 calls · 1 ms',
    ],
    { width: 87 },
  );
});

verifies('cli.tree', 'the tree is coloured on a terminal', () => {
  const builder = new TraceBuilder().begin('t1', 'hello').model('t1', 4).done('t1');
  expect(renderTree(builder.events, { color: true, width: 80 }).split('\n')[0]).toBe(
    '\u001b[32m✓\u001b[39m \u001b[1mhello\u001b[22m\u001b[2m@1.0.0\u001b[22m  \u001b[36mgpt-4o-mini\u001b[39m\u001b[2m 12→8 tok\u001b[22m  4 ms',
  );
});

verifies('cli.tree', 'the names of a deep tree stay visible', () => {
  const lines = renderTree(nestedEvents(1000), { color: false, width: 80 }).split('\n');
  expect(lines).toHaveLength(1001);
  expect(lines[12]).toBe(`${' '.repeat(33)}└─ ✓ inner@1.0.0      0 ms`);
  expect(lines[13]).toBe(`${' '.repeat(36)}13 ✓ inner@1.0.0   0 ms`);
  expect(lines[999]).toBe(`${' '.repeat(36)}999 ✓ inner@1.0.0  0 ms`);
});

verifies('cli.tree', 'a failed call stays visible among many siblings', () => {
  const builder = new TraceBuilder().begin('t', 'all');
  for (let i = 0; i < 50; i++) builder.begin(`t/${i}`, `n${i}`);
  for (let i = 0; i < 49; i++) i === 7 ? builder.fail('t/7', 'TIMEOUT', 'Too slow.') : builder.done(`t/${i}`);
  expectTree(
    builder.events,
    [
      '● all@1.0.0',
      '├─ … 46 more ok',
      '├─ ✗ n7@1.0.0   0 ms',
      '│    TIMEOUT  Too slow.',
      '├─ ✓ n47@1.0.0  0 ms',
      '├─ ✓ n48@1.0.0  0 ms',
      '└─ ● n49@1.0.0',
      '51 calls · not finished',
    ],
    { max: 4 },
  );
  expect(renderTree(builder.events, { color: false, width: 80 }).split('\n')).toHaveLength(53);
});

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom('東京', '😀', '\u001b[2J', 'x'.repeat(9000)),
);
const id = fc.oneof(fc.constantFrom('t', 't/0', 't/1', 't/0/0', 't/0/0/0'), text);
const payload = fc.record(
  {
    loopId: text,
    loopVersion: text,
    parentCallId: id,
    childCallId: id,
    stepIndex: fc.integer(),
    status: fc.constantFrom('ok', 'error'),
    code: text,
    message: text,
    level: text,
    backendId: text,
    model: text,
    toolName: text,
    inputTokens: fc.double(),
    outputTokens: fc.double(),
    totalDurationMs: fc.double(),
    delayMs: fc.double(),
    attempt: fc.double(),
    to: text,
  },
  { requiredKeys: [] },
);
const types = [
  ...new Set(ragTrace().events.map(({ type }) => type)),
  'call.errored',
  'log',
  'rondo.retry',
  'rondo.backend.fallback',
];
const event = fc.record({
  callId: id,
  ts: fc.oneof(fc.constant('2026-01-01T00:00:00.000Z'), text),
  type: fc.oneof(fc.constantFrom(...types), text),
  payload: fc.oneof(payload, fc.anything()),
});

verifies('cli.tree', 'any trace is rendered without errors, overlong lines or control characters', () => {
  const widths = fc.integer({ min: 1, max: 130 });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), widths, fc.boolean(), (events, width, hasPrices) => {
      const tree = renderTree(events, { color: false, width, max: 3, ...(hasPrices && { price: () => 1 }) });
      for (const line of tree.split('\n')) {
        expect(widthOf(line)).toBeLessThanOrEqual(width);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\s$/u);
      }
    }),
    { numRuns: 500 },
  );
});

verifies('cli.tree', 'rendering takes linear time and does not overflow the stack', () => {
  const draw = (events: readonly TraceEvent[]) => () => renderTree(events, { color: false, width: 100, price });
  for (const make of [nestedEvents, wideEvents]) {
    const [small, large] = [make(200), make(2000)];
    expect(stepsOf(draw(large)) / stepsOf(draw(small))).toBeCloseTo(large.length / small.length, 0);
  }
  const events = wideEvents(20_000);
  expect(events.length).toBeGreaterThan(100_000);
  expect(draw(events)().split('\n')).toHaveLength(40_002);
});
