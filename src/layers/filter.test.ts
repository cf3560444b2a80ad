import { expect } from 'vitest';
import { deferred, kernelFixture, run, ticks } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { FilterSpec } from '../protocol/loop.js';
import { ManualClock } from '../testing/manual-clock.js';
import { inputFilterLayer, outputFilterLayer } from './filter.js';

const SECRET = 'sk-12345';
const KEY: FilterSpec = { pattern: 'sk-[0-9]+' };

interface FilterOptions {
  readonly before?: readonly FilterSpec[];
  readonly after?: readonly FilterSpec[];
  readonly kind?: string;
  readonly clock?: Clock;
}

const request = (prompt: string, more: object = {}) => ({
  backendId: 'a',
  model: 'm',
  promptLength: prompt.length,
  prompt,
  ...more,
});

/** Performs an effect with this input and this result under filters. Returns the inputs that were sent, and the outcome. */
async function filtered(input: unknown, result: unknown, options: FilterOptions) {
  const { kind = 'model', clock = new ManualClock(), before = [], after = [] } = options;
  const k = kernelFixture();
  const sent: Json[] = [];
  const perform: Effect['perform'] = (received) => {
    sent.push(received);
    if (result instanceof Error) throw result;
    return result;
  };
  const session = await k.open({ layers: [inputFilterLayer(before, clock), outputFilterLayer(after, clock)] });
  const outcome = await run(session, (scope) => scope.effect({ ...k.effect('a', 'idempotent', perform, input), kind }));
  return { sent, outcome, error: outcome.status === 'error' ? outcome.error : undefined };
}

verifies('policy.filter', 'a secret in a prompt or a system prompt is refused and not sent', async () => {
  const refused = [request(`use ${SECRET}`), request('hello', { system: SECRET })];
  for (const input of refused) {
    const { sent, error } = await filtered(input, null, { before: [{ ...KEY, reason: 'keys stay here' }] });
    expect(sent).toEqual([]);
    expect(error).toMatchObject({ code: 'CONTENT_REFUSED', data: { stage: 'before', reason: 'keys stay here' } });
    expect(JSON.stringify(error)).not.toContain(SECRET);
  }
  const twin = await filtered(refused[0], null, {});
  expect(JSON.stringify(twin.sent)).toContain(SECRET);
});

verifies('policy.filter', 'the length of a redacted prompt is updated', async () => {
  const before = [{ ...KEY, action: 'redact' as const }];
  const input = request(`a ${SECRET} b ${SECRET}`, { system: `c ${SECRET}`, options: { header: SECRET } });
  const { sent } = await filtered({ ...input, promptLength: input.prompt.length + 10 }, null, { before });
  const prompt = 'a [redacted] b [redacted]';
  const promptLength = prompt.length + 'c [redacted]'.length;
  expect(sent).toEqual([{ ...input, prompt, system: 'c [redacted]', promptLength }]);
});

verifies('policy.filter', 'a replacement is inserted literally, without references to the match', async () => {
  const before = [{ ...KEY, action: 'redact' as const, replacement: '$&$0$1' }];
  const { sent } = await filtered(request(`😀 ${SECRET} 😀`), null, { before });
  expect(sent).toMatchObject([{ prompt: '😀 $&$0$1 😀' }]);
});

verifies(
  'policy.filter',
  'a nested secret in the input of a tool is redacted, and member names are unchanged',
  async () => {
    const before = [{ ...KEY, action: 'redact' as const }];
    const input = { list: [1, { text: SECRET }], constructor: SECRET, model: SECRET, [SECRET]: true };
    const { sent } = await filtered(input, null, { before, kind: 'tool' });
    const clean = '[redacted]';
    expect(sent).toEqual([{ list: [1, { text: clean }], constructor: clean, model: clean, [SECRET]: true }]);
    const scalar = await filtered(SECRET, undefined, { before, after: before, kind: 'tool' });
    expect(scalar).toMatchObject({ sent: [clean], outcome: { status: 'ok', output: undefined } });
  },
);

verifies(
  'policy.filter',
  'a secret in a reply is redacted, and the ids and names of tool calls are unchanged',
  async () => {
    const after = [{ ...KEY, action: 'redact' as const }];
    const calls = [{ id: SECRET, name: SECRET, input: `{"key":"${SECRET}"}` }];
    const reply = { text: SECRET, model: SECRET, finish: 'stop', reasoning: SECRET, toolCalls: calls };
    const { outcome } = await filtered(request('hi'), reply, { after });
    const clean = '[redacted]';
    const toolCalls = [{ id: SECRET, name: SECRET, input: `{"key":"${clean}"}` }];
    expect(outcome).toEqual({ status: 'ok', output: { ...reply, text: clean, reasoning: clean, toolCalls } });
    const refused = await filtered(request('hi'), reply, { after: [KEY] });
    expect(refused.error).toMatchObject({ code: 'CONTENT_REFUSED', data: { stage: 'after' } });
    expect(JSON.stringify(refused.error)).not.toContain(SECRET);
  },
);

