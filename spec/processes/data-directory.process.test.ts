/** The data directory of the command line, under any name and setting: no tool of any process can reach it. */
import { renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { toolbox } from '../../src/adapters/toolbox/index.js';
import { probeSandbox } from '../../src/adapters/toolbox/sandbox.js';
import { Project } from '../support/cli-project.js';
import { failure, use } from '../support/toolbox-fixture.mjs';
import { verifies } from '../verifies.js';

const isSandboxed = 'bubblewrap' in (await probeSandbox());
const REFUSED = /belongs to Rondo's store/;

/** Names and contents of the files of a store, which must not appear in the output of a tool. */
const STORE_CONTENT = /journal\.db|SQLite format|key-of-the-store/;

const settings = [
  { args: ['--data', 'state'], env: {}, config: '' },
  { args: [], env: { RONDO_DATA: 'state' }, config: '' },
  { args: [], env: {}, config: 'data = "state"\n' },
];

verifies('toolbox.data', 'tools refuse a data directory of another process, even after it was renamed', async () => {
  for (const { args, env, config } of settings) {
    const project = new Project();
    if (config !== '') project.write('rondo.toml', config);
    const input = ['--input', '{"name":"Ada"}'];
    expect((await project.runProcess(['run', 'hello', ...input, ...args], { env })).code).toBe(0);
    project.write('state/keys/signing.key', 'key-of-the-store');
    const box = toolbox({ roots: [project.directory] });
    for (const name of ['state', 'renamed']) {
      if (name !== 'state') renameSync(project.path('state'), project.path(name));
      for (const path of [name, `${name}/journal.db`, `${name}/keys/signing.key`, `${name}/new`]) {
        expect(await failure(use(box.view_file, { path }))).toMatch(/belongs to Rondo's store|does not exist/);
        expect(await failure(use(box.write_file, { path, content: '' }))).toMatch(REFUSED);
      }
      expect(JSON.stringify(await use(box.list_files, { depth: 5, hidden: true }))).not.toMatch(STORE_CONTENT);
      if (!isSandboxed) continue;
      const { output } = await use(box.run_command, { command: `ls -aR .; cat ${name}/*; rm -rf ${name}` });
      expect(output).not.toMatch(STORE_CONTENT);
      expect(project.has(`${name}/journal.db`)).toBe(true);
    }
  }
});

/** Adds an agent to the project that runs a scripted command without approval. */
function addAgent(project: Project, command: string): void {
  const script = [{ toolCalls: [{ name: 'sh', args: { command } }] }, { text: 'done' }];
  project.write('loops/script.json.txt', JSON.stringify(script));
  const anyObject = { type: 'object' };
  const base = { version: '1.0.0', inputSchema: anyObject, outputSchema: anyObject };
  project.write('loops/sh.json', {
    ...base,
    ...{ id: 'sh', name: 'Shell', kind: 'tool', policy: { approval: 'always_allow' } },
    tool: { implementation: 'toolbox:run_command', config: { roots: ['..'] }, safety: 'once' },
  });
  project.write('loops/worker.json', {
    ...base,
    ...{ id: 'worker', name: 'Worker', kind: 'composite' },
    composite: { agent: { backend: { id: 'scripted', model: 'script.json.txt' }, tools: ['sh'] } },
  });
}

verifies('toolbox.data', 'an agent cannot read, copy or move the data directory that it runs in', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const project = new Project({});
  project.write('state/keys/signing.key', 'key-of-the-store');
  addAgent(project, 'ls -aR state; cat state/* state/*/*; cp -r state copy; ls copy; mv state moved');
  const args = ['--data', 'state', '--trust', 'loops', '--input', '{"prompt":"go"}', '--session', 's'];
  const { code, stderr } = await project.runProcess(['run', 'worker', ...args]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const events = await project.runProcess(['events', 's', '--data', 'state', '--json']);
  expect(events.stdout).toContain('ls -aR state');
  expect(events.stdout).not.toMatch(STORE_CONTENT);
  expect(project.has('state/journal.db')).toBe(true);
  expect(project.has('moved')).toBe(false);
  expect(project.has(join('copy', 'journal.db'))).toBe(false);
});

verifies('toolbox.data', 'the files of a store in the project directory itself are hidden from tools', async () => {
  const project = new Project();
  const args = ['--input', '{"name":"Ada"}', '--data', '.'];
  expect((await project.runProcess(['run', 'hello', ...args])).code).toBe(0);
  // The setting applies to that run only. Another process recognizes the files of the store, and hides nothing else.
  expect(project.has('.rondo-data')).toBe(false);
  const { view_file } = toolbox({ roots: [project.directory] });
  expect(await failure(use(view_file, { path: 'journal.db' }))).toMatch(REFUSED);
  expect(await use(view_file, { path: 'loops/hello.json' })).toMatchObject({ path: 'loops/hello.json' });
});
