// Kills a workflow file that edits three files, in the middle of each edit, and resumes it with the command line: each file
// is edited exactly once.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { type ProcessResult, Project } from '../support/cli-project.js';
import { inLanes } from '../support/lanes.js';
import { pendingOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

const library = new URL('../../lib/index.js', import.meta.url);

const WORKFLOW = `
[workflow]
name = "three-edits"

[[states]]
name = "first"
action = "edit a.txt 'a line'"
transitions = [{ next = "second" }]

[[states]]
name = "second"
action = "edit b.txt 'a line'"
on_exit = "check b.txt"
transitions = [{ condition = "has_errors", next = "failed" }, { next = "third" }]

[[states]]
name = "third"
on_entry = "check c.txt"
action = "edit c.txt 'a line'"
`;

/** Tools that append a line to a file. \`KILL_AT\` names the moment at which the process kills itself. */
const toolsWith = (safety: string): string => `import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { defineLoop } from ${JSON.stringify(library)};
const anything = { input: true, output: true };
const reach = (moment) => {
  if (process.env.KILL_AT === moment) process.kill(process.pid, 'SIGKILL');
};
const hasKey = (file, key) => existsSync(file) && readFileSync(file, 'utf8').includes(key);
export const append = defineLoop({ ...anything, id: 'append', safety: '${safety}', tool: ({ args }, { idempotencyKey }) => {
  const [file, line] = args;
  reach('before ' + file);
  const isRepeated = ${safety === 'keyed'} && hasKey(file, idempotencyKey);
  if (!isRepeated) appendFileSync(file, idempotencyKey + ' ' + line + '\\n');
  reach('after ' + file);
  return { edited: file };
} });
export const check = defineLoop({ ...anything, id: 'check', safety: 'pure', tool: ({ args }) => {
  reach('check ' + args[0]);
  return { checked: args[0] };
} });
`;

function projectWith(safety: string): Project {
  const project = new Project({});
  project.write('loops/three-edits.toml', WORKFLOW);
  project.write('loops/tools.mjs', toolsWith(safety));
  project.write('rondo.toml', '[verbs]\nedit = "append"\ncheck = "check"\n');
  project.trusted = true;
  return project;
}

const FILES = ['a.txt', 'b.txt', 'c.txt'];
const MOMENTS = [...FILES.flatMap((file) => [`before ${file}`, `after ${file}`]), 'check b.txt', 'check c.txt'];

const resultOf = ({ stdout, stderr }: ProcessResult): TurnResult => {
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout) as TurnResult;
};

/** Starts the workflow in a process that is killed at this moment. */
async function killAt(project: Project, moment: string): Promise<void> {
  const killed = await project.runProcess(['run', 'three-edits', '--session', 's', '--json'], {
    env: { KILL_AT: moment },
  });
  expect(killed.signal, killed.stderr).toBe('SIGKILL');
}

function expectEditedOnce(project: Project, result: TurnResult, moment: string): void {
  expect(result, moment).toMatchObject({ status: 'ok', output: { edited: 'c.txt' } });
  for (const file of FILES) expect(project.read(file), `${file}, killed ${moment}`).toMatch(/^\S+ a line\n$/);
}

verifies(
  'kernel.kill',
  'a killed workflow resumes and edits each file once with a keyed tool',
  async () => {
    await inLanes(MOMENTS, async (moment) => {
      const project = projectWith('keyed');
      await killAt(project, moment);
      expectEditedOnce(project, resultOf(await project.runProcess(['resume', 's', '--json'])), moment);
    });
  },
  300_000,
);

verifies(
  'kernel.kill',
  'a killed once edit of a workflow is in doubt until a person resolves it, and happens once',
  async () => {
    await inLanes(MOMENTS, async (moment) => {
      const project = projectWith('once');
      await killAt(project, moment);
      const resumed = resultOf(await project.runProcess(['resume', 's', '--json']));
      const [doubt] = pendingOf(resumed);
      expect(doubt, moment).toMatchObject({ kind: 'doubt', name: 'append' });
      const [file = ''] = ((doubt?.input ?? { args: [] }) as { readonly args: readonly string[] }).args;
      const happened = project.has(file);
      // The result of an edit is durable before the next effect that is not pure. Until then, a check changes nothing.
      expect(happened, moment).toBe(!moment.startsWith('before'));
      const resolution = happened ? ['--result', JSON.stringify({ edited: file })] : ['--retry'];
      const resolved = await project.runProcess(['resolve', doubt?.key ?? '', ...resolution, '--as', 'ada', '--json']);
      expectEditedOnce(project, resultOf(resolved), moment);
    });
  },
  300_000,
);