verifies('policy.filter', 'the error of a tool is filtered like its output', async () => {
  const thrown = new LoopError('TOOL_FAILED', `bad key ${SECRET}`, { stderr: [SECRET] });
  const { error } = await filtered(null, thrown, { after: [{ ...KEY, action: 'redact' }], kind: 'tool' });
  expect(error).toMatchObject({ code: 'TOOL_FAILED', message: 'bad key [redacted]', data: { stderr: ['[redacted]'] } });
  const refused = await filtered(null, thrown, { after: [KEY], kind: 'tool' });
  expect(refused.error?.code).toBe('CONTENT_REFUSED');
  const other = await filtered(null, new LoopError('TOOL_FAILED', 'disk full'), { after: [KEY], kind: 'tool' });
  expect(other.error).toMatchObject({ code: 'TOOL_FAILED', message: 'disk full' });
});

verifies('policy.filter', 'a cancellation is not filtered', async () => {
  const k = kernelFixture();
  const session = await k.open({ layers: [outputFilterLayer([{ pattern: 'cancelled' }], k.clock)] });
  const pending = deferred();
  const codes: unknown[] = [];
  const running = run(session, async (scope) => {
    const work = scope.effect(k.effect('slow', 'idempotent', () => pending.promise));
    return work.catch((error: LoopError) => codes.push(error.code));
  });
  await ticks();
  await session.cancel('t1', 'enough');
  expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(codes).toEqual(['CANCELLED']);
  pending.resolve(null);
  await session.close();
});

verifies('policy.filter', 'each filter sees the output of the one before it', async () => {
  const before: FilterSpec[] = [
    { ...KEY, action: 'redact', replacement: 'KEY' },
    { pattern: 'sk' },
    { pattern: 'KEYS' },
  ];
  expect((await filtered(request(SECRET), null, { before })).sent).toMatchObject([{ prompt: 'KEY' }]);
  expect((await filtered(request(`${SECRET}S`), null, { before })).error?.code).toBe('CONTENT_REFUSED');
});

verifies('policy.filter', 'an invalid pattern is DEFINITION_INVALID, and nothing is sent', async () => {
  const invalid = ['(', '(a)\\1', '(?<=a)b', 'a*', '', 'x'.repeat(1001), '((a{1000}){1000})', 7, null];
  for (const pattern of invalid) {
    for (const stage of ['before', 'after']) {
      const filters = { [stage]: [{ pattern: pattern as string }] };
      const { sent, error } = await filtered(request('hi'), { text: 'hi' }, filters);
      expect([sent, error?.code], String(pattern)).toEqual([[], 'DEFINITION_INVALID']);
    }
  }
});

verifies('policy.filter', 'an unknown action refuses the content', async () => {
  const before = [{ ...KEY, action: 'mask' as 'redact' }];
  expect((await filtered(request(SECRET), null, { before })).error?.code).toBe('CONTENT_REFUSED');
});

verifies(
  'policy.filter',
  'text that causes catastrophic backtracking elsewhere is matched in linear time or refused',
  async () => {
    const started = performance.now();
    const hostile = `${'a'.repeat(500_000)}!`;
    const before = ['(a+)+$', '(a|aa)+$', '(.*)*x'].map((pattern) => ({ pattern }));
    expect((await filtered(request(hostile), null, { before })).error).toBeUndefined();
    const wide = await filtered(request(`${'ab'.repeat(150_000)}c`), null, { before: [{ pattern: 'a[ab]{900}c' }] });
    expect([wide.sent, wide.error?.code]).toEqual([[], 'CONTENT_REFUSED']);
    expect(performance.now() - started).toBeLessThan(15_000);
  },
);

verifies('policy.filter', 'text with many expensive matches is refused after a time limit', async () => {
  let reads = 0;
  const ticking: Clock = { now: () => 0, elapsed: () => 50 * reads++, sleep: () => Promise.resolve() };
  const before: FilterSpec[] = [{ pattern: 'a(?s:.*)c|b', action: 'redact' }];
  const { sent, error } = await filtered(request('ab'.repeat(1000)), null, { before, clock: ticking });
  expect([sent, error?.code]).toEqual([[], 'CONTENT_REFUSED']);
  expect(error?.message).toContain('too long');
});

verifies('policy.filter', 'content that is too large, or becomes too large by replacements, is refused', async () => {
  const large = 'x'.repeat(4 * 1024 * 1024);
  const split = await filtered(request(large, { system: 'y' }), null, { before: [KEY] });
  expect([split.sent, split.error?.code]).toEqual([[], 'CONTENT_REFUSED']);
  const replacement = 'z'.repeat(100_000);
  const expanded = await filtered(request('x'.repeat(1000)), null, {
    before: [{ pattern: 'x', action: 'redact', replacement }],
  });
  expect([expanded.sent, expanded.error?.code]).toEqual([[], 'CONTENT_REFUSED']);
});
