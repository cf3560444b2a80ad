/** `exec:` tools: input and output, failures, limits and environment. */
import { chmodSync, closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { call, cleanUp, durationOf, failure, node, sh, trusted } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { Json } from '../../protocol/json.js';
import { execTools } from './index.js';

afterAll(cleanUp);

type Config = Parameters<ReturnType<typeof execTools>['unavailableReason']>[2];

/** Runs a script in a directory of its own. */
async function run(
  script: string,
  input: Json = null,
  config: Config = {},
  environment = process.env,
): Promise<unknown> {
  const tool = await execTools({ environment }).open('tool', trusted({ tool: script }), config);
  return tool(input, call());
}

verifies('tool.exec', 'input and output are passed unchanged', async () => {
  const input = {
    text: 'Grüße, 世界 🌍 \u2028 "quoted" \\ \u0000',
    list: [1.5e300, -0.1, null, true, {}],
    deep: [[[]]],
  };
  expect(await run(sh('cat'), input)).toEqual(input);
  for (const value of [null, 0, '', 'text', [], false]) expect(await run(sh('cat'), value)).toEqual(value);
});

verifies('tool.exec', 'a character split between two reads is decoded correctly', async () => {
  const script = node(`
    const bytes = Buffer.from(JSON.stringify('🌍'.repeat(50)));
    const next = (i) => i < bytes.length && process.stdout.write(bytes.subarray(i, i + 7), () => setTimeout(next, 1, i + 7));
    next(0);`);
  expect(await run(script)).toBe('🌍'.repeat(50));
});

verifies('tool.exec', 'an input and output of nine megabytes are passed', async () => {
  const input = 'x'.repeat(9 * 1024 * 1024);
  expect(await run(sh('cat'), input)).toBe(input);
});

verifies('tool.exec', 'a failure contains stderr, and the exit code or the signal', async () => {
  expect(await failure(run(sh('echo "no such customer" >&2; exit 3')))).toEqual({
    code: 'TOOL_FAILED',
    message: 'no such customer',
    data: { exitCode: 3 },
  });
  expect(await failure(run(sh('exit 7')))).toEqual({
    code: 'TOOL_FAILED',
    message: 'exec:tool ended with exit code 7 and printed nothing on stderr.',
    data: { exitCode: 7 },
  });
  expect(await failure(run(sh('kill -USR1 $$')))).toEqual({
    code: 'TOOL_FAILED',
    message: 'exec:tool ended with signal SIGUSR1 and printed nothing on stderr.',
    data: { signal: 'SIGUSR1' },
  });
  expect(await run(sh('echo "only a warning" >&2; echo 1'))).toBe(1);
  const busy = await failure(run(sh('echo "try later" >&2; exit 75')));
  expect(busy.data).toEqual({ exitCode: 75, retryable: true });
});

verifies('tool.exec', 'a message contains no terminal control sequences', async () => {
  const script = node(`
    process.stderr.write('\\u001b[31mred\\u001b[0m \\u001b]0;title\\u0007\\u001b]8;;http://x\\u001b\\\\link \\u001bc\\u009b2J\\u0000\\u0007\\u202e\\r\\n two\\tcolumns \\u001b[');
    process.exitCode = 1;`);
  expect((await failure(run(script))).message).toBe('red link c\n two\tcolumns [');
});

verifies('tool.exec', 'only the end of a long stderr is kept', async () => {
  const before = process.memoryUsage().rss;
  const { message } = await failure(
    run(sh('head -c 100000000 /dev/zero | tr "\\0" x >&2; echo "🌍 the last word" >&2; exit 1')),
  );
  expect([...message]).toHaveLength(2000);
  expect(message).toMatch(/^…x+🌍 the last word$/);
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
});

verifies('tool.exec', 'output that is not one JSON document fails the call', async () => {
  const errorFor = async (script: string): Promise<string> => {
    const { code, message, data } = await failure(run(script));
    expect(data).toEqual({ exitCode: 0 });
    return `${code} ${message}`;
  };
  const prefix = 'TOOL_FAILED exec:tool must print one JSON document, but printed';
  expect(await errorFor(sh('echo hello'))).toBe(`${prefix} something else, which begins with: hello`);
  expect(await errorFor(sh('true'))).toBe(`${prefix} nothing`);
  expect(await errorFor(sh('echo 1; echo 2'))).toContain('something else, which begins with: 1\n2');
  expect(await errorFor(sh('printf \'"\\377"\''))).toBe(`${prefix} bytes that are not UTF-8 text`);
  const long = await errorFor(sh('head -c 100000 /dev/zero | tr "\\0" x'));
  expect(long).toMatch(/: x{199}…$/);
  const deep = await errorFor(node('process.stdout.write("[".repeat(9_000_000))'));
  expect(deep).toBe(`${prefix} a document nested deeper than 256 levels`);
  expect(await run(node('process.stdout.write("[".repeat(256) + "]".repeat(256))'))).toBeTypeOf('object');
  expect(await run(sh(`echo '"[[ \\" {{"'`))).toBe('[[ " {{');
});

verifies('tool.exec', 'a tool that prints too much is killed', async () => {
  const before = process.memoryUsage().rss;
  const time = await durationOf(async () => {
    expect(await failure(run(sh('yes')))).toEqual({
      code: 'TOOL_FAILED',
      message: 'exec:tool printed more than 10485760 bytes and was killed. Print less, or raise config.maxOutputBytes.',
      data: { maxOutputBytes: 10485760 },
    });
  });
  expect(time).toBeLessThan(10_000);
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  const small = { maxOutputBytes: 10 };
  expect(await run(sh('printf \'"45678901"\''), null, { maxOutputBytes: 10 })).toBe('45678901');
  expect((await failure(run(sh('printf \'"456789012"\''), null, small))).data).toMatchObject(small);
});

verifies('tool.exec', 'a tool need not read its input', async () => {
  const input = 'x'.repeat(10_000_000);
  const times = [
    await durationOf(async () => expect(await run(sh('echo 1'), input)).toBe(1)),
    await durationOf(async () => expect(await run(sh('exec 0<&-; sleep 0.1; echo 2'), input)).toBe(2)),
    await durationOf(async () => expect(await run(sh('head -c 5 >/dev/null; echo 3'), input)).toBe(3)),
    await durationOf(async () => expect((await failure(run(sh('exit 4'), input))).data).toEqual({ exitCode: 4 })),
  ];
  for (const time of times) expect(time).toBeLessThan(5000);
});

verifies('tool.exec', 'a tool that closes stdout early is awaited until it exits', async () => {
  const time = await durationOf(async () => expect(await run(sh('echo 1; exec 1>&-; sleep 0.4'))).toBe(1));
  expect(time).toBeGreaterThan(390);
});

verifies('tool.exec', 'no output is lost if the exit of a tool is noticed before its output', async () => {
  const tool = await execTools().open('tool', trusted({ tool: sh('echo 1') }), {});
  for (let round = 0; round < 5; round++) {
    const results = await Promise.all(Array.from({ length: 40 }, async () => tool(null, call())));
    expect(results.filter((result) => result !== 1)).toEqual([]);
  }
});

verifies('tool.exec', 'the error for a file that cannot be run states the reason', async () => {
  const origin = trusted({
    plain: sh('echo 1'),
    lost: '#!/no/such/interpreter\n',
    'lost-env': '#!/usr/bin/env no-such-interpreter\n',
  });
  chmodSync(join(origin.directory, 'plain'), 0o644);
  expect(await failure(execTools().open('plain', origin, {}))).toMatchObject({
    code: 'TOOL_FAILED',
    message: 'exec:plain is not executable; run: chmod +x plain',
  });
  const lost = await execTools().open('lost', origin, {});
  expect(await failure(lost(null, call()))).toEqual({
    code: 'TOOL_FAILED',
    message: 'exec:lost could not be started: the interpreter in its first line (#!) was not found.',
    data: { path: 'lost', retryable: false },
  });
  const env = await execTools().open('lost-env', origin, {});
  expect(await failure(env(null, call()))).toMatchObject({ code: 'TOOL_FAILED', data: { exitCode: 127 } });
  const huge = await execTools().open('lost', origin, { args: ['x'.repeat(5_000_000)] });
  expect(await failure(huge(null, call()))).toMatchObject({ code: 'TOOL_FAILED', data: { retryable: false } });
});

verifies(
  'tool.exec',
  'arguments are passed without a shell, and the tool runs in the directory of its definition',
  async () => {
    const script = node('console.log(JSON.stringify({ args: process.argv.slice(2), cwd: process.cwd() }))');
    const origin = trusted({ 'a tool; touch x': script });
    const args = ['$(touch y)', '; touch z', '--flag=a b', '', '`id`', '🌍'];
    const tool = await execTools().open('a tool; touch x', origin, { args });
    expect(await tool(null, call())).toEqual({ args, cwd: origin.directory });
    const bare = await execTools().open('a tool; touch x', origin, {});
    expect(await bare(null, call())).toEqual({ args: [], cwd: origin.directory });
  },
);

verifies('tool.env', 'a tool gets only the basic variables, its own and the configured ones', async () => {
  const environment = {
    PATH: process.env.PATH,
    HOME: '/home/ada',
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    OPENAI_API_KEY: 'sk-secret',
    NODE_OPTIONS: '--no-warnings',
    LD_LIBRARY_PATH: '/nowhere',
    RONDO_TOKEN: 'secret',
    RONDO_CALL_ID: 'a lie',
    TOKEN: 'given',
  };
  const script = node('console.log(JSON.stringify(process.env))');
  const callVariables = { RONDO_CALL_ID: 'call-1', RONDO_IDEMPOTENCY_KEY: 'born:t1/0' };
  const { PATH, HOME, LANG, TZ } = environment;
  expect(await run(script, null, {}, environment)).toEqual({ PATH, HOME, LANG, TZ, ...callVariables });
  const config = { env: ['TOKEN', 'RONDO_CALL_ID', 'NOT_SET', '__proto__'] };
  const passed = await run(script, null, config, environment);
  expect(passed).toEqual({ PATH, HOME, LANG, TZ, TOKEN: 'given', ...callVariables });
});

verifies('tool.env', 'an error contains no secret that was passed to the tool', async () => {
  const environment = { PATH: process.env.PATH, TOKEN: 'tr0ub4dor&3', SHORT: 'no' };
  const config = { env: ['TOKEN', 'SHORT'] };
  const failing = sh('echo "bad token $TOKEN, no luck" >&2; exit 1');
  expect((await failure(run(failing, null, config, environment))).message).toBe('bad token [withheld], no luck');
  const invalid = await failure(run(sh('echo "token $TOKEN"'), null, config, environment));
  expect(invalid.message).toMatch(/begins with: token \[withheld\]$/);
});

verifies('tool.env', 'a tool inherits no open files', async () => {
  const origin = trusted({ tool: sh('echo "\\"$(ls -l /dev/fd/ | tr "\\n" " ")\\""'), 'ours.db': '' });
  const file = openSync(join(origin.directory, 'ours.db'), 'r');
  const tool = await execTools().open('tool', origin, {});
  const open = await tool(null, call());
  closeSync(file);
  expect(open).not.toContain('ours.db');
});

verifies('tool.exec', 'an unknown or invalid setting makes the definition invalid', () => {
  const origin = trusted({});
  const reasonFor = (config: Config): string | undefined => execTools().unavailableReason('tool', origin, config);
  expect(reasonFor({ arg: [] })).toBe(
    'config.arg is not a setting of exec: tools; available are args, env, maxOutputBytes, killGraceMs.',
  );
  expect(reasonFor({ shell: true })).toContain('not a setting');
  expect(reasonFor({ toString: 1 })).toContain('not a setting');
  const invalidConfigs: Config[] = [
    { args: 'x' },
    { args: [1] },
    { args: ['a\0b'] },
    { env: { TOKEN: 'x' } },
    { env: ['A=B'] },
    { env: [''] },
    { maxOutputBytes: 0 },
    { maxOutputBytes: 64 * 1024 * 1024 + 1 },
    { maxOutputBytes: '10' },
    { killGraceMs: -1 },
    { killGraceMs: 10_001 },
    { killGraceMs: 1.5 },
    { killGraceMs: null },
  ];
  for (const config of invalidConfigs)
    expect(reasonFor(config), JSON.stringify(config)).toMatch(/^config\.\w+ of exec: tools must be/);
  expect(reasonFor({ args: ['-v'], env: ['TOKEN'], maxOutputBytes: 64 * 1024 * 1024, killGraceMs: 0 })).toBeUndefined();
});
