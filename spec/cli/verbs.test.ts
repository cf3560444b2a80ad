// Every verb as programs and people use it: what it prints where, and with which code it ends.

import { rmSync } from 'node:fs';
import { expect } from 'vitest';
import type { TraceEvent, TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { hello, Project, tool, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

interface Failed {
  readonly error: { readonly code: string; readonly message: string };
}

const seed = { env: { RONDO_SEED: '7', RONDO_NOW: '2030-01-01T00:00:00Z' } };

verifies('cli.contract', 'a script cannot tell the output of a run from what is meant for people', async () => {
  const project = new Project();
  const human = await project.run(['run', 'hello', '--input', '{"name": "Ada"}']);
  expect(human.code).toBe(0);
  expect(JSON.parse(human.stdout)).toEqual(expect.any(Object));
  expect(human.stdout).toContain('\n');
  expect(human.stderr).toMatch(/^ok after .*, turn s-[0-9a-f]{16}\.1, \d+ tokens in, \d+ out\n$/);
  const result = await project.json<TurnResult>(['run', 'hello', '--input', '{"name": "Ada"}']);
  expect(result).toMatchObject({ loopId: 'hello', loopVersion: '1.0.0', status: 'ok', durationMs: expect.any(Number) });
  expect(Object.keys(result)).toEqual(
    expect.arrayContaining(['callId', 'turnId', 'sessionId', 'output', 'startedAt', 'endedAt', 'trace']),
  );
  expect(result.trace.at(-1)).toMatchObject({ type: 'call.completed', callId: result.turnId });
});

verifies('identity.principal', 'a key on the command line belongs to the person that --as names', async () => {
  const project = new Project();
  const args = ['run', 'hello', '--key', 'order-17', '--input', '{"name": "Ada"}'];
  const turns = [];
  for (const who of [[], ['--as', 'ada'], ['--as', 'eve'], ['--as', 'ada']]) {
    turns.push((await project.json<TurnResult>([...args, ...who])).turnId);
  }
  expect(new Set(turns).size).toBe(3);
  expect(turns[3]).toBe(turns[1]);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs.map(({ principal }) => principal)).toEqual(['eve', 'ada', undefined]);
});

verifies('cli.contract', 'a failed run ends like a good one', async () => {
  const project = new Project();
  const failed = await project.run(['run', 'pair', '--input', '{"name": "Ada", "ms": "soon"}']);
  expect(failed).toMatchObject({ code: 1, stdout: '' });
  expect(failed.stderr).toContain('TOOL_FAILED: Step 1 (wait) failed');
  expect(failed.stderr).toMatch(/Where: step 1 \(wait\), call s-\w+\.1\/1/);
  expect(failed.stderr).toMatch(/Next: rondo trace s-\w+\.1/);
  const result = await project.json<TurnResult>(['run', 'pair', '--input', '{"name": "Ada", "ms": "soon"}']);
  expect(result).toMatchObject({ status: 'error', error: { code: 'TOOL_FAILED' } });
});

verifies('cli.contract', 'the same key runs the work twice', async () => {
  const project = new Project();
  const args = ['run', 'hello', '--key', 'order-17', '--input', '{"name": "Ada"}'];
  const [first, second] = [await project.json<TurnResult>(args), await project.json<TurnResult>(args)];
  expect(second.turnId).toBe(first.turnId);
  expect(second.output).toEqual(first.output);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs).toHaveLength(1);
  const other = await project.run(['run', 'hello', '--key', 'order-17', '--input', '{"name": "Bob"}', '--json']);
  expect(other.code).toBe(1);
  expect(JSON.parse(other.stdout)).toMatchObject({ error: { code: 'KEY_CONFLICT' } });
});

