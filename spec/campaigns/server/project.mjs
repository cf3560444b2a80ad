// A project of the command line with the loops of the server.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Creates the project and returns its directory. @param {string} folder */
export function createProject(folder) {
  const project = join(folder, 'project');
  mkdirSync(join(project, 'loops'), { recursive: true });
  for (const name of ['loops', 'desk-loops']) {
    const url = new URL(`${name}.mjs`, import.meta.url).href;
    writeFileSync(join(project, 'loops', `${name}.loop.mjs`), `export * from '${url}';\n`);
  }
  return project;
}
