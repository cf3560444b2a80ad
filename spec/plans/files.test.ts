// Workflow files: those of the document that they come from load and run, in any order and with any names.

import { expect } from 'vitest';
import { parseToml } from '../../src/adapters/files/parse-toml.js';
import type { Project } from '../support/cli-project.js';
import { renderToml } from '../support/toml-rendering.js';
import { lint, load, problemsOf, workflowProject } from '../support/workflow-project.js';
import { verifies } from '../verifies.js';
import { pythonWorkflow, seedWorkflows } from './seed-workflows.js';

/** Records its call. `analyze` and `view` report the remaining issues, and `edit` fixes one. */
const WORKER = `import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
const [issuesFile, logFile] = ['issues.txt', 'log.txt'].map((name) => join(import.meta.dirname, name));
export function work({ verb, args }) {
  const issues = readFileSync(issuesFile, 'utf8').split(' ').filter(Boolean);
  if (verb) appendFileSync(logFile, [verb, ...args].join('|') + '\\n');
  if (verb === 'edit') writeFileSync(issuesFile, issues.slice(1).join(' '));
  return verb === undefined ? issues : verb === 'edit' ? { edited: args[0] } : { errors: issues };
}
`;

/** Returns a trusted project whose verbs work on a list of two issues. */
function workshop(files: Readonly<Record<string, string>>): Project {
  const project = workflowProject(files);
  const worker = { ...lint, outputSchema: {}, tool: { implementation: 'module:worker.mjs#work', safety: 'once' } };
  for (const id of ['worker', 'find-issues']) project.write(`loops/${id}.json`, { ...worker, id, name: id });
  project.write('loops/worker.mjs', WORKER);
  project.write('loops/issues.txt', 'E1 E2');
  project.write('loops/log.txt', '');
  project.write('rondo.toml', '[verbs]\nview = "worker"\nanalyze = "worker"\nedit = "worker"\n');
  project.trusted = true;
  return project;
}

/** Runs a workflow, and returns its status and output, and the actions in their order. `reply` is that of a model. */
async function outcomeOf(text: string, more: readonly string[] = [], reply = 'fixing'): Promise<object> {
  const project = workshop({ 'flow.toml': text });
  project.write('loops/decide.script.json', [{ text: reply }]);
  const input = ['--input', '{"file": "a b.py"}'];
  const { status, output, error } = await project.json(['run', 'loops/flow.toml', ...input, ...more]);
  return {
    status,
    ...(error !== undefined && { error }),
    output,
    actions: project.read('loops/log.txt').trim().split('\n'),
  };
}

const [CHECK, FIX] = ['analyze|--health', 'edit|a b.py|fix issues'];

/** The workflows whose verbs are bound, and how they end. */
const outcomes: readonly (readonly [name: keyof typeof seedWorkflows, outcome: object, more?: readonly string[]])[] = [
  ['recipe', { status: 'ok', output: { edited: 'main.py' }, actions: ['view|.', 'edit|main.py|add logging'] }],
  ['sequence', { status: 'ok', output: { errors: ['E2'] }, actions: [CHECK, FIX, CHECK] }],
  ['machine', { status: 'ok', output: { errors: [] }, actions: [CHECK, FIX, CHECK, FIX, CHECK] }],
  ['nested', { status: 'ok', output: { edited: 'issue' }, actions: ['analyze', 'edit|issue|1'] }],
  ['predefined', { status: 'ok', output: { errors: ['E2'] }, actions: [CHECK, FIX, CHECK] }],
  [
    'plugins',
    { status: 'ok', output: [{ edited: 'E1' }, { edited: 'E2' }], actions: ['edit|E1', 'edit|E2'] },
    ['--model', 'scripted:decide.script.json'],
  ],
];