verifies('cli.contract', 'a loop is found by one of its names only', async () => {
  const project = new Project({ hello, next: { ...hello, version: '2.0.0' } });
  const input = ['--input', '{"name": "Ada"}', '--json'];
  const versionOf = async (...args: string[]): Promise<string> => {
    const { stdout } = await project.run(['run', ...args, ...input]);
    return (JSON.parse(stdout) as TurnResult).loopVersion;
  };
  expect(await versionOf('hello')).toBe('2.0.0');
  expect(await versionOf('hello@1.0.0')).toBe('1.0.0');
  expect(await versionOf('hello', '--version', '1.0.0')).toBe('1.0.0');
  expect(await versionOf('loops/hello.json')).toBe('1.0.0');
  expect(await versionOf(project.path('loops/next.json'))).toBe('2.0.0');
  const both = await project.run(['run', 'hello@1.0.0', '--version', '2.0.0']);
  expect(both).toMatchObject({ code: 64, stdout: '' });
});

verifies('cli.contract', 'a file is run without the loops beside it that it calls', async () => {
  const project = new Project();
  const result = await project.json<TurnResult>(['run', 'loops/pair.json', '--input', '{"name": "A", "ms": 1}']);
  expect(result).toMatchObject({ status: 'ok', output: { waitedMs: 1 } });
  project.write('loops/broken.json', '{"id": "broken",\n "version": 3}');
  const broken = await project.run(['run', 'loops/broken.json', '--json']);
  expect(broken.code).toBe(1);
  expect(JSON.parse(broken.stdout)).toMatchObject({ error: { code: 'DEFINITION_INVALID' } });
  expect(broken.stderr).toContain('broken.json:2');
});

verifies('cli.contract', 'one bad file hides all loops, or nobody hears of it', async () => {
  const project = new Project();
  project.write('loops/broken.json', '{"id": ');
  const listed = await project.json<{ loops: { id: string }[]; bad: { file: string; line: number }[] }>(['list']);
  expect(listed.loops.map(({ id }) => id)).toEqual(['echo', 'fail', 'hello', 'pair', 'wait']);
  expect(listed.loops[2]).toEqual({
    id: 'hello',
    version: '1.0.0',
    kind: 'prompt',
    name: 'Says hello',
    file: project.path('loops/hello.json'),
  });
  expect(listed.bad).toMatchObject([{ file: project.path('loops/broken.json'), line: 1 }]);
  const human = await project.run(['list']);
  expect(human.code).toBe(0);
  expect(human.stdout).toMatch(/^LOOP +VERSION +KIND +DESCRIPTION\necho +1\.0\.0 +tool/);
  expect(human.stderr).toContain('One file could not be loaded');
  expect((await project.run(['run', 'hello', '--input', '{"name": "A"}'])).code).toBe(0);
});

verifies('cli.contract', 'nobody can see what a loop takes, gives and calls', async () => {
  const project = new Project();
  const shown = await project.json(['show', 'hello']);
  expect(shown).toMatchObject({
    definition: { id: 'hello', prompt: { template: 'Greet {{name}}.' } },
    digest: expect.any(String),
    versions: ['1.0.0'],
    calls: [],
    calledBy: ['pair@1.0.0'],
  });
  const human = await project.run(['show', 'pair']);
  expect(human.code).toBe(0);
  expect(human.stdout).toMatch(/calls +hello, wait/);
  const missing = await project.run(['show', 'helo', '--json']);
  expect(missing.code).toBe(1);
  expect((JSON.parse(missing.stdout) as Failed).error.code).toBe('LOOP_NOT_FOUND');
  expect(missing.stderr).toContain('Did you mean "hello"?');
});

