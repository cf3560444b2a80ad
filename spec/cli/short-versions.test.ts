// The version of a workflow without one is the digest of its plan: people see the first digits of it.

import { expect } from 'vitest';
import { tool } from '../support/cli-project.js';
import { workflowProject } from '../support/workflow-project.js';
import { verifies } from '../verifies.js';

verifies('cli.contract', 'tables and messages show a short version of a workflow, and JSON the whole one', async () => {
  const project = workflowProject({
    'flow.toml': '[[steps]]\nloop = "lint"\n',
    'outer.toml': '[[steps]]\nworkflow = "flow"\n[[steps]]\nloop = "boom"\n',
    'boom.json': tool('boom', 'fail'),
  });
  const { turnId } = await project.json<{ turnId: string }>(['run', 'outer']);
  const { runs } = await project.json<{ runs: { loopVersion: string }[] }>(['runs']);
  const version = runs[0]?.loopVersion ?? '';
  expect(version).toMatch(/^0\.0\.0\+[0-9a-f]{64}$/);
  const verbs = [
    ['list'],
    ['runs'],
    ['status', turnId],
    ['trace', turnId],
    ['show', turnId],
    ['show', 'outer', '--mermaid'],
  ];
  verbs.push(['run', 'outer', '--watch'], ['diff', turnId, turnId], ['run', 'flow@9.9.9'], ['check']);
  for (const args of verbs) {
    const { stdout, stderr } = await project.run(args);
    expect(`${args.join(' ')}: ${stdout}${stderr}`).not.toMatch(/\+[0-9a-f]{9}/);
  }
  const [list, shown] = [await project.run(['list']), await project.run(['show', 'flow'])];
  expect(list.stdout).toContain(version.slice(0, 14));
  expect(shown.stdout).toMatch(/^flow 0\.0\.0\+[0-9a-f]{8} /);
});

verifies('cli.contract', 'a version that a table shows can be used', async () => {
  const project = workflowProject({ 'flow.toml': '[[steps]]\nloop = "lint"\n' });
  const [, short = ''] = /flow +(0\.0\.0\+[0-9a-f]{8}) /.exec((await project.run(['list'])).stdout) ?? [];
  for (const args of [
    ['run', `flow@${short}`],
    ['run', 'flow', '--version', short],
    ['run', 'loops/flow.toml', '--version', short],
  ])
    expect(await project.json(args), args.join(' ')).toMatchObject({ status: 'ok' });
});
