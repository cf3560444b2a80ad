// The verbs that list, show and check definitions: their output and exit codes.

import { expect } from 'vitest';
import { hello, Project, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

interface Failed {
  readonly error: { readonly code: string; readonly message: string };
}

verifies('cli.contract', 'a bad file is reported, and the other loops are listed and run', async () => {
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

verifies('definition.failed', 'run, show and chat report why a definition failed to load', async () => {
  const project = new Project();
  project.write('loops/hello.json', { ...hello, kind: 'promt' });
  const file = project.path('loops/hello.json');
  const flaw = { file, path: '/kind', line: 5, column: expect.any(Number), reason: expect.any(String) };
  for (const verb of ['run', 'show', 'chat']) {
    const { code, stdout, stderr } = await project.run([verb, 'hello', '--json']);
    expect(code).toBe(1);
    expect(stderr).toContain(`DEFINITION_INVALID: The loop "hello" could not be loaded: ${file}:5:`);
    if (verb === 'chat') continue;
    const { error } = JSON.parse(stdout);
    expect(error).toMatchObject({ code: 'DEFINITION_INVALID', details: { loopId: 'hello', flaws: [flaw] } });
    expect(error.message).toContain(`${file}:5:`);
  }
  const pair = await project.json<Failed>(['run', 'pair', '--input', '{"name": "A", "ms": 1}']);
  expect(pair.error).toMatchObject({ code: 'DEFINITION_INVALID', message: expect.stringContaining(`${file}:5:`) });
});

verifies('cli.contract', 'show prints a definition, its versions, calls and callers', async () => {
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

verifies('cli.contract', 'check rejects a definition that cannot run', async () => {
  const project = new Project({ hello });
  expect(await project.json(['check'])).toEqual({
    ok: true,
    files: [{ file: project.path('loops/hello.json'), ok: true, errors: [], warnings: [] }],
    skipped: [],
    inFlight: [],
  });
  project.write('loops/strange.json', { ...hello, id: 'strange', colour: 'blue' });
  project.write('loops/schema.json', { ...hello, id: 'schema', inputSchema: { type: 'objekt' } });
  project.write('loops/caller.json', {
    ...tool('caller', 'echo'),
    kind: 'composite',
    tool: undefined,
    composite: { steps: [{ loopId: 'unknown', inputMapping: '$.input' }] },
  });
  const bad = await project.run(['check', '--json']);
  expect(bad.code).toBe(1);
  const findings = JSON.parse(bad.stdout);
  const resultOf = (name: string): unknown =>
    findings.files.find(({ file }: { file: string }) => file === project.path(`loops/${name}.json`));
  expect(resultOf('caller'), 'an unknown loop has no file and line').toMatchObject({
    ok: false,
    errors: [
      {
        path: '/composite/steps/0/loopId',
        line: expect.any(Number),
        column: expect.any(Number),
        reason: 'calls "unknown", which does not exist',
      },
    ],
  });
  expect(resultOf('strange')).toMatchObject({ ok: true, warnings: [{ path: '/colour' }] });
  expect(resultOf('schema')).toMatchObject({
    ok: false,
    errors: [{ path: expect.stringMatching(/^\/inputSchema/), line: expect.any(Number), reason: expect.any(String) }],
  });
  const human = await project.run(['check', 'loops/strange.json']);
  expect(human.code).toBe(0);
  expect(human.stdout).toContain('warning');
  expect((await project.run(['check', 'loops/nowhere.json'])).code).toBe(1);
});

verifies(
  'policy.backend',
  'check reports each backend that is not configured, with its file, path and line',
  async () => {
    const project = new Project({ hello });
    project.write('rondo.toml', '[backends.house]\nkind = "openai-compatible"\nbaseURL = "http://127.0.0.1:9/v1"\n');
    const fallback = [{ id: 'house' }, { id: 'unknown' }];
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
    const resultOf = (name: string): { readonly ok: boolean; readonly errors: readonly { readonly path: string }[] } =>
      findings.files.find(({ file }: { file: string }) => file === project.path(`loops/${name}.json`));
    expect([resultOf('known').ok, resultOf('hello').ok]).toEqual([true, true]);
    expect(
      resultOf('asks')
        .errors.map(({ path }) => path)
        .sort(),
    ).toEqual(['/backend/id', '/policy/fallback/1/id', '/policy/routing/0/backend/id']);
    expect(resultOf('asks').errors).toContainEqual({
      ...{ path: '/backend/id', line: expect.any(Number), column: expect.any(Number) },
      reason:
        '"opnai" is not configured; did you mean "openai"? ' +
        'Configured: anthropic, openai, openai-compatible, scripted, mock, house',
    });
    expect(resultOf('boss')).toMatchObject({ ok: false, errors: [{ path: '/composite/agent/backend/id' }] });
    expect((await project.run(['check', 'loops/known.json'])).code).toBe(0);
    const human = await project.run(['check', 'loops/boss.json']);
    expect(human.stdout).toMatch(/boss\.json:\d+:\d+: \/composite\/agent\/backend\/id: "gone" is not configured/);
  },
);

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

verifies('cli.contract', 'run reports nothing about files that its loop does not need; check and list do', async () => {
  const project = new Project({ hello });
  project.write('loops/s1.toml', '[[steps]]\nloop = "hello"\ninput = { name = "literal:Ada" }\n');
  project.write('loops/s5.toml', '[[steps]]\nunknown = 1\n');
  project.write('loops/other.json', { ...tool('other', 'echo'), tols: [] });
  for (const args of [
    ['run', 'loops/s1.toml'],
    ['run', 's1'],
    ['show', 's1'],
  ]) {
    const { code, stderr } = await project.run(args);
    expect([code, stderr], args.join(' ')).toEqual([0, expect.not.stringMatching(/s5|could not be loaded|ignored/)]);
  }
  for (const verb of ['check', 'list']) {
    const { stdout, stderr } = await project.run([verb]);
    expect(stdout + stderr).toMatch(/s5\.toml:\d/);
  }
  const missing = await project.run(['run', 'gone']);
  expect(missing.stderr, 'a file may define a loop that was not found').toContain('s5.toml');
});