verifies('cli.contract', 'a definition that cannot run passes the check', async () => {
  const project = new Project({ hello });
  expect(await project.json(['check'])).toEqual({
    ok: true,
    files: [{ file: project.path('loops/hello.json'), ok: true, errors: [], warnings: [] }],
    dangling: [],
    inFlight: [],
  });
  project.write('loops/strange.json', { ...hello, id: 'strange', colour: 'blue' });
  project.write('loops/schema.json', { ...hello, id: 'schema', inputSchema: { type: 'objekt' } });
  project.write('loops/caller.json', {
    ...tool('caller', 'echo'),
    kind: 'composite',
    tool: undefined,
    composite: { steps: [{ loopId: 'nobody', inputMapping: '$.input' }] },
  });
  const bad = await project.run(['check', '--json']);
  expect(bad.code).toBe(1);
  const findings = JSON.parse(bad.stdout);
  expect(findings.dangling).toEqual([{ loop: 'caller@1.0.0', stepIndex: 0, missing: 'nobody' }]);
  const of = (name: string): unknown =>
    findings.files.find(({ file }: { file: string }) => file === project.path(`loops/${name}.json`));
  expect(of('strange')).toMatchObject({ ok: true, warnings: [{ path: '/colour' }] });
  expect(of('schema')).toMatchObject({
    ok: false,
    errors: [{ path: expect.stringMatching(/^\/inputSchema/), line: expect.any(Number), reason: expect.any(String) }],
  });
  const human = await project.run(['check', 'loops/strange.json']);
  expect(human.code).toBe(0);
  expect(human.stdout).toContain('warning');
  expect((await project.run(['check', 'loops/nowhere.json'])).code).toBe(1);
});

verifies('policy.backend', 'check reports each backend that does not exist, with its file, path and line', async () => {
  const project = new Project({ hello });
  project.write('rondo.toml', '[backends.house]\nkind = "openai-compatible"\nbaseURL = "http://127.0.0.1:9/v1"\n');
  const fallback = [{ id: 'house' }, { id: 'nobody' }];
  const routing = [{ when: { promptLengthOver: 9 }, backend: { id: 'long' } }];
  project.write('loops/asks.json', { ...hello, id: 'asks', backend: { id: 'opnai' }, policy: { routing, fallback } });
  project.write('loops/known.json', { ...hello, id: 'known', backend: { id: 'house' } });
  const agent = { backend: { id: 'gone' }, tools: [] };
  project.write('loops/boss.json', {
    ...hello,
    id: 'boss',
    ...{ prompt: undefined, backend: undefined },
    kind: 'composite',
    composite: { agent },
  });
  const { code, stdout } = await project.run(['check', '--json']);
  expect(code).toBe(1);
  const findings = JSON.parse(stdout);
  const of = (name: string): { readonly ok: boolean; readonly errors: readonly { readonly path: string }[] } =>
    findings.files.find(({ file }: { file: string }) => file === project.path(`loops/${name}.json`));
  expect([of('known').ok, of('hello').ok]).toEqual([true, true]);
  expect(
    of('asks')
      .errors.map(({ path }) => path)
      .sort(),
  ).toEqual(['/backend/id', '/policy/fallback/1/id', '/policy/routing/0/backend/id']);
  expect(of('asks').errors).toContainEqual({
    ...{ path: '/backend/id', line: expect.any(Number), column: expect.any(Number) },
    reason: 'names the backend "opnai", which does not exist; did you mean "openai"?',
  });
  expect(of('boss')).toMatchObject({ ok: false, errors: [{ path: '/composite/agent/backend/id' }] });
  expect((await project.run(['check', 'loops/known.json'])).code).toBe(0);
  const human = await project.run(['check', 'loops/boss.json']);
  expect(human.stdout).toMatch(/boss\.json:\d+:\d+: \/composite\/agent\/backend\/id: names the backend "gone"/);
});

