// Settings, the data directory, and the verbs doctor and conformance.

import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

interface Failed {
  readonly error: { readonly code: string; readonly message: string };
}

verifies('cli.contract', 'a verb that only reads creates no store', async () => {
  const project = new Project();
  expect(await project.json(['runs'])).toEqual({ runs: [] });
  expect((await project.run(['run', 'unknown'])).code).toBe(1);
  expect((await project.run(['check'])).code).toBe(0);
  expect((await project.run(['doctor'])).code).toBe(0);
  expect((await project.run(['list'])).code).toBe(0);
  expect(project.has('.rondo')).toBe(false);
});

verifies('cli.contract', 'a flag overrides the environment, which overrides the config file', async () => {
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

verifies('cli.contract', 'an unusable data directory is a store error without a stack', async () => {
  const project = new Project();
  project.write('occupied', 'a file');
  const { code, stdout, stderr } = await project.run(['run', 'echo', '--data', 'occupied/inside', '--json']);
  expect(code).toBe(70);
  expect(JSON.parse(stdout)).toMatchObject({ error: { code: expect.stringMatching(/^STORE_/) } });
  expect(stderr).not.toMatch(/^\s+at /m);
});

verifies('cli.contract', 'doctor reports problems and prints no secret', async () => {
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

verifies('cli.contract', 'conformance checks this runtime, and selected checks with --only', async () => {
  const project = new Project();
  const some = await project.run(['conformance', '--only', 'DEF-01,VAL-01', '--json']);
  const report = JSON.parse(some.stdout);
  expect(report.checks.filter(({ status }: { status: string }) => status === 'pass')).toHaveLength(2);
  expect(some.code).toBe(0);
  expect((await project.run(['conformance', '--only', 'DEF-99'])).code).toBe(64);
  expect((await project.run(['conformance', '--only', 'DEF-01'])).stdout).toContain('DEF-01');
});
