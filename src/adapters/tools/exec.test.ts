/** Executables: what goes in and out, how they fail, and what they get to see of us. */
import { chmodSync, closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { call, cleanUp, failure, node, sh, takes, trusted } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { Json } from '../../protocol/json.js';
import { execTools } from './index.js';

afterAll(cleanUp);

type Config = Parameters<ReturnType<typeof execTools>['unavailableReason']>[2];

/** Runs a script of one line or more, by itself in a directory. */
async function run(
  script: string,
  input: Json = null,
  config: Config = {},
  environment = process.env,
): Promise<unknown> {
  const tool = await execTools({ environment }).open('tool', trusted({ tool: script }), config);
  return tool(input, call());
}

verifies('tool.exec', 'a document changes on its way in or out', async () => {
  const input = {
    text: 'Grüße, 世界 🌍 \u2028 "quoted" \\ \u0000',
    list: [1.5e300, -0.1, null, true, {}],
    deep: [[[]]],
  };
  expect(await run(sh('cat'), input)).toEqual(input);
  for (const value of [null, 0, '', 'text', [], false]) expect(await run(sh('cat'), value)).toEqual(value);
});

verifies('tool.exec', 'a character that is split between two reads is broken', async () => {
  const script = node(`
    const bytes = Buffer.from(JSON.stringify('🌍'.repeat(50)));
    const next = (i) => i < bytes.length && process.stdout.write(bytes.subarray(i, i + 7), () => setTimeout(next, 1, i + 7));
    next(0);`);
  expect(await run(script)).toBe('🌍'.repeat(50));
});

verifies('tool.exec', 'ten megabytes do not pass, in or out', async () => {
  const input = 'x'.repeat(9 * 1024 * 1024);
  expect(await run(sh('cat'), input)).toBe(input);
});

verifies('tool.exec', 'a failure comes without what the tool said about it', async () => {
  expect(await failure(run(sh('echo "no such customer" >&2; exit 3')))).toEqual({
    code: 'TOOL_FAILED',
    message: 'no such customer',
    data: { exitCode: 3 },
  });
  expect(await failure(run(sh('exit 7')))).toEqual({
    code: 'TOOL_FAILED',
    message: 'exec:tool ended with exit code 7 and said nothing on stderr.',
    data: { exitCode: 7 },
  });
  expect(await failure(run(sh('kill -USR1 $$')))).toEqual({
    code: 'TOOL_FAILED',
    message: 'exec:tool ended with signal SIGUSR1 and said nothing on stderr.',
    data: { signal: 'SIGUSR1' },
  });
  expect(await run(sh('echo "only a warning" >&2; echo 1'))).toBe(1);
  const busy = await failure(run(sh('echo "try later" >&2; exit 75')));
  expect(busy.data).toEqual({ exitCode: 75, retryable: true });
});

verifies('tool.exec', 'a message draws on the terminal of whoever reads it', async () => {
  const script = node(`
    process.stderr.write('\\u001b[31mred\\u001b[0m \\u001b]0;title\\u0007\\u001b]8;;http://x\\u001b\\\\link \\u001bc\\u009b2J\\u0000\\u0007\\u202e\\r\\n two\\tcolumns \\u001b[');
    process.exitCode = 1;`);
  expect((await failure(run(script))).message).toBe('red link c\n two\tcolumns [');
});

verifies('tool.exec', 'a flood of stderr fills the memory or the journal, or hides the last word', async () => {
  const before = process.memoryUsage().rss;
  const { message } = await failure(
    run(sh('head -c 100000000 /dev/zero | tr "\\0" x >&2; echo "🌍 the last word" >&2; exit 1')),
  );
  expect([...message]).toHaveLength(2000);
  expect(message).toMatch(/^…x+🌍 the last word$/);
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
});

verifies('tool.exec', 'something that is not one JSON document is taken for one', async () => {
  const told = async (script: string): Promise<string> => {
    const { code, message, data } = await failure(run(script));
    expect(data).toEqual({ exitCode: 0 });
    return `${code} ${message}`;
  };
  const must = 'TOOL_FAILED exec:tool must print one JSON document, but printed';
  expect(await told(sh('echo hello'))).toBe(`${must} not one JSON document; it begins with: hello`);
  expect(await told(sh('true'))).toBe(`${must} nothing`);
  expect(await told(sh('echo 1; echo 2'))).toContain('not one JSON document; it begins with: 1\n2');
  expect(await told(sh('printf \'"\\377"\''))).toBe(`${must} not UTF-8 text`);
  const long = await told(sh('head -c 100000 /dev/zero | tr "\\0" x'));
  expect(long).toMatch(/: x{199}…$/);
  const deep = await told(node('process.stdout.write("[".repeat(9_000_000))'));
  expect(deep).toBe(`${must} nested deeper than 256`);
  expect(await run(node('process.stdout.write("[".repeat(256) + "]".repeat(256))'))).toBeTypeOf('object');
  expect(await run(sh(`echo '"[[ \\" {{"'`))).toBe('[[ " {{');
});

verifies('tool.exec', 'a tool that floods stdout takes the process with it', async () => {
  const before = process.memoryUsage().rss;
  const time = await takes(async () => {
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
  expect((await failure(run(sh('printf \'"456789012"\''), null, small))).data).toEqual(small);
});

verifies('tool.exec', 'a tool that does not read its input crashes us or hangs', async () => {
  const input = 'x'.repeat(10_000_000);
  const times = [
    await takes(async () => expect(await run(sh('echo 1'), input)).toBe(1)),
    await takes(async () => expect(await run(sh('exec 0<&-; sleep 0.1; echo 2'), input)).toBe(2)),
    await takes(async () => expect(await run(sh('head -c 5 >/dev/null; echo 3'), input)).toBe(3)),
    await takes(async () => expect((await failure(run(sh('exit 4'), input))).data).toEqual({ exitCode: 4 })),
  ];
  for (const time of times) expect(time).toBeLessThan(5000);
});

verifies('tool.exec', 'a tool that closes stdout early is cut off before it has ended', async () => {
  const time = await takes(async () => expect(await run(sh('echo 1; exec 1>&-; sleep 0.4'))).toBe(1));
  expect(time).toBeGreaterThan(390);
});

verifies('tool.exec', 'an answer is lost because the end of its tool is noticed first', async () => {
  const tool = await execTools().open('tool', trusted({ tool: sh('echo 1') }), {});
  for (let round = 0; round < 5; round++) {
    const answers = await Promise.all(Array.from({ length: 40 }, async () => tool(null, call())));
    expect(answers.filter((answer) => answer !== 1)).toEqual([]);
  }
});

verifies('tool.exec', 'a file that cannot be run fails without saying what to do', async () => {
  const origin = trusted({
    plain: sh('echo 1'),
    lost: '#!/no/such/interpreter\n',
    'lost-env': '#!/usr/bin/env no-such-interpreter\n',
  });
  chmodSync(join(origin.directory, 'plain'), 0o644);
  expect(await failure(execTools().open('plain', origin, {}))).toMatchObject({
    code: 'TOOL_FAILED',
    message: 'exec:plain may not be run; make it executable: chmod +x plain',
  });
  const lost = await execTools().open('lost', origin, {});
  expect(await failure(lost(null, call()))).toEqual({
    code: 'TOOL_FAILED',
    message: 'exec:lost could not be started: the interpreter that its first line (#!) names was not found.',
    data: { path: 'lost', retryable: false },
  });
  const env = await execTools().open('lost-env', origin, {});
  expect(await failure(env(null, call()))).toMatchObject({ code: 'TOOL_FAILED', data: { exitCode: 127 } });
  const huge = await execTools().open('lost', origin, { args: ['x'.repeat(5_000_000)] });
  expect(await failure(huge(null, call()))).toMatchObject({ code: 'TOOL_FAILED', data: { retryable: false } });
});

verifies('tool.exec', 'an argument is read by a shell, or the tool runs elsewhere', async () => {
  const script = node('console.log(JSON.stringify({ args: process.argv.slice(2), cwd: process.cwd() }))');
  const origin = trusted({ 'a tool; touch x': script });
  const args = ['$(touch y)', '; touch z', '--flag=a b', '', '`id`', '🌍'];
  const tool = await execTools().open('a tool; touch x', origin, { args });
  expect(await tool(null, call())).toEqual({ args, cwd: origin.directory });
  const bare = await execTools().open('a tool; touch x', origin, {});
  expect(await bare(null, call())).toEqual({ args: [], cwd: origin.directory });
});

verifies('tool.env', 'a secret of ours leaks into a tool', async () => {
  const environment = {
    PATH: process.env.PATH,
    HOME: '/home/somebody',
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
  const ours = { RONDO_CALL_ID: 'call-1', RONDO_IDEMPOTENCY_KEY: 'born:t1/0' };
  const { PATH, HOME, LANG, TZ } = environment;
  expect(await run(script, null, {}, environment)).toEqual({ PATH, HOME, LANG, TZ, ...ours });
  const config = { env: ['TOKEN', 'RONDO_CALL_ID', 'NOT_SET', '__proto__'] };
  const passed = await run(script, null, config, environment);
  expect(passed).toEqual({ PATH, HOME, LANG, TZ, TOKEN: 'given', ...ours });
});

verifies('tool.env', 'a secret that was handed to a tool comes back in its failure', async () => {
  const environment = { PATH: process.env.PATH, TOKEN: 'tr0ub4dor&3', SHORT: 'no' };
  const config = { env: ['TOKEN', 'SHORT'] };
  const loud = sh('echo "bad token $TOKEN, no luck" >&2; exit 1');
  expect((await failure(run(loud, null, config, environment))).message).toBe('bad token [withheld], no luck');
  const wrong = await failure(run(sh('echo "token $TOKEN"'), null, config, environment));
  expect(wrong.message).toMatch(/begins with: token \[withheld\]$/);
});

verifies('tool.env', 'a tool inherits open files of ours', async () => {
  const origin = trusted({ tool: sh('echo "\\"$(ls -l /dev/fd/ | tr "\\n" " ")\\""'), 'ours.db': '' });
  const file = openSync(join(origin.directory, 'ours.db'), 'r');
  const tool = await execTools().open('tool', origin, {});
  const open = await tool(null, call());
  closeSync(file);
  expect(open).not.toContain('ours.db');
});

verifies('tool.exec', 'a config that means nothing or is wrong is taken in silence', () => {
  const origin = trusted({});
  const flaw = (config: Config): string | undefined => execTools().unavailableReason('tool', origin, config);
  expect(flaw({ arg: [] })).toBe(
    'config.arg is not known to exec: tools; known are args, env, maxOutputBytes, killGraceMs.',
  );
  expect(flaw({ shell: true })).toContain('not known');
  expect(flaw({ toString: 1 })).toContain('not known');
  const wrong: Config[] = [
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
  for (const config of wrong)
    expect(flaw(config), JSON.stringify(config)).toMatch(/^config\.\w+ of exec: tools must be/);
  expect(flaw({ args: ['-v'], env: ['TOKEN'], maxOutputBytes: 64 * 1024 * 1024, killGraceMs: 0 })).toBeUndefined();
});