verifies('policy.applies', 'check reports a key without effect with its line, and a run refuses it', async () => {
  const project = new Project({ hello });
  project.write('loops/slow.json', { ...tool('slow', 'echo'), policy: { fallback: [{ id: 'mock' }] } });
  project.write('loops/asks.json', { ...tool('asks', 'echo'), backend: { id: 'mock' } });
  const { code, stdout } = await project.run(['check', '--json']);
  expect(code).toBe(1);
  const findings = JSON.parse(stdout);
  expect(findings.files).toContainEqual({
    file: project.path('loops/slow.json'),
    ok: false,
    errors: [
      {
        ...{ path: '/policy/fallback', line: expect.any(Number), column: expect.any(Number) },
        reason: 'has no effect on a tool; put it on the prompt or the agent that asks the model',
      },
    ],
    warnings: [],
  });
  const asks = findings.files.find(({ file }: { file: string }) => file === project.path('loops/asks.json'));
  expect(asks).toMatchObject({ ok: true, warnings: [{ path: '/backend' }] });
  expect((await project.run(['run', 'slow'])).code).not.toBe(0);
});

verifies('cli.contract', 'a turn cannot be found again', async () => {
  const project = new Project();
  const { turnId, sessionId } = await project.json<TurnResult>(['run', 'hello', '--input', '{"name": "Ada"}']);
  await project.run(['run', 'fail', '--session', 'mine']);
  await project.run(['run', 'echo', '--session', 'mine']);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  expect(runs.map(({ loopId }) => loopId)).toEqual(['echo', 'fail', 'hello']);
  const errors = await project.json<{ runs: TurnStatus[] }>(['runs', '--status', 'error', '--limit', '5']);
  expect(errors.runs).toMatchObject([{ loopId: 'fail', status: 'error', error: { code: 'TOOL_FAILED' } }]);
  const one = await project.json<{ runs: TurnStatus[] }>(['runs', '--limit', '1']);
  expect(one.runs).toHaveLength(1);
  expect((await project.run(['runs'])).stdout).toMatch(/^TURN +LOOP +STATUS/);
  expect(await project.json(['status', turnId])).toMatchObject({ turnId, sessionId, status: 'ok', loopId: 'hello' });
  expect(await project.json(['status', turnId.slice(0, 8)])).toMatchObject({ turnId });
  const session = await project.json<{ turns: TurnStatus[] }>(['status', 'mine']);
  expect(session).toMatchObject({ sessionId: 'mine', turns: [{ loopId: 'fail' }, { loopId: 'echo' }] });
  const vague = await project.run(['trace', 'mine']);
  expect(vague.code).toBe(64);
  expect(vague.stderr).toContain('matches 2 turns');
  const none = await project.run(['status', 's-nothing', '--json']);
  expect(none.code).toBe(1);
  expect((JSON.parse(none.stdout) as Failed).error.code).toBe('TURN_NOT_FOUND');
});

verifies('cli.contract', 'the trace is not the events of the run', async () => {
  const project = new Project();
  const { turnId, trace } = await project.json<TurnResult>(['run', 'pair', '--input', '{"name": "A", "ms": 1}']);
  const lines = (await project.run(['trace', turnId, '--json'])).stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as TraceEvent)).toEqual(trace);
  const human = await project.run(['trace', turnId]);
  expect(human.code).toBe(0);
  expect(human.stdout).toContain('pair@1.0.0');
  expect(human.stdout).toContain('hello@1.0.0');
  const none = await project.run(['trace', 'nothing', '--json']);
  expect(none).toMatchObject({ code: 1, stdout: '' });
});

verifies('cli.contract', 'a replay that does not match passes', async () => {
  const project = new Project();
  project.write('loops/sum.mjs', loopInCode("'one'"));
  const trust = ['--trust', 'loops'];
  const { turnId } = await project.json<TurnResult>(['run', 'coded', ...trust]);
  expect(await project.json(['replay', turnId, ...trust])).toEqual({ matches: true, calls: 1 });
  project.write('loops/sum.mjs', loopInCode("'two'"));
  const changed = await project.run(['replay', turnId, '--now', '--json', ...trust]);
  expect(changed.code).toBe(3);
  expect(JSON.parse(changed.stdout)).toMatchObject({ matches: false, difference: expect.any(String) });
  expect((await project.run(['replay', turnId, '--now', ...trust])).stderr).toContain('does not match');
});

