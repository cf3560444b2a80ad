import { createHash } from 'node:crypto';
import { copyFileSync, realpathSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { renderApproval } from '../../src/surfaces/cli/render-approval.js';
import { createColors } from '../../src/surfaces/cli/terminal-text.js';
import { outputOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';
import { approved, asking, type Project, projectOf, waiting } from './projects.js';

/** A kind of program: its implementation, its file, and its text with a mark that identifies the version. */
interface Program {
  readonly implementation: string;
  readonly file: string;
  text(mark: string): string;
}

const PROGRAMS: readonly Program[] = [
  {
    implementation: 'exec:./act.sh',
    file: 'act.sh',
    text: (mark) => `#!/bin/sh\ncat > /dev/null\necho ${mark} >> "$(dirname "$0")/trace"\necho '"${mark}"'\n`,
  },
  ...['mjs', 'cjs'].map((kind) => ({
    implementation: `module:./act.${kind}#act`,
    file: `act.${kind}`,
    text: (mark: string) =>
      kind === 'mjs'
        ? `import { appendFileSync } from 'node:fs';
export const act = () => { appendFileSync(new URL('./trace', import.meta.url), '${mark}\\n'); return '${mark}'; };
`
        : `const { appendFileSync } = require('node:fs');
exports.act = () => { appendFileSync(require('node:path').join(__dirname, 'trace'), '${mark}\\n'); return '${mark}'; };
`,
  })),
];

const projectWith = ({ implementation, file, text }: Program, more: { [name: string]: string | object } = {}) =>
  projectOf({ 'act.json': asking(implementation), [file]: text('first'), ...more });

const begin = (project: Project, input: object = {}): Promise<string> =>
  project.inProcess(async (host) => {
    const { turnId, status } = await host.run({ loop: 'act', input, sessionId: 's' });
    expect(status).toBe('paused');
    return turnId;
  });

verifies('approval.target', 'a program that changed after its approval was requested does not run', async () => {
  for (const program of PROGRAMS) {
    const { file, text } = program;
    const other = text('other');
    const changes: { readonly [change: string]: (project: Project) => void } = {
      'other bytes': (project) => project.write(file, other),
      'one byte more': (project) => project.write(file, `${text('first')}\n`),
      'another file in its place': (project) => {
        project.write(`new/${file}`, other);
        renameSync(project.path(`new/${file}`), project.path(file));
      },
      'a link to the same bytes': (project) => {
        project.write(`elsewhere/${file}`, text('first'));
        rmSync(project.path(file));
        symlinkSync(project.path(`elsewhere/${file}`), project.path(file));
      },
      'no file': (project) => rmSync(project.path(file)),
    };
    for (const [how, change] of Object.entries(changes)) {
      const project = projectWith(program);
      const turnId = await begin(project);
      change(project);
      const end = await project.inProcess((host) => approved(host, turnId));
      const expected = how === 'no file' ? 'TOOL_FAILED' : 'TOOL_NOT_ADMITTED';
      expect([end, project.read('trace')], `${file}: ${how}`).toEqual([expected, undefined]);
    }
    const project = projectWith(program);
    const turnId = await begin(project);
    // A file that is rewritten with the same bytes is still the approved program.
    project.write(file, text('first'));
    expect(await project.inProcess((host) => approved(host, turnId)), file).toBe('ok');
    expect(project.read('trace')).toBe('first\n');
  }
});

verifies(
  'approval.target',
  'a program that changes does not run in the process that requested the approval either',
  async () => {
    for (const program of PROGRAMS) {
      const project = projectWith(program);
      await project.inProcess(async (host) => {
        const { turnId } = await host.run({ loop: 'act', input: {} });
        project.write(program.file, program.text('other'));
        expect(await approved(host, turnId), program.file).toBe('TOOL_NOT_ADMITTED');
      });
      expect(project.read('trace')).toBe(undefined);
    }
  },
);

verifies('approval.target', 'the approved bytes run, whatever Node has cached', async () => {
  for (const program of PROGRAMS) {
    const { file, text, implementation } = program;
    const free = { ...asking(implementation), id: 'free', policy: {} };
    const project = projectWith(program, { 'free.json': free });
    await project.inProcess(async (host) => {
      expect(outputOf(await host.run({ loop: 'free', input: {} }))).toBe('first');
      for (const mark of ['first', 'second', 'third']) {
        project.write(file, text(mark));
        const { turnId } = await host.run({ loop: 'act', input: {} });
        const { target } = await waiting(host);
        expect(target?.sha256).toBe(createHash('sha256').update(text(mark)).digest('hex'));
        expect(await approved(host, turnId), `${file}: ${mark}`).toBe('ok');
        expect(outputOf(await host.resume(turnId))).toBe(mark);
      }
    });
    expect(project.read('trace'), file).toBe('first\nfirst\nsecond\nthird\n');
  }
});

verifies('approval.target', 'a module keeps its state between approved and other calls', async () => {
  const count = 'let count = 0;\nexport const act = () => (count += 1);\n';
  const implementation = 'module:./act.mjs#act';
  const free = { ...asking(implementation), id: 'free', policy: {} };
  const project = projectOf({ 'act.json': asking(implementation), 'free.json': free, 'act.mjs': count });
  await project.inProcess(async (host) => {
    expect(outputOf(await host.run({ loop: 'free', input: {} }))).toBe(1);
    const { turnId } = await host.run({ loop: 'act', input: {} });
    expect(await approved(host, turnId)).toBe('ok');
    expect(outputOf(await host.resume(turnId))).toBe(2);
    expect(outputOf(await host.run({ loop: 'free', input: {} }))).toBe(3);
  });
});

verifies('approval.target', 'the program and its digest are shown and recorded', async () => {
  for (const program of PROGRAMS) {
    const { file, text } = program;
    const project = projectWith(program);
    const turnId = await begin(project);
    await project.inProcess(async (host) => {
      const approval = await waiting(host);
      const sha256 = createHash('sha256').update(text('first')).digest('hex');
      const target = { kind: 'program', path: join(realpathSync(project.loops), file), sha256 };
      expect(JSON.parse(JSON.stringify(approval))).toMatchObject({ tool: 'act', target });
      const card = renderApproval(approval, { colors: createColors(false), width: 1000, now: 0 }).join('\n');
      expect(card).toContain(target.path);
      expect(card).toContain(sha256);
      const entries = await host.archive.entries('s');
      expect(entries.find(({ type }) => type === 'rondo.approval.requested')?.value).toMatchObject({ target });
      expect(await approved(host, turnId)).toBe('ok');
      expect(await host.replay(turnId)).toMatchObject({ matches: true });
      // A replay does not read the program again.
      project.write(file, text('other'));
      expect(await host.replay(turnId)).toMatchObject({ matches: true });
    });
  }
});

verifies('approval.target', 'a standing grant ends when its program changes', async () => {
  for (const program of PROGRAMS) {
    const project = projectWith(program);
    const turnId = await begin(project, { to: 'ada' });
    const next = (host: Parameters<Parameters<Project['inProcess']>[0]>[0]) =>
      host.run({ loop: 'act', input: { to: 'ada' }, sessionId: 's' });
    await project.inProcess(async (host) => {
      expect(await approved(host, turnId, { standing: { properties: { to: { const: 'ada' } } } })).toBe('ok');
      expect((await next(host)).status).toBe('ok');
      project.write(program.file, program.text('other'));
      expect((await next(host)).status, program.file).toBe('paused');
    });
    expect(project.read('trace')).toBe('first\nfirst\n');
  }
});

verifies('approval.target', 'a program below several agents is bound to its bytes too', async () => {
  const agent = (id: string, script: readonly object[], more: object): { [name: string]: object } => ({
    [`${id}.json`]: {
      ...{ id, name: id, version: '1.0.0', kind: 'composite' },
      inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
      outputSchema: true,
      composite: { agent: { backend: { id: 'scripted', model: `./${id}.script.json` }, ...more } },
    },
    [`${id}.script.json`]: script,
  });
  const call = (name: string) => [{ toolCalls: [{ name, args: { prompt: 'go' } }] }, { text: 'done' }];
  const { policy: _, ...free } = asking('exec:./act.sh') as { policy: object };
  const [program] = PROGRAMS as readonly [Program];
  for (const handoff of [false, true]) {
    const project = projectOf({
      'act.json': free,
      'act.sh': program.text('first'),
      ...agent('boss', call('helper'), {
        ...(handoff ? { tools: [], handoffs: ['helper'] } : { tools: ['helper'] }),
        approvals: { act: 'ask' },
      }),
      ...agent('helper', call('act'), { tools: ['act'], mode: 'unsupervised' }),
    });
    const turnId = await project.inProcess(async (host) => {
      const { turnId, status } = await host.run({ loop: 'boss', input: { prompt: 'go' }, sessionId: 's' });
      expect([status, (await waiting(host)).target?.kind]).toEqual(['paused', 'program']);
      return turnId;
    });
    copyFileSync(project.path('act.sh'), project.path('kept.sh'));
    project.write('act.sh', program.text('other'));
    await project.inProcess(async (host) => {
      // The agents continue: the refusal is a tool result for the model.
      expect(await approved(host, turnId)).toBe('ok');
      const failed = (await host.archive.entries('s')).filter(({ error }) => error?.code === 'TOOL_NOT_ADMITTED');
      expect(failed.length).toBeGreaterThan(0);
    });
    expect(project.read('trace')).toBe(undefined);
  }
});
