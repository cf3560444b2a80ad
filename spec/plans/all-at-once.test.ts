// All mistakes of a file are reported at once, each with its line and column, and a file without one can run.

import { expect } from 'vitest';
import { lint, problemsOf, workflowProject } from '../support/workflow-project.js';
import { verifies } from '../verifies.js';

interface Checked {
  readonly ok: boolean;
  readonly files: readonly {
    readonly file: string;
    readonly ok: boolean;
    readonly errors: readonly { path: string; line: number; column: number; reason: string }[];
  }[];
}

const release = {
  ...lint,
  id: 'release',
  name: 'release',
  inputSchema: {
    type: 'object',
    properties: { version: { type: 'string' }, dry: { type: 'boolean' } },
    required: ['version'],
    additionalProperties: false,
  },
};

/** Returns what `check --json` reports for one workflow, as `line:column path` with the reason. */
async function errorsOf(text: string, args: readonly string[] = []): Promise<Readonly<Record<string, string>>> {
  const project = workflowProject({ 'flow.toml': text, 'release.json': release });
  const file = project.path('loops/flow.toml');
  const { stdout, code } = await project.run(['check', '--json', ...args]);
  const { ok, files } = JSON.parse(stdout) as Checked;
  const checked = files.find((item) => item.file === file);
  expect([ok, code], 'the verdict differs from the errors').toEqual(checked?.ok ? [true, 0] : [false, 1]);
  const errors = (checked?.errors ?? []).map(({ line, column, path, reason }) => [`${line}:${column} ${path}`, reason]);
  expect(new Set(errors.map((error) => error.join())).size, 'a mistake is reported twice').toBe(errors.length);
  return Object.fromEntries(errors);
}

const TEN_MISTAKES = `[workflow]
name = "flow"
descripton = "x"
llm = { strategy = "simple", provider = "mock" }

[[steps]]
action = "deploy {file}"
capture = "deployed"

[[steps]]
loop = "relase"

[[steps]]
loop = "release"
input = { dry = "literal:yes" }

[[steps]]
prompt = "Summarize {deployed.x} and {"

[[steps]]
action = "view x"
condition = "deployed.ok &&"
retries = 3

[[steps]]
type = "repeat"
[[steps.repeat.steps]]
loop = "lint"
input = { a = "$.nowhere.output", b = "$[" }
on_error = { goto = "end" }

[[steps]]
loop = "lint"
condition = "deployed.ok"
`;

verifies('plan.check', 'all mistakes of a file are reported at once, each with its line and column', async () => {
  const errors = await errorsOf(TEN_MISTAKES);
  const expected: Readonly<Record<string, string>> = {
    '3:1 /workflow/descripton': 'did you mean "description"?',
    '7:1 /steps/0/action': 'has the verb "deploy", which is not known',
    '11:1 /steps/1/loop': 'calls "relase", which does not exist; did you mean "release"?',
    '15:1 /steps/2/input': 'the loop "release" requires "version", which is not passed',
    '15:11 /steps/2/input/dry': 'the loop "release" takes boolean as "dry", and gets string',
    '18:1 /steps/3/prompt': '"{" belongs to no placeholder',
    '22:1 /steps/4/condition': 'the expression is incomplete',
    '23:1 /steps/4/retries': 'is not a known key',
    '27:9 /steps/5/repeat': 'is unbounded',
    '29:11 /steps/5/repeat/steps/0/input/a': 'nowhere',
    '29:35 /steps/5/repeat/steps/0/input/b': '',
    '30:14 /steps/5/repeat/steps/0/on_error/goto': 'there is no step "end" beside it',
  };
  expect(Object.keys(errors).sort()).toEqual(Object.keys(expected).sort());
  for (const [place, reason] of Object.entries(expected)) expect(errors[place], place).toContain(reason);
});

verifies(
  'plan.check',
  'a loop that a file calls beside a mistake of its own is checked in the same round',
  async () => {
    const project = workflowProject({
      'a.toml': '[[steps]]\nworkflow = "b.toml"\n[[steps]]\naction = "deploy"\n',
      'b.toml': '[[steps]]\nworkflow = "a"\nretries = 2\n',
    });
    const { stdout } = await project.run(['check', '--json']);
    const places = (JSON.parse(stdout) as Checked).files.flatMap(({ file, errors }) =>
      errors.map(({ line, path }) => `${file.split('/').at(-1)}:${line} ${path}`),
    );
    expect(places).toEqual([
      'a.toml:2 /steps/0/workflow',
      'a.toml:4 /steps/1/action',
      'b.toml:2 /steps/0/workflow',
      'b.toml:3 /steps/0/retries',
    ]);
  },
);

verifies('plan.check', 'the mistakes of a definition in JSON are reported at once', async () => {
  const problems = await problemsOf({
    'ask.json': {
      ...lint,
      id: 'ask',
      tool: undefined,
      kind: 'prompt',
      inputSchema: { type: 'objekt' },
      outputSchema: { type: 'strng' },
      prompt: { template: 'Hello' },
    },
  });
  expect(problems.map(({ path, line }) => [path, line > 0])).toEqual([
    ['/backend', true],
    ['/inputSchema/type', true],
    ['/outputSchema/type', true],
  ]);
});

const PROMPT = '[[steps]]\nloop = "lint"\n\n[[steps]]\nprompt = "Say hello"\n';

