// Output to pipes and terminals, with and without colours.

import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

verifies('cli.contract', '--watch prints to stderr and leaves stdout to the result', async () => {
  const project = new Project();
  const args = ['run', 'pair', '--input', '{"name": "Ada", "ms": 1}', '--watch'];
  const { code, stdout, stderr } = await project.run([...args, '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ status: 'ok' });
  expect(stderr).toContain('hello@1.0.0');
  expect(stderr).toContain('wait@1.0.0');
});
