import { afterAll, expect } from 'vitest';
import { call, cleanUp, failure, takes, thrown } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { builtinTools } from './index.js';

afterAll(cleanUp);

const nowhere = { directory: undefined, trusted: false };
const tools = builtinTools();

verifies('tool.builtin', 'echo changes what it was given', async () => {
  const echo = await tools.open('echo', nowhere, {});
  const input = { text: 'grüße 🌍', list: [1, null, true] };
  expect(await echo(input, call())).toEqual(input);
});

verifies('tool.builtin', 'a name nobody knows is found out when the loop runs', async () => {
  expect(tools.unavailableReason('eco', nowhere, {})).toBe('builtin:eco is not known; known are echo, fail, wait.');
  expect(tools.unavailableReason('constructor', nowhere, {})).toContain('not known');
  expect((await failure(tools.open('eco', nowhere, {}))).code).toBe('DEFINITION_INVALID');
});

verifies('tool.builtin', 'a config that means nothing is taken in silence', () => {
  expect(tools.unavailableReason('echo', nowhere, { loud: true })).toBe(
    'config.loud is not known to builtin: tools; it takes none.',
  );
  expect(tools.unavailableReason('echo', nowhere, {})).toBeUndefined();
});

verifies('tool.builtin', 'fail does not fail as it was told', async () => {
  const fail = await tools.open('fail', nowhere, {});
  expect(await failure(fail({ message: 'out of stock', retryable: true }, call()))).toEqual({
    code: 'TOOL_FAILED',
    message: 'out of stock',
    data: { retryable: true },
  });
  expect(await failure(fail(null, call()))).toMatchObject({ code: 'TOOL_FAILED', data: { retryable: false } });
});

verifies('tool.builtin', 'wait outlives its call, or waits for ever', async () => {
  const wait = await tools.open('wait', nowhere, {});
  expect(await wait({ ms: 20 }, call())).toEqual({ waitedMs: 20 });
  for (const ms of [-1, 600_001, Number.NaN, '5', null]) {
    expect((await failure(wait({ ms }, call()))).message).toContain('from 0 to 600000');
  }
  const reason = new Error('enough');
  const controller = new AbortController();
  const waiting = wait({ ms: 600_000 }, call({ signal: controller.signal }));
  controller.abort(reason);
  expect(await thrown(waiting)).toBe(reason);
  expect(await thrown(wait({ ms: 600_000 }, call({ signal: controller.signal })))).toBe(reason);
});

verifies('tool.builtin', 'a tool of the host replaces one of ours, or cannot be called', async () => {
  const config = { shout: true };
  const extra = builtinTools({ upper: (input) => String(input).toUpperCase() });
  expect(extra.unavailableReason('upper', nowhere, config)).toBeUndefined();
  expect(await (await extra.open('upper', nowhere, config))('loud', call({ config }))).toBe('LOUD');
  expect(() => builtinTools({ echo: () => 1 })).toThrow('there already');
});

verifies('tool.builtin', 'a tool that does not listen holds up a call that was aborted', async () => {
  const deaf = await builtinTools({ deaf: () => new Promise(() => undefined) }).open('deaf', nowhere, {});
  const late = await builtinTools({
    late: async () => {
      await Promise.resolve();
      throw new Error('too late for anyone');
    },
  }).open('late', nowhere, {});
  for (const tool of [deaf, late]) {
    const controller = new AbortController();
    const working = tool(1, call({ signal: controller.signal }));
    controller.abort(new Error('stop'));
    expect(await takes(async () => working)).toBeLessThan(5000);
    expect(await thrown(working)).toMatchObject({ message: 'stop' });
  }
});

verifies('tool.builtin', 'a tool that is aborted while it throws leaves a rejection nobody hears', async () => {
  const controller = new AbortController();
  const torn = await builtinTools({
    torn: () => {
      controller.abort(new Error('stop'));
      throw new Error('torn');
    },
  }).open('torn', nowhere, {});
  const heard: unknown[] = [];
  const hear = (error: unknown): void => void heard.push(error);
  process.on('unhandledRejection', hear);
  expect(await thrown(torn(1, call({ signal: controller.signal })))).toBeInstanceOf(Error);
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off('unhandledRejection', hear);
  expect(heard).toEqual([]);
});
