// Definitions in TypeScript, in projects with and without a loader, which changes its process.

import { mkdirSync, symlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A definition with syntax that Node cannot strip, and an import that only loaders resolve. */
const GREET = `import { defineLoop, LoopError } from 'rondo';
import { suffix } from './lib/suffix.js';
enum Mood { Happy = 'happy' }
export const greet = defineLoop({
  id: 'greet',
  input: { type: 'object' },
  output: { type: 'object' },
  run: async ({ name }: { name?: string }) => {
    if (name === undefined) throw new LoopError('TOOL_FAILED', 'no name');
    return { text: \`Hello \${name}\${suffix}\`, mood: Mood.Happy as string };
  },
});
`;

/** A project with a definition in TypeScript, and these packages of this repository. */
function typeScriptProject(packages: readonly string[], type = 'module'): Project {
  const project = new Project({});
  project.trusted = true;
  project.write('package.json', { type });
  project.write('loops/greet.ts', GREET);
  project.write('loops/lib/suffix.ts', "export const suffix: string = '!';\n");
  mkdirSync(project.path('node_modules'));
  symlinkSync(root, project.path('node_modules/rondo'));
  for (const name of packages) symlinkSync(`${root}/node_modules/${name}`, project.path(`node_modules/${name}`));
  return project;
}

for (const [name, type] of [
  ['tsx', 'module'],
  ['tsx', 'commonjs'],
  ['jiti', 'module'],
  ['jiti', 'commonjs'],
] as const) {
  verifies('definition.typescript', `${name} of the project runs TypeScript in a ${type} package`, async () => {
    const project = typeScriptProject([name], type);
    const result = await project.jsonProcess(['run', 'greet', '--input', '{"name": "Ada"}']);
    expect(result).toMatchObject({ status: 'ok', output: { text: 'Hello Ada!', mood: 'happy' } });
    // The class of an error is that of the runtime, so its code is kept; tsx loads a second one in a CommonJS package.
    if (name === 'tsx' && type === 'commonjs') return;
    expect(await project.jsonProcess(['run', 'greet'])).toMatchObject({
      status: 'error',
      error: { code: 'TOOL_FAILED' },
    });
  });
}

verifies('definition.typescript', 'without a loader, the message says what to install', async () => {
  const project = typeScriptProject([]);
  const { files } = await project.jsonProcess<{ files: { errors: { reason: string }[] }[] }>(['check']);
  expect(files[0]?.errors[0]?.reason).toMatch(
    /npm install --save-dev tsx|enum is not supported|Cannot find module .*suffix\.js/,
  );
});
