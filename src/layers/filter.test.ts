import { expect } from 'vitest';
import { deferred, kernelFixture as kit, run, ticks } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { FilterSpec } from '../protocol/loop.js';
import { ManualClock } from '../testing/manual-clock.js';
import { filterLayer } from './filter.js';

const SECRET = 'sk-12345';
const KEY: FilterSpec = { pattern: 'sk-[0-9]+' };

interface Filtered {
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

/** What was performed, and how the run ended, when `input` is sent and `answer` comes back. */
async function pass(input: unknown, answer: unknown, { kind = 'model', clock, ...filters }: Filtered) {
  const k = kit();
  const sent: Json[] = [];
  const perform: Effect['perform'] = (got) => {
    sent.push(got);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const layers = [filterLayer(filters, clock ?? new ManualClock())];
  const session = await k.open({ layers });
  const outcome = await run(session, (scope) => scope.effect({ ...k.effect('a', 'idempotent', perform, input), kind }));
  return { sent, outcome, error: outcome.status === 'error' ? outcome.error : undefined };
}

verifies('policy.filter', 'a secret leaves in a prompt or a system prompt', async () => {
  const refused = [request(`use ${SECRET}`), request('hello', { system: SECRET })];
  for (const input of refused) {
    const { sent, error } = await pass(input, null, { before: [{ ...KEY, reason: 'keys stay here' }] });
    expect(sent).toEqual([]);
    expect(error).toMatchObject({ code: 'CONTENT_REFUSED', data: { stage: 'before', reason: 'keys stay here' } });
    expect(JSON.stringify(error)).not.toContain(SECRET);
  }
  const twin = await pass(refused[0], null, {});
  expect(JSON.stringify(twin.sent)).toContain(SECRET);
});

verifies('policy.filter', 'a redacted prompt is sent with the length it had before', async () => {
  const before = [{ ...KEY, action: 'redact' as const }];
  const input = request(`a ${SECRET} b ${SECRET}`, { system: `c ${SECRET}`, options: { header: SECRET } });
  const { sent } = await pass({ ...input, promptLength: input.prompt.length + 10 }, null, { before });
  const prompt = 'a [redacted] b [redacted]';
  const promptLength = prompt.length + 'c [redacted]'.length;
  expect(sent).toEqual([{ ...input, prompt, system: 'c [redacted]', promptLength }]);
});

verifies('policy.filter', 'a replacement is read as a formula and brings the secret back', async () => {
  const before = [{ ...KEY, action: 'redact' as const, replacement: '$&$0$1' }];
  const { sent } = await pass(request(`😀 ${SECRET} 😀`), null, { before });
  expect(sent).toMatchObject([{ prompt: '😀 $&$0$1 😀' }]);
});

verifies('policy.filter', 'a secret deep in the input of a tool goes out, or its shape is changed', async () => {
  const before = [{ ...KEY, action: 'redact' as const }];
  const input = { list: [1, { text: SECRET }], constructor: SECRET, model: SECRET, [SECRET]: true };
  const { sent } = await pass(input, null, { before, kind: 'tool' });
  const clean = '[redacted]';
  expect(sent).toEqual([{ list: [1, { text: clean }], constructor: clean, model: clean, [SECRET]: true }]);
  const whole = await pass(SECRET, undefined, { before, after: before, kind: 'tool' });
  expect(whole).toMatchObject({ sent: [clean], outcome: { status: 'ok', output: undefined } });
});

verifies('policy.filter', 'a secret comes in with an answer, or what pairs tool calls is destroyed', async () => {
  const after = [{ ...KEY, action: 'redact' as const }];
  const calls = [{ id: SECRET, name: SECRET, input: `{"key":"${SECRET}"}` }];
  const reply = { text: SECRET, model: SECRET, finish: 'stop', reasoning: SECRET, toolCalls: calls };
  const { outcome } = await pass(request('hi'), reply, { after });
  const clean = '[redacted]';
  const toolCalls = [{ id: SECRET, name: SECRET, input: `{"key":"${clean}"}` }];
  expect(outcome).toEqual({ status: 'ok', output: { ...reply, text: clean, reasoning: clean, toolCalls } });
  const refused = await pass(request('hi'), reply, { after: [KEY] });
  expect(refused.error).toMatchObject({ code: 'CONTENT_REFUSED', data: { stage: 'after' } });
  expect(JSON.stringify(refused.error)).not.toContain(SECRET);
});

verifies('policy.filter', 'a tool tells in its error what it may not tell in its output', async () => {
  const thrown = new LoopError('TOOL_FAILED', `bad key ${SECRET}`, { stderr: [SECRET] });
  const { error } = await pass(null, thrown, { after: [{ ...KEY, action: 'redact' }], kind: 'tool' });
  expect(error).toEqual({ code: 'TOOL_FAILED', message: 'bad key [redacted]', data: { stderr: ['[redacted]'] } });
  const refused = await pass(null, thrown, { after: [KEY], kind: 'tool' });
  expect(refused.error?.code).toBe('CONTENT_REFUSED');
  const other = await pass(null, new LoopError('TOOL_FAILED', 'disk full'), { after: [KEY], kind: 'tool' });
  expect(other.error).toEqual({ code: 'TOOL_FAILED', message: 'disk full' });
});

verifies('policy.filter', 'a filter takes the cancel of a run for something that came back', async () => {
  const k = kit();
  const session = await k.open({ layers: [filterLayer({ after: [{ pattern: 'cancelled' }] }, k.clock)] });
  const hanging = deferred();
  const seen: unknown[] = [];
  const running = run(session, async (scope) => {
    const work = scope.effect(k.effect('slow', 'idempotent', () => hanging.promise));
    return work.catch((error: LoopError) => seen.push(error.code));
  });
  await ticks();
  await session.cancel('t1', 'enough');
  expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(seen).toEqual(['CANCELLED']);
  hanging.resolve(null);
  await session.close();
});

verifies('policy.filter', 'a later filter sees what an earlier one has already taken out', async () => {
  const before: FilterSpec[] = [
    { ...KEY, action: 'redact', replacement: 'KEY' },
    { pattern: 'sk' },
    { pattern: 'KEYS' },
  ];
  expect((await pass(request(SECRET), null, { before })).sent).toMatchObject([{ prompt: 'KEY' }]);
  expect((await pass(request(`${SECRET}S`), null, { before })).error?.code).toBe('CONTENT_REFUSED');
});

verifies('policy.filter', 'a pattern that cannot be used lets everything pass', async () => {
  const bad = ['(', '(a)\\1', '(?<=a)b', 'a*', '', 'x'.repeat(1001), '((a{1000}){1000})', 7, null];
  for (const pattern of bad) {
    for (const stage of ['before', 'after']) {
      const filters = { [stage]: [{ pattern: pattern as string }] };
      const { sent, error } = await pass(request('hi'), { text: 'hi' }, filters);
      expect([sent, error?.code], String(pattern)).toEqual([[], 'DEFINITION_INVALID']);
    }
  }
});

verifies('policy.filter', 'an action that nobody knows lets the text pass', async () => {
  const before = [{ ...KEY, action: 'mask' as 'redact' }];
  expect((await pass(request(SECRET), null, { before })).error?.code).toBe('CONTENT_REFUSED');
});

verifies('policy.filter', 'a text made to be slow to match freezes the process', async () => {
  const started = performance.now();
  const evil = `${'a'.repeat(500_000)}!`;
  const before = ['(a+)+$', '(a|aa)+$', '(.*)*x'].map((pattern) => ({ pattern }));
  expect((await pass(request(evil), null, { before })).error).toBeUndefined();
  const wide = await pass(request(`${'ab'.repeat(150_000)}c`), null, { before: [{ pattern: 'a[ab]{900}c' }] });
  expect([wide.sent, wide.error?.code]).toEqual([[], 'CONTENT_REFUSED']);
  expect(performance.now() - started).toBeLessThan(15_000);
});

verifies('policy.filter', 'a text of many matches, each searched to the end, freezes the process', async () => {
  let looks = 0;
  const running: Clock = { now: () => 0, elapsed: () => 50 * looks++, sleep: () => Promise.resolve() };
  const before: FilterSpec[] = [{ pattern: 'a(?s:.*)c|b', action: 'redact' }];
  const { sent, error } = await pass(request('ab'.repeat(1000)), null, { before, clock: running });
  expect([sent, error?.code]).toEqual([[], 'CONTENT_REFUSED']);
  expect(error?.message).toContain('too long');
});

verifies('policy.filter', 'a text too large to filter passes, or a replacement fills the memory', async () => {
  const large = 'x'.repeat(4 * 1024 * 1024);
  const split = await pass(request(large, { system: 'y' }), null, { before: [KEY] });
  expect([split.sent, split.error?.code]).toEqual([[], 'CONTENT_REFUSED']);
  const replacement = 'z'.repeat(100_000);
  const blown = await pass(request('x'.repeat(1000)), null, {
    before: [{ pattern: 'x', action: 'redact', replacement }],
  });
  expect([blown.sent, blown.error?.code]).toEqual([[], 'CONTENT_REFUSED']);
});