/** A module with a loop that says something; the package is imported as it was built. */
function loopInCode(value: string): string {
  const library = new URL('../../dist/index.js', import.meta.url);
  return `import { defineLoop } from ${JSON.stringify(library)};
    const any = {};
    export const coded = defineLoop({ id: 'coded', input: any, output: any, body: async () => ({ said: ${value} }) });`;
}

/** A module with a loop that hangs in an effect. */
function hanging(effect: string, remark: string): string {
  const library = new URL('../../dist/index.js', import.meta.url);
  return `import { defineLoop } from ${JSON.stringify(library)};
    const perform = () => new Promise((resolve) => setTimeout(resolve, 600_000));
    const body = async (_, scope) => {
      /* ${remark} */
      return scope.effect({ kind: 'thing', name: '${effect}', input: null, safety: 'idempotent', perform });
    };
    export const hangs = defineLoop({ id: 'hangs', input: {}, output: {}, body });`;
}

verifies('cli.contract', 'a change that breaks a run in flight is not noticed before it is resumed', async () => {
  const project = new Project({ hello });
  project.trusted = true;
  project.write('loops/hangs.mjs', hanging('first', 'as it was'));
  const { child, ended } = project.start(['run', 'hangs', '--session', 'flight']);
  await until(async () => (await project.json<{ runs?: TurnStatus[] }>(['runs'])).runs?.length === 1 || undefined);
  child.kill('SIGKILL');
  await ended;
  const { turnId } = (await project.json<{ turns: TurnStatus[] }>(['status', 'flight'])).turns[0] ?? { turnId: '' };
  expect(await project.json(['check'])).toMatchObject({ ok: true, inFlight: [{ turnId, changed: [], breaks: false }] });
  project.write('loops/hangs.mjs', hanging('first', 'with another remark'));
  const harmless = { changed: [{ loop: 'hangs@1.0.0', now: 'changed', breaks: false }], breaks: false };
  expect(await project.json(['check'])).toMatchObject({ ok: true, inFlight: [{ turnId, ...harmless }] });
  project.write('loops/hangs.mjs', hanging('second', 'as it was'));
  const broken = await project.run(['check', '--json']);
  expect(broken.code).toBe(1);
  expect(JSON.parse(broken.stdout)).toMatchObject({ ok: false, inFlight: [{ turnId, breaks: true }] });
  expect((await project.run(['check'])).stdout).toContain(`turn ${turnId} of hangs@1.0.0 is in flight`);
  const resumed = await project.run(['resume', turnId, '--json']);
  expect(resumed.code).toBe(70);
  expect(JSON.parse(resumed.stdout)).toMatchObject({ error: { code: 'REPLAY_MISMATCH' } });
  rmSync(project.path('loops/hangs.mjs'));
  expect((await project.run(['check'])).code).toBe(1);
});

verifies('cli.contract', 'two turns cannot be held against each other', async () => {
  const project = new Project();
  const turn = async (name: string): Promise<string> =>
    (await project.json<TurnResult>(['run', 'hello', '--input', JSON.stringify({ name })])).turnId;
  const [a, b] = [await turn('Ada'), await turn('Grace Hopper')];
  expect(await project.json(['diff', a, b])).toMatchObject({ a, b, same: false });
  const human = await project.run(['diff', a, b]);
  expect(human.code).toBe(0);
  expect(human.stdout).toContain('output');
});

verifies('cli.contract', 'a run that is told its seed and time is another each time, or two are one', async () => {
  const turns = async (): Promise<string[]> => {
    const project = new Project();
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) {
      const result = await project.json<TurnResult>(['run', 'echo', '--session', 'same'], seed);
      expect(result.startedAt).toMatch(/^2030-01-01T00:00:/);
      ids.push(result.turnId);
    }
    return ids;
  };
  const [first, second] = [await turns(), await turns()];
  expect(new Set(first).size).toBe(3);
  expect(second).toEqual(first);
});

