// The completion scripts of the shells. The script of bash runs in a real bash.

import { expect } from 'vitest';
import { verbs } from '../../src/surfaces/cli/verbs.js';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

verifies('cli.completion', 'every script names every verb, and other shells are usage errors', async () => {
  const project = new Project();
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await project.run(['completion', shell]);
    expect(code).toBe(0);
    for (const { name } of verbs) expect(stdout).toContain(name);
    expect(stdout).toContain('rondo completion ids');
  }
  expect(await project.run(['completion', 'tcsh'])).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('the shells are bash, zsh, fish'),
  });
  expect((await project.run(['completion', 'ids', 'nothing'])).code).toBe(64);
});
