// Context files from the command line: below the directory of the definition, and skills of the definitions directory.

import { rmSync } from 'node:fs';
import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project, schemas, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const act = { ...tool('act', 'echo'), policy: { approval: 'ask' } };
const agent = (contextSkills: readonly string[]): object => ({
  ...{ id: 'helper', name: 'helper', version: '1.0.0', kind: 'composite', ...schemas() },
  composite: { agent: { backend: { id: 'scripted', model: 'helper.script.json' }, tools: ['act'], contextSkills } },
});

function projectOf(contextSkills: readonly string[]): Project {
  const project = new Project({ act, helper: agent(contextSkills) });
  const script = [
    { expect: ['Refunds need a receipt.', 'Be brief.'], toolCalls: [{ name: 'act', args: {} }] },
    { text: 'done' },
  ];
  project.write('loops/helper.script.json', script);
  project.write('loops/guide.md', 'Refunds need a receipt.');
  project.write('loops/skills/tone/SKILL.md', 'Be brief.');
  return project;
}

verifies(
  'context.changed',
  'a turn reads its context, stops when a file has changed, and continues once it is restored',
  async () => {
    const project = projectOf(['guide.md', 'skill:tone']);
    const { turnId, status } = await project.json<TurnResult>(['run', 'helper', '--input', '{"prompt":"x"}']);
    expect(status).toBe('paused');
    project.write('loops/guide.md', 'Refunds need nothing.');
    const { approvals } = await project.json<{ approvals: { id: string }[] }>(['approvals']);
    const [approval] = approvals;
    const stopped = await project.run(['approve', approval?.id ?? '', '--as', 'bob', '--json']);
    expect(stopped.stdout).toContain('CONTEXT_CHANGED');
    expect((await project.run(['worker', '--once'])).stderr).toContain('CONTEXT_CHANGED');
    project.write('loops/guide.md', 'Refunds need a receipt.');
    expect(await project.json(['resume', turnId])).toMatchObject({ status: 'ok', output: { text: 'done' } });
    rmSync(project.path('loops/guide.md'));
    expect((await project.run(['replay', turnId])).code).toBe(0);
  },
);

verifies(
  'context.files',
  'a file that is missing fails the turn, and its message says where it was looked for',
  async () => {
    const project = projectOf(['guide.md', 'skill:none']);
    const failed = await project.run(['run', 'helper', '--input', '{"prompt":"x"}', '--json']);
    expect(failed.code).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({
      error: { code: 'CONTEXT_REFUSED', message: expect.stringContaining('skills/none.md') },
    });
  },
);

verifies('context.references', 'rondo check reports a reference that leaves the directory', async () => {
  const project = projectOf(['../secret.md']);
  const checked = await project.run(['check', '--json']);
  expect(checked.code).toBe(1);
  expect(checked.stdout).toContain('/composite/agent/contextSkills/0');
});
