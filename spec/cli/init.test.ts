// `rondo init`: the files that it writes, and those that it leaves alone.

import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Versions {
  readonly version: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

const manifestOf = (file: string): Versions => JSON.parse(readFileSync(file, 'utf8')) as Versions;

const FILES = [
  '.env.example',
  '.gitignore',
  'README.md',
  'loops/greet.ts',
  'loops/support.script.json',
  'loops/support.ts',
  'package.json',
  'test/loops.test.ts',
  'tsconfig.json',
];

verifies('cli.init', 'an empty directory becomes a project, and the next commands are printed', async () => {
  const project = new Project({});
  const { code, stdout, stderr } = await project.run(['init', 'my shop']);
  expect([code, stdout]).toEqual([0, '']);
  expect(stderr).toContain('cd "my shop"\n  npm install\n  npm test\n');
  const report = await project.json(['init', 'other']);
  expect(report).toMatchObject({ ok: true, directory: project.path('other'), conflicts: [] });
  expect([...(report.created as string[])].sort()).toEqual(FILES);
  const names = readdirSync(project.path('other'), { recursive: true, encoding: 'utf8' });
  expect(names.filter((name) => !['loops', 'test'].includes(name)).sort()).toEqual(FILES);
  expect(JSON.parse(project.read('my shop/package.json'))).toMatchObject({ name: 'my-shop', private: true });
  expect(project.read('other/.gitignore')).toMatch(/^\.rondo\/\n\.env$/m);
});

verifies('cli.init', 'an existing file is never overwritten, and nothing else is written then', async () => {
  const project = new Project({});
  project.write('package.json', '{"name": "mine"}');
  mkdirSync(project.path('loops'));
  symlinkSync('/nowhere', project.path('loops/greet.ts'));
  const { code, stderr } = await project.run(['init']);
  expect(code).toBe(1);
  expect(stderr).toMatch(/these files exist in .*:\n {2}loops\/greet\.ts\n {2}package\.json\n/);
  expect(stderr).toContain('choose an empty directory: rondo init DIR\nTo add Rondo to this project:\n');
  for (const command of ['npm install rondo zod', 'mkdir -p loops ', 'npx rondo trust . ', 'npx rondo list'])
    expect(stderr).toContain(`\n  ${command}`);
  expect(await project.json(['init'])).toMatchObject({
    ok: false,
    created: [],
    conflicts: ['loops/greet.ts', 'package.json'],
  });
  expect(project.read('package.json')).toBe('{"name": "mine"}');
  expect(readdirSync(project.directory).sort()).toEqual(['loops', 'package.json']);
});

verifies('cli.init', 'the project has the exact versions that this package is tested with', () => {
  const template = manifestOf(join(root, 'templates/init/package.json'));
  const own = manifestOf(join(root, 'package.json'));
  const { rondo, ...others } = { ...template.dependencies, ...template.devDependencies };
  expect(rondo).toBe(own.version);
  for (const [name, version] of Object.entries(others))
    expect([name, version]).toEqual([name, own.devDependencies[name]]);
});
