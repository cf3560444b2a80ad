// A project with workflow files, loaded in this process.

import { join } from 'node:path';
import { type Definitions, loadLoops, loadSettings } from '../../src/surfaces/compose.js';
import { Project } from './cli-project.js';

/** One problem, as `rondo check --json` reports it. */
interface Problem {
  readonly file: string;
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly reason: string;
}

/** A tool whose output has a list of errors and a score. */
export const lint = {
  id: 'lint',
  name: 'lint',
  version: '1.0.0',
  kind: 'tool',
  inputSchema: { type: 'object' },
  outputSchema: {
    type: 'object',
    properties: {
      errors: { type: 'array', items: { type: 'object', properties: { line: { type: 'integer' } } } },
      score: { type: 'number' },
    },
  },
  tool: { implementation: 'builtin:echo', safety: 'pure' },
};

/** The verbs of actions, all bound to `lint`. */
export const VERBS = '[verbs]\nview = "lint"\nanalyze = "lint"\nedit = "lint"\n';

/** Writes workflow files into a new project, next to the tool `lint`. */
export function workflowProject(files: Readonly<Record<string, string | object>>): Project {
  const project = new Project({ lint });
  project.write('rondo.toml', VERBS);
  for (const [name, content] of Object.entries(files)) project.write(join('loops', name), content);
  return project;
}

/** Loads the definitions of a project. */
export async function load({ directory }: Project): Promise<Definitions> {
  return loadLoops(await loadSettings({ flags: {}, env: {}, cwd: directory }));
}

/** Returns the problems of workflow files, each with its place and without its directory. */
export async function problemsOf(files: Readonly<Record<string, string | object>>): Promise<readonly Problem[]> {
  const { badFiles } = await load(workflowProject(files));
  return badFiles.map(({ file, path = '', line = 0, column = 0, reason }) => {
    const name = file.slice(file.lastIndexOf('/') + 1);
    return { file: name, path, line, column, reason };
  });
}
