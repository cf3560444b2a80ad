// A file of a directory that is not trusted, named from a trusted project: it does not decide what the code of that project does.

import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { relative } from 'node:path';
import { expect } from 'vitest';
import { hello, Project, schemas, tool } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const composite = (id: string, body: object): object => ({
  ...{ id, name: id, version: '1.0.0', kind: 'composite', ...schemas({}, {}), composite: body },
});
const steps = (id: string, loopId: string): object =>
  composite(id, { steps: [{ loopId, inputMapping: { name: 'literal:Ada', amount: 'literal:9000' } }] });
const agent = (id: string, loop: string): object => ({
  ...composite(id, { agent: { backend: { id: 'scripted', model: 'agent.script.json' }, tools: [loop] } }),
  ...schemas({ type: 'object' }, {}),
});
const SCRIPT = [{ toolCalls: [{ name: 'pay', args: { amount: 9000 } }] }, { text: 'Paid.' }];
const implemented = (id: string, implementation: string): object => ({
  ...tool(id, 'echo'),
  tool: { implementation, safety: 'idempotent' },
});
const hosted = (id: string, loop: string): object => ({
  ...{ id, loop, input: { amount: 9000 }, stop: { maxTurns: 1 } },
  grant: { allowedTools: [loop, 'pay'], limits: {} },
});

/** A trusted project whose tools leave a mark, and a clone beside it that is not trusted. */
class Neighbours {
  readonly project = new Project({ hello, deploy: steps('deploy', 'pay') });
  readonly clone = new Project({});

  constructor() {
    const { project } = this;
    project.trusted = true;
    for (const [id, implementation] of [
      ['pay', 'exec:./pay.sh'],
      ['module', 'module:./tool.mjs#run'],
      ['local', 'http:http://127.0.0.1:9/pay'],
      ['write', 'toolbox:write_file'],
    ] as const)
      project.write(`loops/${id}.json`, implemented(id, implementation));
    chmodSync(project.write('loops/pay.sh', `#!/bin/sh\ncat >> '${this.mark}'\necho '{"paid": true}'\n`), 0o755);
    const append = `appendFileSync(${JSON.stringify(this.mark)}, 'module')`;
    project.write('loops/tool.mjs', `import { appendFileSync } from 'node:fs';\nexport const run = () => ${append};\n`);
  }

  private get mark(): string {
    return this.project.path('paid');
  }

  /** Returns what the tools of the project got since the last time. */
  takeMark(): string {
    const text = existsSync(this.mark) ? readFileSync(this.mark, 'utf8') : '';
    rmSync(this.mark, { force: true });
    return text;
  }

  /** Writes a file of the clone and returns its path from the project. */
  foreign(name: string, content: object | string): string {
    return relative(this.project.directory, this.clone.write(name, content));
  }

  /** Runs a verb in the project, and expects a refusal that names the clone, with nothing run. */
  async expectRefused(args: readonly string[]): Promise<void> {
    const { code, stdout, stderr } = await this.project.run(args);
    expect([args, code === 0], 'an untrusted file was accepted').toEqual([args, false]);
    expect(stdout + stderr, args.join(' ')).toContain(`rondo trust ${this.clone.directory}`);
    expect(this.takeMark(), 'an untrusted file drove trusted code').toBe('');
  }
}

verifies(
  'authority.calls',
  'a file that is not trusted runs no code of a trusted project, however it calls it',
  async () => {
    const neighbours = new Neighbours();
    const { project, clone } = neighbours;
    const grant = neighbours.foreign('grant.json', { allowedTools: ['pay'], limits: {} });
    const files = [
      ...['pay', 'module', 'local', 'write', 'deploy'].map((loop) =>
        neighbours.foreign(`${loop}-caller.json`, steps(`${loop}-caller`, loop)),
      ),
      neighbours.foreign('workflow.toml', '[workflow]\nname = "workflow"\n[[steps]]\nname = "a"\nloop = "pay"\n'),
      neighbours.foreign('agent.json', agent('agent', 'pay')),
      // It calls the project through a loop beside it.
      neighbours.foreign('outer.json', steps('outer', 'workflow')),
    ];
    neighbours.foreign('agent.script.json', SCRIPT);
    const paying = ['--input', '{"prompt": "Pay."}'];
    for (const file of files) await neighbours.expectRefused(['run', file, ...paying]);
    await neighbours.expectRefused(['run', files[0] ?? '', ...paying, '--grant', grant]);
    await neighbours.expectRefused(['check', ...files]);
    await neighbours.expectRefused(['chat', neighbours.foreign('agent.json', agent('agent', 'pay'))]);
    const { stderr } = await project.run(['run', files[4] ?? '']);
    expect(stderr, 'the chain of calls is not named').toContain('it runs "pay" (through "deploy")');
    // The project itself does what it did.
    expect(await project.json(['run', 'deploy'])).toMatchObject({ status: 'ok' });
    expect(neighbours.takeMark()).toContain('9000');
    const trusted = ['run', files[0] ?? '', '--trust', clone.directory];
    expect(await project.json(trusted)).toMatchObject({ status: 'ok', output: { paid: true } });
  },
);

