import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { call, cleanUp, failure, rejectionOf, trusted } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { moduleTools } from './index.js';

afterAll(cleanUp);

verifies('tool.module', 'a function receives its input and the context of its call', async () => {
  const origin = trusted({
    'tool.mjs': `
      export async function run(input, { callId, idempotencyKey, signal, config }) {
        return { input, callId, idempotencyKey, signal: signal.aborted, config };
      }`,
  });
  const config = { unit: 'kg' };
  const tool = await moduleTools().open('./tool.mjs#run', origin, config);
  expect(await tool({ n: 1 }, call({ config }))).toEqual({
    input: { n: 1 },
    callId: 'call-1',
    idempotencyKey: 'born:t1/0',
    signal: false,
    config,
  });
});

verifies('tool.module', 'CommonJS modules and default exports can be tools', async () => {
  const origin = trusted({
    'a.cjs': 'exports.run = (input) => input + 1;',
    'b.mjs': 'export default (input) => input * 2;',
  });
  const tools = moduleTools();
  expect(await (await tools.open('a.cjs#run', origin, {}))(1, call())).toBe(2);
  expect(await (await tools.open('b.mjs#default', origin, {}))(4, call())).toBe(8);
});

verifies('tool.module', 'the error for a module that cannot be used states the reason', async () => {
  const origin = trusted({
    'broken.mjs': 'export const = 1;',
    'throws.mjs': 'throw new Error("no \\u001b[31mkey\\u001b[0m");',
    'other.mjs': 'export const walk = () => 1; export const number = 5;',
  });
  const errorFor = async (target: string): Promise<string> => {
    const { code, message } = await failure(moduleTools().open(target, origin, {}));
    return `${code} ${message}`;
  };
  expect(await errorFor('broken.mjs#run')).toMatch(/^TOOL_FAILED module:broken.mjs#run cannot be loaded\. /);
  expect(await errorFor('throws.mjs#run')).toBe('TOOL_FAILED module:throws.mjs#run cannot be loaded. Error: no key');
  expect(await errorFor('other.mjs#run')).toMatch(/^TOOL_FAILED .*no export 'run'; it exports .*walk/);
  expect(await errorFor('other.mjs#toString')).toMatch(/^TOOL_FAILED .*no export 'toString'/);
  expect(await errorFor('other.mjs#number')).toMatch(/^TOOL_FAILED .*'number' is not a function/);
});

verifies('tool.module', 'a target that can never be loaded makes the definition invalid', () => {
  const origin = trusted({});
  const reasonFor = (target: string): string | undefined => moduleTools().unavailableReason(target, origin, {});
  expect(reasonFor('tool.mjs')).toContain('module:PATH#export');
  expect(reasonFor('tool.mjs#')).toContain('module:PATH#export');
  expect(reasonFor('tool.py#run')).toContain('.mjs, .js, .cjs or .ts');
  expect(reasonFor('tool.json#run')).toContain('.mjs, .js, .cjs or .ts');
  expect(reasonFor('#run')).toContain('needs the path');
  const supportsTypeScript = Boolean(Reflect.get(process.features, 'typescript'));
  expect(reasonFor('tool.ts#run') === undefined).toBe(supportsTypeScript);
});

verifies('tool.module', 'a module is loaded once and keeps its state between calls', async () => {
  const origin = trusted({ 'count.mjs': 'let n = 0; export const next = () => ++n; export const same = () => n;' });
  const tools = moduleTools();
  const first = await tools.open('count.mjs#next', origin, {});
  const again = await tools.open('./count.mjs#next', origin, {});
  const other = await tools.open('count.mjs#same', origin, {});
  expect([await first(null, call()), await again(null, call()), await other(null, call())]).toEqual([1, 2, 2]);
});

verifies('tool.module', 'a missing module can be loaded after it has been written', async () => {
  const origin = trusted({});
  const tools = moduleTools();
  expect((await failure(tools.open('late.mjs#run', origin, {}))).code).toBe('TOOL_FAILED');
  writeFileSync(join(origin.directory, 'late.mjs'), 'export const run = () => 1;');
  expect(await (await tools.open('late.mjs#run', origin, {}))(null, call())).toBe(1);
});

verifies('tool.module', 'a call rejects with what its function throws', async () => {
  const origin = trusted({
    'tool.mjs': `
      export const now = () => { throw new Error('at once'); };
      export const later = async () => { await null; throw new Error('later'); };`,
  });
  const tools = moduleTools();
  for (const [name, message] of [
    ['now', 'at once'],
    ['later', 'later'],
  ]) {
    const tool = await tools.open(`tool.mjs#${name}`, origin, {});
    expect(await rejectionOf(tool(null, call()))).toMatchObject({ message });
  }
});

verifies('tool.module', 'an aborted call does not wait for a function that ignores its signal', async () => {
  const origin = trusted({
    'tool.mjs': `
      export const hanging = () => new Promise(() => undefined);
      export const late = () => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 30));
      export const started = (input, { signal }) => { if (signal.aborted) throw new Error('began'); };`,
  });
  const tools = moduleTools();
  const reason = new Error('cancelled');
  for (const name of ['hanging', 'late']) {
    const tool = await tools.open(`tool.mjs#${name}`, origin, {});
    const controller = new AbortController();
    const working = tool(null, call({ signal: controller.signal }));
    controller.abort(reason);
    expect(await rejectionOf(working)).toBe(reason);
  }
  const started = await tools.open('tool.mjs#started', origin, {});
  expect(await rejectionOf(started(null, call({ signal: AbortSignal.abort(reason) })))).toBe(reason);
  // An unhandled rejection would end this process.
  await new Promise((resolve) => setTimeout(resolve, 60));
});
