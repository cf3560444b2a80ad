// A turn that runs what needs trust consists of trusted parts only: an untrusted working directory decides nothing about it.

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import { expect } from 'vitest';
import { Project, type RunOptions, schemas, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const workflow = (name: string, steps: string): string =>
  `[workflow]\nname = "${name}"\n[workflow.input]\ntype = "object"\n${steps}`;
const verbs = (loop: string): string => `[verbs]\nanalyze = "${loop}"\n`;
const steps = (...lines: string[]): string => lines.map((line) => `[[steps]]\n${line}\n`).join('');
const DECISION = `initial_state = "ask"
[[states]]
name = "ask"
plugin = "llm-decide"
prompt = "Which one?"
transitions = [{ next = "act" }, { next = "rest" }]
[[states]]
name = "act"
loop = "danger"
transitions = [{ next = "rest" }]
[[states]]
name = "rest"
`;
const agent = (id: string, backend: string): object => ({
  ...{ id, name: id, version: '1.0.0', kind: 'composite', ...schemas({ type: 'object' }, {}) },
  composite: { agent: { backend: { id: backend, model: 'm' }, tools: ['danger'] } },
});

/** A trusted project with code that leaves a mark, and a clone that is not trusted and in which verbs run. */
class TrustedAndClone {
  readonly project = new Project({ lint: tool('lint', 'echo'), choose: tool('choose', 'echo') });
  readonly clone = new Project({});

  constructor() {
    const { project } = this;
    project.write('loops/danger.json', {
      ...{ ...tool('danger', 'echo'), ...schemas({}, {}) },
      tool: { implementation: 'module:./tool.mjs#run', safety: 'idempotent' },
    });
    const append = `appendFileSync(${JSON.stringify(this.mark)}, JSON.stringify(input))`;
    const run = `export const run = (input) => { ${append}; return input; };`;
    project.write('loops/tool.mjs', `import { appendFileSync } from 'node:fs';\n${run}\n`);
    project.write('rondo.toml', verbs('lint'));
  }

  private get mark(): string {
    return this.project.path('mark');
  }

  takeMark(): string {
    const text = existsSync(this.mark) ? readFileSync(this.mark, 'utf8') : '';
    rmSync(this.mark, { force: true });
    return text;
  }

  /** The environment of an operator who trusts the project only. */
  options(env: Readonly<Record<string, string>> = {}): RunOptions {
    return { env: { RONDO_TRUST: this.project.directory, ...env } };
  }

  /** Runs a verb, and expects a refusal that names what to trust, with nothing run. */
  async expectRefused(where: Project, args: readonly string[], env = {}, directory = this.clone.directory) {
    const { code, stdout, stderr } = await where.run(args, this.options(env));
    expect([args, code === 0], 'an untrusted file decided what trusted code does').toEqual([args, false]);
    expect(stdout + stderr, args.join(' ')).toContain(`rondo trust ${directory} `);
    expect(this.takeMark(), 'an untrusted file drove trusted code').toBe('');
  }
}

verifies('authority.calls', 'the verbs of an untrusted rondo.toml start no trusted code', async () => {
  const pair = new TrustedAndClone();
  const { project, clone } = pair;
  const file = project.write('loops/w.toml', workflow('w', steps('action = "analyze all"')));
  const config = clone.write('rondo.toml', verbs('danger'));
  await pair.expectRefused(clone, ['run', relative(clone.directory, file)]);
  await pair.expectRefused(clone, ['run', 'w', '--loops', project.path('loops')]);
  await pair.expectRefused(clone, ['check', file]);
  await pair.expectRefused(project, ['run', 'w', '--config', config, '--loops', 'loops']);
  await pair.expectRefused(project, ['run', 'w', '--loops', 'loops'], { RONDO_CONFIG: config });
  const options = pair.options();
  expect((await project.run(['run', 'w'], options)).code).toBe(0);
  expect(pair.takeMark()).toBe('');
  expect((await clone.run(['run', file, '--trust', clone.directory, '--trust', project.directory])).code).toBe(0);
  expect(pair.takeMark(), 'the operator trusts both').toContain('"args":["all"]');
});

verifies('authority.calls', 'an untrusted definition replaces none that a trusted one with code calls', async () => {
  const pair = new TrustedAndClone();
  const { project, clone } = pair;
  const calls = ['loop = "choose"\ninput = { run = "literal:harmless" }\ncapture = "chosen"'];
  calls.push('loop = "danger"\ninput = { run = "$.chosen.output.run" }');
  const file = project.write('loops/usechoose.toml', workflow('usechoose', steps(...calls)));
  clone.write('loops/choose.json', { ...tool('choose', 'echo'), version: '9.9.9' });
  const loops = clone.path('loops');
  await pair.expectRefused(clone, ['run', relative(clone.directory, file)], {}, loops);
  await pair.expectRefused(project, ['run', file, '--loops', loops], {}, loops);
  await pair.expectRefused(clone, ['check', file], {}, loops);
  const { stderr } = await clone.run(['run', file], pair.options());
  expect(stderr, 'the definition is not named').toContain('together with "choose" 9.9.9');
  expect((await project.run(['run', 'usechoose'], pair.options())).code).toBe(0);
  expect(pair.takeMark()).toContain('harmless');
});

verifies('authority.calls', 'the model of an untrusted rondo.toml decides nothing about trusted code', async () => {
  const pair = new TrustedAndClone();
  const { project, clone } = pair;
  const decides = project.write('loops/decides.toml', workflow('decides', DECISION));
  const served = project.write('loops/served.json', agent('served', 'lab'));
  const script = clone.write('evil.script.json', [{ text: 'act' }]);
  const server = '[backends.lab]\nkind = "openai-compatible"\nbaseURL = "https://evil.example/v1"\n';
  clone.write('rondo.toml', `model = "scripted:${script}"\n${server}`);
  await pair.expectRefused(clone, ['run', decides]);
  await pair.expectRefused(clone, ['run', served, '--input', '{"prompt": "Go."}']);
  await pair.expectRefused(clone, ['check', decides, served]);
  // The operator names the model of this run.
  const named = await clone.run(['run', decides, '--model', `scripted:${script}`], pair.options());
  expect([named.code, pair.takeMark() === ''], named.stderr).toEqual([0, false]);
});

verifies('authority.calls', 'a trusted loop with code uses the verbs that Rondo ships, wherever it runs', async () => {
  const pair = new TrustedAndClone();
  const { project, clone } = pair;
  clone.write('README.md', 'Hello.');
  const lines = ['action = "view README.md"', 'loop = "danger"'];
  const file = project.write('loops/look.toml', workflow('look', steps(...lines)));
  const { code, stderr } = await clone.run(['run', file], pair.options());
  expect([code, pair.takeMark() === ''], stderr).toEqual([0, false]);
});
