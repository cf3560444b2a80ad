// What runs of a project without being a definition: no loader that is not trusted, and no script.

import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

/** A definition with syntax that Node cannot strip. */
const GREET = `import { defineLoop } from 'rondo';
enum Mood { Happy = 'happy' }
export const greet = defineLoop({ id: 'greet', input: {}, output: {}, run: async () => ({ mood: Mood.Happy as string }) });
`;

/** Returns the source of a script that creates a file when it runs. */
const creating = (file: string): string =>
  `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(file)}, '');\n`;

verifies('definition.typescript', 'a loader of a directory that is not trusted is not loaded', async () => {
  const project = new Project({});
  project.write('package.json', { type: 'module' });
  project.write('loops/greet.ts', GREET);
  for (const name of ['tsx', 'jiti']) {
    project.write(`node_modules/${name}/package.json`, { name, version: '99.0.0', type: 'module', main: 'index.js' });
    project.write(`node_modules/${name}/index.js`, creating(project.path('ran')));
  }
  for (const args of [['list'], ['check'], ['run', 'greet'], ['run', 'loops/greet.ts']]) await project.run(args);
  expect(project.has('ran')).toBe(false);
});

verifies('definition.scripts', 'no verb runs a script beside the definitions, and check names it', async () => {
  const project = new Project();
  project.trusted = true;
  const script = `${creating(project.path('seeded'))}export const done = 1;\n`;
  project.write('loops/seed-database.mjs', script);
  project.write('loops/seed.ts', script);
  for (const args of [['list'], ['show', 'hello'], ['run', 'echo'], ['resume', '--all']]) {
    expect((await project.run(args)).code).toBe(0);
  }
  const { ok, skipped } = await project.json<{ ok: boolean; skipped: { file: string; reason: string }[] }>(['check']);
  expect(ok).toBe(true);
  expect(skipped.map(({ file }) => file)).toEqual(
    ['seed-database.mjs', 'seed.ts'].map((name) => project.path(`loops/${name}`)),
  );
  expect(skipped[0]?.reason).toContain('exports nothing made with defineLoop');
  expect((await project.run(['check'])).stdout).toContain('skip  ');
  expect(project.has('seeded')).toBe(false);
});