verifies(
  'plan.check',
  'a prompt that no model is chosen for is a mistake; a file, the project or a flag chooses it',
  async () => {
    expect(await errorsOf(PROMPT)).toEqual({
      '5:1 /steps/1/prompt': expect.stringMatching(/has no model: pass --model .* in rondo\.toml, or name a provider/),
    });
    expect(await errorsOf(PROMPT, ['--model', 'mock'])).toEqual({});
    expect(await errorsOf(`[workflow.llm]\nstrategy = "simple"\nprovider = "mock"\n${PROMPT}`)).toEqual({});
    const project = workflowProject({ 'flow.toml': PROMPT });
    project.write('rondo.toml', 'model = "mock"\n');
    expect((await project.run(['check'])).code).toBe(0);
    expect((await project.run(['run', 'flow'])).code, 'a workflow that passes cannot run').toBe(0);
  },
);

verifies('plan.check', 'a strategy that this version does not perform is a mistake', async () => {
  expect(await errorsOf('[workflow.llm]\nstrategy = "simple"\nprovider = "mock"\n')).toEqual({
    '1:11 /workflow/llm': expect.stringContaining('does not implement yet'),
  });
});

verifies('plan.check', 'a retry that repeats a once tool has its line, also if the tool is loaded later', async () => {
  const project = workflowProject({
    'flow.toml': '[[steps]]\nloop = "pay"\nretry = "fixed"\n',
    'pay.json': { ...lint, id: 'pay', tool: { implementation: 'builtin:echo' } },
  });
  const { stdout } = await project.run(['check', '--json']);
  const { files } = JSON.parse(stdout) as Checked;
  expect(files[0]?.errors).toMatchObject([{ path: '/steps/0/retry', line: 3, column: 1 }]);
});

/** Calls of a loop that takes the version as text and whether to try only, and the reason why each is refused. */
const inputs: readonly (readonly [step: string, reason: string | undefined])[] = [
  ['loop = "release"\ninput = { version = "literal:1" }', undefined],
  ['loop = "release"\ninput = { version = "optional:$.input.version" }', undefined],
  ['loop = "release"\ninput = "$.input"', undefined],
  ['loop = "release"', undefined],
  ['loop = "release"\ninput = { dry = "$.input.dry" }', 'requires "version", which is not passed'],
  ['loop = "release"\ninput = { version = "$.input.v[*]" }', 'takes string as "version", and gets array'],
  ['loop = "release"\ninput = "$.result.ok"', 'takes object, and gets boolean'],
  ['loop = "release"\ninput = "$.result"', 'requires "version", which is not passed'],
  [
    'loop = "release"\ninput = { version = "literal:1", dri = "$.input.dry" }',
    'has no input "dri"; known: version, dry; did you mean "dry"?',
  ],
  ['plugin = "release"\nversion = "{v}"', undefined],
  ['plugin = "release"\ndry = "{v}"', 'requires "version", which is not passed'],
  ['plugin = "for-each"\nitems = "$.input.list"\nloop = "release"\ninput = { dry = "$.item" }', 'requires "version"'],
  [
    'loop = "lint"\nretry = { strategy = "fixed", fallback = { loop = "release", input = { dry = "$.input.dry" } } }',
    'requires "version"',
  ],
];

for (const [step, reason] of inputs)
  verifies(
    'plan.check',
    `a call that is ${reason ?? 'complete'} is ${reason ? 'refused' : 'accepted'}: ${step.replaceAll('\n', ', ')}`,
    async () => {
      const problems = await problemsOf({ 'flow.toml': `[[steps]]\n${step}\n`, 'release.json': release });
      expect(problems.map((problem) => problem.reason).join('\n')).toContain(reason ?? '');
      expect(problems.length > 0).toBe(reason !== undefined);
    },
  );

verifies('plan.check', 'a verb that is bound to a loop which needs another input is a mistake', async () => {
  const project = workflowProject({ 'flow.toml': '[[steps]]\naction = "deploy now"\n', 'release.json': release });
  project.write('rondo.toml', '[verbs]\ndeploy = "release"\n');
  const { stdout } = await project.run(['check', '--json']);
  const { files } = JSON.parse(stdout) as Checked;
  expect(files[0]?.errors[0]).toMatchObject({
    path: '/steps/0/action',
    line: 2,
    reason: expect.stringContaining('requires "version"'),
  });
});

verifies('plan.check', 'a declared input is compared with what the called loop requires', async () => {
  const declared = '[workflow.input]\ntype = "object"\nproperties = { file = { type = "string" } }\n';
  const problems = await problemsOf({
    'flow.toml': `${declared}[[steps]]\nloop = "release"\n`,
    'release.json': release,
  });
  expect(problems).toMatchObject([
    { path: '/steps/0/loop', line: 5, reason: expect.stringContaining('requires "version"') },
  ]);
});

/** A machine with a misspelt state, whose other states are checked all the same. */
const MACHINE = `[[states]]
name = "one"
loop = "lint"
transitions = [{ condition = "has_errors", next = "tow" }, { next = "done" }]
[[states]]
name = "two"
loop = "lint"
capture = "report"
transitions = [{ next = "three" }]
[[states]]
name = "three"
action = "view {report.scoer}"
`;

verifies('plan.check', 'a misspelt state hides no mistake of another one, and makes none unreachable', async () => {
  expect(Object.keys(await errorsOf(MACHINE))).toEqual(['4:44 /states/0/transitions/0/next', '12:1 /states/2/action']);
});
