// The static analysis of plans: what cannot work is reported before anything runs, with its line and column.

import { expect } from 'vitest';
import { lint, problemsOf, workflowProject } from '../support/workflow-project.js';
import { verifies } from '../verifies.js';

/** Workflows with one mistake each: the text, the place of the mistake, and a part of the reason. */
const mistakes: readonly (readonly [name: string, text: string, place: string, reason: string])[] = [
  [
    'a mapping of a member that the step does not produce',
    `[[steps]]
action = "analyze"
capture = "report"
[[steps]]
loop = "lint"
input = { list = "$.report.output.erors" }
`,
    '6:11 /steps/1/input/list',
    'report.output.erors is not produced; did you mean errors?',
  ],
  [
    'a mapping of a member that no result has',
    `[[steps]]
loop = "lint"
[[steps]]
loop = "lint"
input = "$.result.outptu"
`,
    '5:1 /steps/1/input',
    'result.outptu is not produced; did you mean output?',
  ],
  [
    'a mapping of an input that is not declared',
    `[workflow.input]
type = "object"
properties = { file = { type = "string" } }
[[steps]]
loop = "lint"
input = { path = "$.input.fiel" }
`,
    '6:11 /steps/0/input/path',
    'input.fiel is not declared; did you mean file?',
  ],
  [
    'the output of a step before the first one',
    `[[steps]]
loop = "lint"
input = "$.result.output.errors"
`,
    '3:1 /steps/0/input',
    'null has no member errors',
  ],
  [
    'a name that a later step captures',
    `[[steps]]
loop = "lint"
input = "$.report.output"
[[steps]]
loop = "lint"
capture = "report"
`,
    '3:1 /steps/0/input',
    'report is not readable here: no earlier step captures it',
  ],
  [
    'a name of a scope that has ended',
    `[[steps]]
type = "scope"
scope = { steps = [{ loop = "lint", capture = "inner" }] }
[[steps]]
action = "view {inner.score}"
`,
    '5:1 /steps/1/action',
    'inner is not readable here',
  ],
  [
    'a name of a branch of a fan-out',
    `[[steps]]
type = "fanout"
fanout = { branches = [{ steps = [{ loop = "lint", capture = "inner" }] }] }
[[steps]]
loop = "lint"
condition = "inner.ok"
`,
    '6:1 /steps/1/condition',
    'inner is not readable here',
  ],
  [
    'a placeholder for a member that the step does not produce',
    `[[steps]]
loop = "lint"
capture = "report"
[[steps]]
prompt = "Explain {report.total}"
[workflow.llm]
strategy = "simple"
provider = "mock"
`,
    '5:1 /steps/1/prompt',
    '{report.total} has no value: report.output.total is not produced; known: errors, score',
  ],
  [
    'a condition on a member that the step does not produce',
    `[[steps]]
loop = "lint"
capture = "report"
[[steps]]
loop = "lint"
condition = "report.output.scoer > 3"
`,
    '6:1 /steps/1/condition',
    'did you mean score?',
  ],
  [
    'a condition that compares a list with a number',
    `[[steps]]
loop = "lint"
[[steps]]
loop = "lint"
condition = "result.output.errors > 3"
`,
    '5:1 /steps/1/condition',
    'cannot be applied',
  ],
  [
    'an item outside of each and fanout',
    `[[steps]]
action = "edit {item}"
`,
    '2:1 /steps/0/action',
    'item is not readable here: it exists only inside of each and fanout',
  ],
  [
    'an iteration outside of repeat',
    `[[steps]]
loop = "lint"
condition = "iteration > 1"
`,
    '3:1 /steps/0/condition',
    'it exists only inside of repeat',
  ],
  [
    'a member that no item has',
    `[[steps]]
loop = "lint"
[[steps]]
type = "each"
each.items = "$.result.output.errors"
[[steps.each.steps]]
action = "edit {item.lien}"
`,
    '7:1 /steps/1/each/steps/0/action',
    'did you mean line?',
  ],
  [
    'a repetition that its condition never ends',
    `[[steps]]
type = "repeat"
repeat.until = "1 > 2"
repeat.steps = [{ loop = "lint" }]
`,
    '3:8 /steps/0/repeat/until',
    'never holds, so nothing ends the repetition',
  ],
  [
    'a repetition that never starts',
    `[[steps]]
type = "repeat"
repeat.while = "size('') > 0"
repeat.steps = [{ loop = "lint" }]
`,
    '3:8 /steps/0/repeat/while',
    'never holds, so the steps never run',
  ],
  [
    'a state that nothing reaches',
    `[[states]]
name = "checking"
loop = "lint"
transitions = [{ next = "done" }]
[[states]]
name = "fixing"
loop = "lint"
transitions = [{ next = "checking" }]
`,
    '6:1 /states/1/name',
    'is "fixing", which no transition reaches from "checking"',
  ],
  [
    'a transition on a member that its state does not produce',
    `[[states]]
name = "checking"
loop = "lint"
transitions = [{ condition = "result.output.scoer > 3", next = "done" }, { next = "failed" }]
`,
    '4:18 /states/0/transitions/0/condition',
    'did you mean score?',
  ],
  [
    'a state that reads what only a later state captures',
    `[[states]]
name = "one"
loop = "lint"
input = "$.report.output"
transitions = [{ next = "two" }]
[[states]]
name = "two"
loop = "lint"
capture = "report"
transitions = [{ condition = "has_errors", next = "one" }, { next = "done" }]
`,
    '4:1 /states/0/input',
    'report is not readable here',
  ],
  [
    'a workflow that calls itself',
    `[[steps]]
workflow = "flow"
`,
    '2:1 /steps/0/workflow',
    'flow → flow',
  ],
];