verifies(
  'authority.calls',
  'a file that is not trusted runs loops of a trusted project that need no trust',
  async () => {
    const neighbours = new Neighbours();
    const file = neighbours.foreign('greeting.json', steps('greeting', 'hello'));
    expect(await neighbours.project.json(['run', file])).toMatchObject({ status: 'ok' });
    expect((await neighbours.project.run(['check', file])).code).toBe(0);
  },
);

verifies(
  'authority.calls',
  'definitions of a clone run no code of a trusted file that is named in the clone',
  async () => {
    const { project, clone } = new Neighbours();
    clone.write('loops/helper.json', steps('helper', 'pay'));
    project.write('loops/main.json', steps('main', 'helper'));
    const options = { env: { RONDO_TRUST: project.directory } };
    const refused = await clone.run(['run', project.path('loops/main.json')], options);
    expect([refused.code, project.has('paid')]).toEqual([1, false]);
    expect(refused.stdout + refused.stderr).toContain(`rondo trust ${clone.path('loops')}`);
    expect((await clone.run(['run', project.path('loops/deploy.json')], options)).code).toBe(0);
    expect(project.has('paid')).toBe(true);
  },
);

verifies(
  'authority.calls',
  'a hosted loop that is not trusted starts no code of a trusted project under its own grant',
  async () => {
    const neighbours = new Neighbours();
    const { project, clone } = neighbours;
    for (const loop of ['pay', 'deploy', 'module']) {
      const file = neighbours.foreign(`${loop}.json`, hosted(`clone-${loop}`, loop));
      await neighbours.expectRefused(['host', 'start', file]);
      await neighbours.expectRefused(['check', file]);
      await project.run(['worker', '--once']);
      expect(neighbours.takeMark()).toBe('');
    }
    const file = neighbours.foreign('pay.json', hosted('clone-pay', 'pay'));
    expect((await project.run(['host', 'start', file, '--trust', clone.directory])).code).toBe(0);
    await project.run(['worker', '--once', '--trust', clone.directory]);
    expect(neighbours.takeMark()).toContain('9000');
  },
);

verifies(
  'authority.calls',
  'a hosted loop that was not trusted at its start stops before code that its loop is later',
  async () => {
    const neighbours = new Neighbours();
    const { project, clone } = neighbours;
    const file = neighbours.foreign('job.json', hosted('job', 'deploy'));
    clone.write('harmless/deploy.json', implemented('deploy', 'builtin:echo'));
    expect((await project.run(['host', 'start', file, '--loops', clone.path('harmless')])).code).toBe(0);
    await project.run(['worker', '--once']);
    expect(neighbours.takeMark(), 'a worker ran trusted code for an untrusted file').toBe('');
    const status = await project.json<{ reason: string; message: string }>(['host', 'status', 'job']);
    expect(status).toMatchObject({ status: 'stopped', reason: 'refused' });
    expect(status.message).toContain(`rondo trust ${clone.directory}`);
  },
);

verifies('authority.calls', 'a harness that is not trusted runs no code of a trusted project', async () => {
  const neighbours = new Neighbours();
  neighbours.clone.write('harness.json', { cases: [{ name: 'pay', loop: 'pay', expect: { status: 'ok' } }] });
  await neighbours.expectRefused(['harness', neighbours.clone.directory]);
});
