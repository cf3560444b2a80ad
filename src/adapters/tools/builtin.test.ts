import { afterAll, expect } from 'vitest';
import { call, cleanUp, durationOf, failure, rejectionOf } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { builtinTools } from './index.js';

afterAll(cleanUp);

const origin = { directory: undefined, trusted: false };
const tools = builtinTools();

verifies('tool.builtin', 'echo returns its input unchanged', async () => {
  const echo = await tools.open('echo', origin, {});
  const input = { text: 'grüße 🌍', list: [1, null, true] };
  expect(await echo(input, call())).toEqual(input);
});

verifies('tool.builtin', 'an unknown name makes the definition invalid', async () => {
  expect(tools.unavailableReason('eco', origin, {})).toBe(
    'builtin:eco does not exist; available are echo, fail, wait.',
  );
  expect(tools.unavailableReason('constructor', origin, {})).toContain('does not exist');
  expect((await failure(tools.open('eco', origin, {}))).code).toBe('DEFINITION_INVALID');
});

verifies('tool.builtin', 'a config for a built-in tool is an error', () => {
  expect(tools.unavailableReason('echo', origin, { loud: true })).toBe(
    'config.loud is not a setting of builtin: tools; they have none.',
  );
  expect(tools.unavailableReason('echo', origin, {})).toBeUndefined();
});

verifies('tool.builtin', 'fail fails with the given message and retryability', async () => {
  const fail = await tools.open('fail', origin, {});
  expect(await failure(fail({ message: 'out of stock', retryable: true }, call()))).toEqual({
    code: 'TOOL_FAILED',
    message: 'out of stock',
    data: { retryable: true },
  });
  expect(await failure(fail(null, call()))).toMatchObject({ code: 'TOOL_FAILED', data: { retryable: false } });
});

verifies('tool.builtin', 'wait ends after its time or with its call, and its time is bounded', async () => {
  const wait = await tools.open('wait', origin, {});
  expect(await wait({ ms: 20 }, call())).toEqual({ waitedMs: 20 });
  for (const ms of [-1, 600_001, Number.NaN, '5', null]) {
    expect((await failure(wait({ ms }, call()))).message).toContain('from 0 to 600000');
  }
  const reason = new Error('enough');
  const controller = new AbortController();
  const waiting = wait({ ms: 600_000 }, call({ signal: controller.signal }));
  controller.abort(reason);
  expect(await rejectionOf(waiting)).toBe(reason);
  expect(await rejectionOf(wait({ ms: 600_000 }, call({ signal: controller.signal })))).toBe(reason);
});

verifies('tool.builtin', 'a host can add tools, but not replace the standard ones', async () => {
  const config = { shout: true };
  const extra = builtinTools({ upper: (input) => String(input).toUpperCase() });
  expect(extra.unavailableReason('upper', origin, config)).toBeUndefined();
  expect(await (await extra.open('upper', origin, config))('loud', call({ config }))).toBe('LOUD');
  expect(() => builtinTools({ echo: () => 1 })).toThrow('exists already');
});

verifies('tool.builtin', 'an aborted call does not wait for a tool that ignores its signal', async () => {
  const hanging = await builtinTools({ hanging: () => new Promise(() => undefined) }).open('hanging', origin, {});
  const late = await builtinTools({
    late: async () => {
      await Promise.resolve();
      throw new Error('after the abort');
    },
  }).open('late', origin, {});
  for (const tool of [hanging, late]) {
    const controller = new AbortController();
    const working = tool(1, call({ signal: controller.signal }));
    controller.abort(new Error('stop'));
    expect(await durationOf(async () => working)).toBeLessThan(5000);
    expect(await rejectionOf(working)).toMatchObject({ message: 'stop' });
  }
});

verifies('tool.builtin', 'a tool that is aborted while it throws causes no unhandled rejection', async () => {
  const controller = new AbortController();
  const throwing = await builtinTools({
    throwing: () => {
      controller.abort(new Error('stop'));
      throw new Error('thrown by the tool');
    },
  }).open('throwing', origin, {});
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', onUnhandled);
  expect(await rejectionOf(throwing(1, call({ signal: controller.signal })))).toBeInstanceOf(Error);
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off('unhandledRejection', onUnhandled);
  expect(unhandled).toEqual([]);
});