for (const [name, text, place, reason] of mistakes)
  verifies('plan.check', `${name} is reported with its line and column`, async () => {
    const problems = await problemsOf({ 'flow.toml': text });
    expect(problems.map(({ line, column, path }) => `${line}:${column} ${path}`)).toEqual([place]);
    expect(problems[0]?.reason).toContain(reason);
  });

/** Workflows without a mistake that a hasty analysis would report. */
const valid: Readonly<Record<string, string>> = {
  'a name of a branch that may not run': `
[[steps]]
loop = "lint"
[[steps]]
type = "branch"
[[steps.branch.cases]]
condition = "has_errors"
steps = [{ loop = "lint", capture = "fixed" }]
[[steps]]
action = "view {fixed.score}"
`,
  'a name that a step with a condition captures': `
[[steps]]
loop = "lint"
condition = "input.deep == true"
capture = "report"
[[steps]]
loop = "lint"
input = { list = "optional:$.report.output.errors" }
`,
  'a name of an earlier repetition, on a condition': `
[[steps]]
type = "repeat"
repeat.max = 3
[[steps.repeat.steps]]
loop = "lint"
condition = "iteration > 0 && report.output.score < 1"
input = { last = "$.report.output.score" }
[[steps.repeat.steps]]
loop = "lint"
capture = "report"
`,
  'an optional path to a name of an earlier repetition': `
[[steps]]
type = "repeat"
repeat.until = "report.output.score > 1"
[[steps.repeat.steps]]
loop = "lint"
input = { last = "optional:$.report.output.score" }
capture = "report"
`,
  'a loop that is not there, and one with any output': `
[[steps]]
loop = "somewhere-else"
capture = "found"
[[steps]]
action = "view {found.anything} {result.anything}"
condition = "found.output.size > 3"
`,
  'a file that the input names': `
[[steps]]
action = "edit {file}"
condition = "file_exists:{file}"
`,
  'an input that only a mapping reads, without a declared input': `
[[steps]]
action = "edit {file}"
[[steps]]
loop = "lint"
input = { level = "$.input.level" }
`,
  'states that are reached by join, in parallel, and by a model': `
[[states]]
name = "both"
parallel = ["left", "right"]
join = "deciding"
[[states]]
name = "left"
loop = "lint"
[[states]]
name = "right"
loop = "lint"
[[states]]
name = "deciding"
plugin = "llm-decide"
[[states]]
name = "anywhere"
loop = "lint"
[workflow.llm]
strategy = "simple"
provider = "mock"
`,
};

for (const [name, text] of Object.entries(valid))
  verifies('plan.check', `${name} is no mistake`, async () => {
    expect(await problemsOf({ 'flow.toml': text })).toEqual([]);
  });

verifies(
  'plan.check',
  'a cycle of workflows is spelled out in each of them, and their caller is no part of it',
  async () => {
    const problems = await problemsOf({
      'a.toml': '[[steps]]\nworkflow = "b"\n',
      'b.toml': '[[steps]]\nloop = "c"\n',
      'c.toml': '[[steps]]\nloop = "lint"\n[[steps]]\nworkflow = "a"\n',
      'd.toml': '[[steps]]\nworkflow = "a"\n',
    });
    expect(problems.map(({ file, line, path, reason }) => [file, line, path, /: (.*)$/.exec(reason)?.[1]])).toEqual([
      ['a.toml', 2, '/steps/0/workflow', 'a → b → c → a'],
      ['b.toml', 2, '/steps/0/loop', 'b → c → a → b'],
      ['c.toml', 4, '/steps/1/workflow', 'c → a → b → c'],
    ]);
  },
);

verifies('plan.check', 'a plan in JSON is analyzed like a workflow file', async () => {
  const composite = { plan: { steps: [{ loop: 'lint' }, { loop: 'lint', input: '$.result.output.scoer' }] } };
  const { tool: _, ...base } = lint;
  const problems = await problemsOf({
    'flow.json': { ...base, id: 'flow', name: 'flow', kind: 'composite', composite },
  });
  expect(problems).toMatchObject([{ file: 'flow.json', path: '/composite/plan/steps/1/input' }]);
});

verifies('plan.check', 'check fails for such a workflow, and running it starts nothing', async () => {
  const [, text = '', , reason = ''] = mistakes[0] ?? [];
  const project = workflowProject({ 'flow.toml': text, 'good.toml': '[[steps]]\nloop = "lint"\n' });
  const checked = await project.run(['check', '--json']);
  expect(checked.code).toBe(1);
  const file = project.path('loops/flow.toml');
  expect(JSON.parse(checked.stdout)).toMatchObject({
    ok: false,
    files: [
      { file, ok: false, errors: [{ path: '/steps/1/input/list', line: 6, column: 11 }] },
      { file: project.path('loops/good.toml'), ok: true, errors: [] },
      { ok: true },
    ],
  });
  const run = await project.run(['run', 'flow', '--json']);
  expect(run.code).toBe(1);
  const { error, trace } = JSON.parse(run.stdout);
  expect(error).toMatchObject({ code: 'DEFINITION_INVALID', message: expect.stringContaining(reason) });
  expect(trace).toEqual([]);
  expect((await project.run(['run', 'good'])).code).toBe(0);
});