verifies('plan.files', 'every workflow of the document loads, and the checks accept it', async () => {
  const files = Object.entries(seedWorkflows).map(([name, text]) => [
    `${name}.toml`,
    text.replace(/^name = "v.*/m, ''),
  ]);
  const project = workshop(Object.fromEntries(files));
  const { badFiles, registry } = await load(project);
  expect(badFiles.filter(({ file }) => file.endsWith('.toml'))).toEqual([]);
  for (const name of Object.keys(seedWorkflows)) expect(registry.find(name)?.definition.kind).toBe('composite');
});

for (const [name, outcome, more] of outcomes)
  verifies('plan.files', `the workflow "${name}" of the document runs to its end`, async () => {
    expect(await outcomeOf(seedWorkflows[name], more)).toEqual(outcome);
  });

type Table = { readonly [key: string]: unknown };

/** Returns a copy with the keys in reverse order, and with other names of states and steps. */
function rearranged(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rearranged);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value as Table).reverse();
  const rename = (key: string, member: unknown): unknown =>
    (key === 'name' || key === 'next') && member !== 'done' ? `the ${String(member)}` : rearranged(member);
  return Object.fromEntries(members.map(([key, member]) => [key, rename(key, member)]));
}

for (const [name, outcome, more] of outcomes)
  verifies(
    'plan.files',
    `the workflow "${name}" behaves the same with other names, keys and forms of TOML`,
    async () => {
      for (const seed of [1, 2]) {
        const document = rearranged(parseToml(seedWorkflows[name].replace(/^name = "v.*/m, ''))) as Table;
        expect(await outcomeOf(renderToml(document, seed).text, more, 'the fixing')).toEqual(outcome);
      }
    },
  );

verifies(
  'plan.files',
  'embedded code is refused with the equivalent condition and step, at its line and column',
  async () => {
    expect(await problemsOf({ 'flow.toml': pythonWorkflow })).toEqual([
      {
        file: 'flow.toml',
        path: '/workflow/steps/0/condition',
        line: 3,
        column: 1,
        reason: 'embedded code (python:) is never run; write size(context.errors) > 0',
      },
      {
        file: 'flow.toml',
        path: '/workflow/steps/1/for_each',
        line: 6,
        column: 1,
        reason:
          'embedded code (python:) is never run; to iterate over its results, use a step with plugin = "for-each" and source = "find-issues"',
      },
    ]);
  },
);

/** Workflows in which § is replaced by an unknown key, and its path. */
const unknownKeys: readonly (readonly [text: string, path: string])[] = [
  ['§ = 1\n[[steps]]\nloop = "lint"\n', '/KEY'],
  ['[workflow]\n§ = 1\n[[steps]]\nloop = "lint"\n', '/workflow/KEY'],
  ['[workflow.context]\nstrategy = "flat"\n§ = 1\n[[steps]]\nloop = "lint"\n', '/workflow/context/KEY'],
  ['[workflow.retry]\nstrategy = "fixed"\n  § = 1\n[[steps]]\nloop = "lint"\n', '/workflow/retry/KEY'],
  ['[workflow.limits]\n§ = 1\n[[steps]]\nloop = "lint"\n', '/workflow/limits/KEY'],
  ['[workflow.llm]\nstrategy = "simple"\n§ = 1\n', '/workflow/llm/KEY'],
  ['[[steps]]\nloop = "lint"\n§ = 1\n', '/steps/0/KEY'],
  ['[[steps]]\naction = "view"\n§ = 1\n', '/steps/0/KEY'],
  ['[[steps]]\nworkflow = "lint"\n§ = 1\n', '/steps/0/KEY'],
  ['[[workflow.steps]]\nprompt = "x"\n§ = 1\n', '/workflow/steps/0/KEY'],
  ['[[steps]]\nplugin = "transform"\nformat = "x"\n§ = 1\n', '/steps/0/KEY'],
  ['[[steps]]\nloop = "lint"\non_error = { § = 1 }\n', '/steps/0/on_error/KEY'],
  ['[[steps]]\nloop = "lint"\nretry = { strategy = "none", § = 1 }\n', '/steps/0/retry/KEY'],
  ['[[steps]]\ntype = "sequence"\nsequence.steps = [{ loop = "lint", § = 1 }]\n', '/steps/0/sequence/steps/0/KEY'],
  ['[[steps]]\ntype = "repeat"\n[steps.repeat]\nmax = 1\n§ = 1\nsteps = [{ loop = "lint" }]\n', '/steps/0/repeat/KEY'],
  [
    '[[steps]]\ntype = "branch"\n[[steps.branch.cases]]\ncondition = "success"\n§ = 1\nsteps = [{ loop = "lint" }]\n',
    '/steps/0/branch/cases/0/KEY',
  ],
  [
    '[[steps]]\ntype = "each"\neach.items = "$.input"\neach.§ = 1\neach.steps = [{ loop = "lint" }]\n',
    '/steps/0/each/KEY',
  ],
  [
    '[[steps]]\ntype = "fanout"\n[[steps.fanout.branches]]\n§ = 1\nsteps = [{ loop = "lint" }]\n',
    '/steps/0/fanout/branches/0/KEY',
  ],
  ['[[steps]]\ntype = "scope"\n§ = 1\nscope.steps = [{ loop = "lint" }]\n', '/steps/0/KEY'],
  ['[[steps]]\ntype = "wait"\nwait = { for = "1s", § = 1 }\n', '/steps/0/wait/KEY'],
  ['[[states]]\nname = "a"\n§ = 1\n', '/states/0/KEY'],
  ['[[states]]\nname = "a"\nloop = "lint"\n"§" = 1\n', '/states/0/KEY'],
  ['[[states]]\nname = "a"\n[[states.transitions]]\nnext = "done"\n§ = 1\n', '/states/0/transitions/0/KEY'],
  ['[[states]]\nname = "a"\nplugin = "llm-decide"\n§ = 1\n', '/states/0/KEY'],
];

verifies('plan.files', 'an unknown key anywhere in a workflow is refused at its line and column', async () => {
  for (const [text, path] of unknownKeys)
    for (const key of ['extra', 'max_atempts']) {
      const lines = text.slice(0, text.search(/"?§/)).split('\n');
      const [problem, ...others] = await problemsOf({ 'flow.toml': text.replace('§', key) });
      expect(others, text).toEqual([]);
      expect({ ...problem, reason: '' }, text).toEqual({
        file: 'flow.toml',
        path: path.replace('KEY', key),
        line: lines.length,
        column: (lines.at(-1) ?? '').length + 1,
        reason: '',
      });
    }
});

verifies(
  'plan.files',
  '--model replaces the model that a workflow names, and an unknown provider is a usage error',
  async () => {
    const llm = '[workflow.llm]\nstrategy = "simple"\nprovider = "anthropic"\nmodel = "none"\n';
    const project = workflowProject({ 'ask.toml': `${llm}[[steps]]\nprompt = "Say hello to {name}"\n` });
    const args = ['run', 'ask', '--input', '{"name": "Ada"}', '--model'];
    expect(await project.json([...args, 'mock'])).toMatchObject({
      status: 'ok',
      output: expect.stringContaining('Ada'),
    });
    const shown = await project.json<{ definition: { composite: object } }>(['show', 'ask', '--model', 'mock:small']);
    expect(shown.definition.composite).toMatchObject({ plan: { backend: { id: 'mock', model: 'small' } } });
    for (const verb of [args, ['show', 'ask', '--model'], ['check', '--model']]) {
      const refused = await project.run([...verb, 'opnai:gpt']);
      expect(refused.code).toBe(64);
      expect(refused.stderr).toContain('--model: "opnai" is not configured');
    }
  },
);

verifies(
  'plan.files',
  'a workflow file calls the loops of the project, wherever it is, and a file beside it by its path',
  async () => {
    const project = workflowProject({});
    project.write('flows/main.toml', '[[steps]]\naction = "analyze x"\n\n[[steps]]\nworkflow = "inner.toml"\n');
    project.write('flows/inner.toml', '[[steps]]\naction = "edit y"\n');
    const ended = await project.run(['run', 'flows/main.toml', '--json']);
    expect(JSON.parse(ended.stdout)).toMatchObject({ status: 'ok', output: { verb: 'edit', args: ['y'] } });
    project.write('flows/outside.toml', '[[steps]]\nworkflow = "../rondo.toml"\n');
    const refused = await project.run(['check', 'flows/outside.toml']);
    expect(refused.code).toBe(1);
    expect(refused.stdout + refused.stderr).toContain('is outside of the directory of this file');
  },
);
