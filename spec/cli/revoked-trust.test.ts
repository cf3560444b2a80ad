// Trust that was given for one verb, or revoked: a recorded turn is checked again whenever it continues.

import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import { expect } from 'vitest';
import { Project, schemas, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const WAITS = `[workflow]
name = "waits"
[workflow.input]
type = "object"
[[steps]]
type = "wait"
wait = { signal = "go" }
[[steps]]
loop = "danger"
input = { cmd = "literal:from the clone" }
`;
const FAILS = WAITS.replace('"waits"', '"fails"').replace('type = "wait"\nwait = { signal = "go" }', 'loop = "flaky"');
const HOSTED = {
  id: 'job',
  loop: 'danger',
  input: { cmd: 'from the clone' },
  grant: { allowedTools: ['*'], limits: {} },
};

/** A trusted project whose tool leaves a mark, and a clone that was trusted for one verb. */
class Revoked {
  readonly project = new Project({ flaky: tool('flaky', 'fail') });
  readonly clone = new Project({});

  constructor() {
    const { project } = this;
    project.trusted = true;
    project.write('loops/danger.json', {
      ...{ ...tool('danger', 'echo'), ...schemas({}, {}) },
      tool: { implementation: 'module:./tool.mjs#run', safety: 'idempotent' },
    });
    const append = `appendFileSync(${JSON.stringify(this.mark)}, JSON.stringify(input))`;
    const run = `export const run = (input) => { ${append}; return input; };`;
    project.write('loops/tool.mjs', `import { appendFileSync } from 'node:fs';\n${run}\n`);
  }

  private get mark(): string {
    return this.project.path('mark');
  }

  takeMark(): string {
    const text = existsSync(this.mark) ? readFileSync(this.mark, 'utf8') : '';
    rmSync(this.mark, { force: true });
    return text;
  }

  /** Starts a turn of a file of the clone, which is trusted for this verb, and returns its id. */
  async start(name: string, content: string): Promise<string> {
    const file = relative(this.project.directory, this.clone.write(name, content));
    const options = { env: { RONDO_TRUST: [this.project.directory, this.clone.directory].join(':') } };
    const { turnId } = await this.project.json<{ turnId: string }>(['run', file, '--session', 'x'], options);
    return turnId;
  }

  async statusOf(turnId: string): Promise<unknown> {
    return (await this.project.json<{ status: string }>(['status', turnId])).status;
  }

  /** Runs a verb without trust in the clone, and expects that it names the clone, with nothing run. */
  async expectRefused(args: readonly string[]): Promise<void> {
    const { stdout, stderr } = await this.project.run(args);
    expect(this.takeMark(), 'a turn of an untrusted file drove trusted code').toBe('');
    expect(stdout + stderr, args.join(' ')).toContain(`rondo trust ${this.clone.directory} `);
  }
}

verifies('tool.trust', 'a turn that was started under trust for one verb does not continue without it', async () => {
  const revoked = new Revoked();
  const { project, clone } = revoked;
  const turnId = await revoked.start('waits.toml', WAITS);
  await revoked.expectRefused(['signal', 'x', 'go']);
  await revoked.expectRefused(['resume', turnId]);
  await revoked.expectRefused(['resume', '--all']);
  await revoked.expectRefused(['worker', '--once']);
  expect(await revoked.statusOf(turnId)).not.toBe('error');
  expect((await project.run(['check'])).code, 'a check must not fail because of the turn').toBe(0);
  const result = await project.json(['resume', turnId, '--trust', clone.directory]);
  expect(result).toMatchObject({ status: 'ok' });
  expect(revoked.takeMark()).toContain('from the clone');
});

verifies('tool.trust', 'a failed turn is not retried without the trust under which it was started', async () => {
  const revoked = new Revoked();
  const turnId = await revoked.start('fails.toml', FAILS);
  await revoked.expectRefused(['retry', turnId]);
  expect(await revoked.statusOf(turnId)).toBe('error');
});

verifies('tool.trust', 'a turn whose trust was revoked can be cancelled', async () => {
  const revoked = new Revoked();
  const turnId = await revoked.start('waits.toml', WAITS);
  expect((await revoked.project.run(['cancel', turnId])).code).toBe(0);
  expect([await revoked.statusOf(turnId), revoked.takeMark()]).toEqual(['cancelled', '']);
});

verifies('tool.trust', 'a hosted loop whose file is no longer trusted waits until it is trusted again', async () => {
  const revoked = new Revoked();
  const { project, clone } = revoked;
  const file = clone.write('job.json', { ...HOSTED, stop: { maxTurns: 1 } });
  expect((await project.run(['host', 'start', file, '--trust', clone.directory])).code).toBe(0);
  await revoked.expectRefused(['worker', '--once']);
  expect(await project.json(['host', 'status', 'job'])).not.toMatchObject({ status: 'stopped' });
  await project.run(['worker', '--once', '--trust', clone.directory]);
  expect(revoked.takeMark()).toContain('from the clone');
});

verifies('tool.trust', 'the journal of a clone, made where the clone was trusted, drives no trusted code', async () => {
  const revoked = new Revoked();
  const { project, clone } = revoked;
  await revoked.start('waits.toml', WAITS);
  await revoked.expectRefused(['signal', 'x', 'go']);
  cpSync(project.path('.rondo'), clone.path('.rondo'), { recursive: true });
  const env = { RONDO_TRUST: project.directory };
  const { stdout, stderr } = await clone.run(['resume', '--all', '--loops', project.path('loops')], { env });
  expect(revoked.takeMark(), 'the journal of a clone drove trusted code').toBe('');
  expect(stdout + stderr).toContain(`rondo trust ${clone.directory} `);
});

verifies(
  'tool.trust',
  'the journal of a clone continues no turn of trusted code, even of trusted definitions',
  async () => {
    const revoked = new Revoked();
    const { project, clone } = revoked;
    project.write('loops/waits.toml', WAITS);
    const { turnId } = await project.json<{ turnId: string }>(['run', 'waits', '--session', 'x']);
    cpSync(project.path('.rondo'), clone.path('.rondo'), { recursive: true });
    const env = { RONDO_TRUST: project.directory };
    const loops = ['--loops', project.path('loops')];
    for (const verb of [
      ['signal', 'x', 'go'],
      ['resume', turnId],
      ['worker', '--once'],
    ]) {
      const { stdout, stderr } = await clone.run([...verb, ...loops], { env });
      expect(revoked.takeMark(), 'the journal of a clone drove trusted code').toBe('');
      expect(stdout + stderr, verb.join(' ')).toContain(`rondo trust ${clone.path('.rondo')} `);
    }
    // The operator says whose journal it is.
    const named = ['resume', turnId, ...loops, '--data', clone.path('.rondo')];
    expect((await clone.run(named, { env })).code).toBe(0);
    expect(revoked.takeMark()).toContain('from the clone');
  },
);

verifies('tool.trust', 'a turn that an untrusted rondo.toml took part in does not continue with it', async () => {
  const revoked = new Revoked();
  const { project, clone } = revoked;
  const text = WAITS.replace('loop = "danger"\ninput = { cmd = "literal:from the clone" }', 'action = "analyze all"');
  project.write('loops/waits.toml', text);
  project.write('rondo.toml', '[verbs]\nanalyze = "flaky"\n');
  const config = clone.write('rondo.toml', '[verbs]\nanalyze = "danger"\n');
  const args = ['run', 'waits', '--session', 'x', '--config', config, '--loops', 'loops', '--data', '.rondo'];
  const run = await project.run([...args, '--trust', clone.directory, '--trust', project.directory]);
  expect(run.code, run.stderr).not.toBe(1);
  await revoked.expectRefused(['signal', 'x', 'go']);
});
