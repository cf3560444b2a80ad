// The project that `rondo init` creates: its tests, types and loops.

import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Links the packages of a new project to those of this repository, as npm would install them. */
function install(project: Project): void {
  const { dependencies, devDependencies } = JSON.parse(project.read('package.json')) as Record<string, object>;
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    mkdirSync(join(project.path('node_modules'), name, '..'), { recursive: true });
    symlinkSync(name === 'rondo' ? root : join(root, 'node_modules', name), join(project.path('node_modules'), name));
  }
}

/** Runs a program in a project. */
function runIn(project: Project, args: readonly string[]): { status: number | null; output: string } {
  const { PATH = '', HOME = '' } = process.env;
  const result = spawnSync(process.execPath, args, { cwd: project.directory, env: { PATH, HOME }, encoding: 'utf8' });
  return { status: result.status, output: `${result.stdout}${result.stderr}` };
}

verifies('cli.init', 'the test of the project passes, its types are right, and its loops run', async () => {
  const project = new Project({});
  await project.run(['init']);
  install(project);
  const test = runIn(project, ['--import', 'tsx', '--test', 'test/loops.test.ts']);
  expect([test.status, test.output]).toEqual([0, expect.stringMatching(/pass 2/)]);
  const types = runIn(project, [join(root, 'node_modules/typescript/bin/tsc')]);
  expect(types).toEqual({ status: 0, output: '' });
  project.trusted = true;
  const greeting = await project.jsonProcess(['run', 'greet', '--input', '{"name": "Ada"}']);
  expect(greeting).toMatchObject({ status: 'ok', output: { text: 'Hello Ada!' } });
  const prompt = ['--input', '{"prompt": "My lamp broke."}'];
  expect(await project.jsonProcess(['run', 'support', ...prompt])).toMatchObject({ status: 'paused' });
  const { approvals } = await project.json<{ approvals: { id: string; tool: string }[] }>(['approvals']);
  const [approval] = approvals;
  expect(await project.jsonProcess(['approve', approval?.id ?? '', '--as', 'ada'])).toMatchObject({
    turn: { status: 'ok', output: { text: expect.stringContaining('refunded 19.00') } },
  });
  expect(await project.jsonProcess(['check'])).toMatchObject({ ok: true });
});