verifies('cli.contract', 'looking leaves a store behind where none was', async () => {
  const project = new Project();
  expect(await project.json(['runs'])).toEqual({ runs: [] });
  expect((await project.run(['run', 'nobody'])).code).toBe(1);
  expect((await project.run(['check'])).code).toBe(0);
  expect((await project.run(['doctor'])).code).toBe(0);
  expect((await project.run(['list'])).code).toBe(0);
  expect(project.has('.rondo')).toBe(false);
});

verifies('cli.contract', 'a setting goes to the wrong place', async () => {
  const project = new Project();
  project.write('rondo.toml', 'data = "from-config"\nloops = "loops"\n');
  const args = ['run', 'echo'];
  expect((await project.run(args)).code).toBe(0);
  expect(project.has('from-config/journal.db')).toBe(true);
  await project.run(args, { env: { RONDO_DATA: 'from-env' } });
  expect(project.has('from-env/journal.db')).toBe(true);
  await project.run(['--data', 'from-flag', ...args], { env: { RONDO_DATA: 'from-nowhere' } });
  await project.run([...args, '--store', 'sqlite:other/file.db', '--data', 'from-flag-too']);
  expect(project.has('from-flag/journal.db')).toBe(true);
  expect(project.has('other/file.db')).toBe(true);
  expect(project.has('from-nowhere')).toBe(false);
  const memory = await project.run([...args, '--store', 'memory:', '--data', 'from-memory']);
  expect(memory.code).toBe(0);
  expect(project.has('from-memory')).toBe(false);
  project.write('rondo.toml', 'dta = "x"\n');
  const wrong = await project.run(['list', '--json']);
  expect(wrong.code).toBe(70);
  expect((JSON.parse(wrong.stdout) as Failed).error.code).toBe('CONFIG_INVALID');
});

verifies(
  'cli.contract',
  'a data directory that cannot be used is told as an internal failure, with a stack',
  async () => {
    const project = new Project();
    project.write('occupied', 'a file');
    const { code, stdout, stderr } = await project.run(['run', 'echo', '--data', 'occupied/inside', '--json']);
    expect(code).toBe(70);
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: expect.stringMatching(/^STORE_/) } });
    expect(stderr).not.toMatch(/^\s+at /m);
  },
);

verifies('cli.contract', 'the doctor sees nothing wrong, or tells a secret', async () => {
  const project = new Project();
  const secret = 'sk-very-secret';
  const good = await project.run(['doctor', '--json'], { env: { OPENAI_API_KEY: secret } });
  expect(good.code).toBe(0);
  expect(good.stdout + good.stderr).not.toContain(secret);
  const { ok, checks } = JSON.parse(good.stdout);
  expect(ok).toBe(true);
  expect(checks).toContainEqual({ name: 'backend', status: 'ok', message: 'openai: OPENAI_API_KEY is set' });
  project.write('loops/broken.json', '[');
  const bad = await project.run(['doctor']);
  expect(bad.code).toBe(1);
  expect(bad.stdout).toMatch(/^fail {2}loops .*broken\.json/m);
  project.write('rondo.toml', 'nonsense = 1\n');
  expect((await project.run(['doctor'])).stdout).toMatch(/^fail {2}config .*nonsense/m);
});

verifies('cli.contract', 'the conformance of this runtime cannot be asked for', async () => {
  const project = new Project();
  const some = await project.run(['conformance', '--only', 'DEF-01,VAL-01', '--json']);
  const report = JSON.parse(some.stdout);
  expect(report.checks.filter(({ status }: { status: string }) => status === 'pass')).toHaveLength(2);
  expect(some.code).toBe(0);
  expect((await project.run(['conformance', '--only', 'DEF-99'])).code).toBe(64);
  expect((await project.run(['conformance', '--only', 'DEF-01'])).stdout).toContain('DEF-01');
});
