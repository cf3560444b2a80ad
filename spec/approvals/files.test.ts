import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { z } from 'zod';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { toolbox } from '../../src/adapters/toolbox/index.js';
import { probeSandbox } from '../../src/adapters/toolbox/sandbox.js';
import type { Host } from '../../src/host/host.js';
import { loopFromTool } from '../../src/loops/tool-loop.js';
import { loopsTool } from '../../src/protocol/tool.js';
import { hostOf } from '../support/host-fixture.js';
import { verifies } from '../verifies.js';
import { approved, asking, projectOf, waiting } from './projects.js';

type Tool = 'write_file' | 'edit_file' | 'run_command';

/** A directory with files, and hosts whose tools may change them. */
interface Workspace {
  readonly root: string;
  path(name: string): string;
  read(name: string): string | undefined;
  /** Runs a tool until its approval is pending, applies the change, then approves and resumes on another host. */
  changeWhilePending(tool: Tool, input: object, change: () => void): Promise<string>;
}

const COMMANDS = { sandbox: 'off' } as const;

function filesOf(root: string) {
  const path = (name: string): string => join(root, name);
  for (const name of ['real', 'other']) {
    mkdirSync(path(name), { recursive: true });
    writeFileSync(path(`${name}/a.txt`), 'one\n');
  }
  const read = (name: string): string | undefined => {
    try {
      return readFileSync(path(name), 'utf8');
    } catch {
      return undefined;
    }
  };
  return { root, path, read };
}

async function runThroughHosts(
  hosts: () => Promise<Host>,
  loop: string,
  input: object,
  change: () => void,
): Promise<string> {
  const host = await hosts();
  const { turnId, status } = await host.run({ loop, input, sessionId: 's' });
  expect(status).toBe('paused');
  change();
  return approved(await hosts(), turnId);
}

/** A workspace whose tools are created in code. */
function inCode(): Workspace {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-files-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const files = filesOf(root);
  const store = memoryStore();
  let seed = 0;
  const hosts = async (): Promise<Host> => {
    seed += 1;
    const tools = Object.values(toolbox({ roots: [root], commands: COMMANDS }));
    return hostOf(
      tools.map((one) => loopFromTool(one)),
      { store, seed },
    );
  };
  return { ...files, changeWhilePending: (tool, input, change) => runThroughHosts(hosts, tool, input, change) };
}

/** A workspace whose tools are named by definitions. */
function inDefinitions(): Workspace {
  const definitionOf = (id: string): object => ({
    ...asking(`toolbox:${id}`),
    id,
    tool: { implementation: `toolbox:${id}`, config: { commands: COMMANDS, roots: ['files'] } },
    policy: {},
  });
  const tools = ['write_file', 'edit_file', 'run_command'];
  const project = projectOf(Object.fromEntries(tools.map((id) => [`${id}.json`, definitionOf(id)])));
  const files = filesOf(join(realpathSync(project.loops), 'files'));
  const changeWhilePending: Workspace['changeWhilePending'] = async (loop, input, change) => {
    const turnId = await project.inProcess(async (host) => {
      const { turnId, status } = await host.run({ loop, input, sessionId: 's' });
      expect(status).toBe('paused');
      return turnId;
    });
    change();
    return project.inProcess((host) => approved(host, turnId));
  };
  return { ...files, changeWhilePending };
}

const WORKSPACES = { code: inCode, definitions: inDefinitions };

/** Replaces a file or directory by a symbolic link. */
function link(workspace: Workspace, at: string, to: string): void {
  rmSync(workspace.path(at), { recursive: true, force: true });
  symlinkSync(workspace.path(to), workspace.path(at));
}

interface Case {
  readonly input: { readonly [tool in Tool]?: object };
  change(workspace: Workspace): void;
}

const write = (path: string) => ({ path, content: 'new\n' });
const edit = (path: string) => ({ path, old: 'one', new: 'new' });
const touch = (directory: string) => ({ command: 'echo new > a.txt', directory });

/** Changes of a path between request and approval. */
const CASES: { readonly [change: string]: Case } = {
  'the file becomes a link': {
    input: { write_file: write('real/a.txt'), edit_file: edit('real/a.txt') },
    change: (workspace) => link(workspace, 'real/a.txt', 'other/a.txt'),
  },
  'its directory becomes a link': {
    input: { write_file: write('real/a.txt'), edit_file: edit('real/a.txt'), run_command: touch('real') },
    change: (workspace) => link(workspace, 'real', 'other'),
  },
  'a new file becomes a link': {
    input: { write_file: write('real/b.txt') },
    change: (workspace) => link(workspace, 'real/b.txt', 'other/a.txt'),
  },
  'a new file becomes a link to nothing': {
    input: { write_file: write('real/b.txt') },
    change: (workspace) => link(workspace, 'real/b.txt', 'other/b.txt'),
  },
  'a new directory becomes a link': {
    input: { write_file: write('real/new/deep/a.txt') },
    change: (workspace) => link(workspace, 'real/new', 'other'),
  },
  'a new file is created': {
    input: { write_file: write('real/b.txt') },
    change: (workspace) => writeFileSync(workspace.path('real/b.txt'), 'mine\n'),
  },
  'a link leads elsewhere': {
    input: { write_file: write('link/a.txt'), edit_file: edit('link/a.txt'), run_command: touch('link') },
    change: (workspace) => link(workspace, 'link', 'other'),
  },
};

verifies('approval.target', 'a file tool acts on the real path that was shown, and on no other', async () => {
  for (const [where, make] of Object.entries(WORKSPACES)) {
    for (const [how, { input, change }] of Object.entries(CASES)) {
      for (const [tool, arguments_] of Object.entries(input)) {
        const workspace = make();
        symlinkSync(workspace.path('real'), workspace.path('link'));
        const end = await workspace.changeWhilePending(tool as Tool, arguments_, () => change(workspace));
        expect(['TOOL_NOT_ADMITTED', 'TOOL_FAILED'], `${where}: ${how}: ${tool}`).toContain(end);
        if (!how.endsWith('nothing')) expect(end, `${where}: ${how}: ${tool}`).toBe('TOOL_NOT_ADMITTED');
        const contents = ['other/a.txt', 'other/b.txt', 'other/deep/a.txt', 'real/new/deep/a.txt'].map(workspace.read);
        expect(contents, `${where}: ${how}: ${tool}`).toEqual(['one\n', undefined, undefined, undefined]);
        if (how === 'a new file is created') expect(workspace.read('real/b.txt')).toBe('mine\n');
      }
    }
  }
});

verifies('approval.target', 'a file tool does what was approved when nothing changed', async () => {
  for (const [where, make] of Object.entries(WORKSPACES)) {
    const cases: readonly [Tool, object, string][] = [
      ['write_file', write('real/a.txt'), 'real/a.txt'],
      ['write_file', write('new/deep/a.txt'), 'new/deep/a.txt'],
      ['write_file', write('link/a.txt'), 'real/a.txt'],
      ['edit_file', edit('real/a.txt'), 'real/a.txt'],
      ['run_command', touch('real'), 'real/a.txt'],
    ];
    for (const [tool, input, written] of cases) {
      const workspace = make();
      symlinkSync(workspace.path('real'), workspace.path('link'));
      expect(await workspace.changeWhilePending(tool, input, () => undefined), `${where}: ${tool}`).toBe('ok');
      expect(workspace.read(written), `${where}: ${tool} ${written}`).toBe('new\n');
    }
    // A file that an earlier attempt of the same call has written is not a changed target.
    const again = make();
    const end = await again.changeWhilePending('write_file', write('real/b.txt'), () =>
      writeFileSync(again.path('real/b.txt'), 'new\n'),
    );
    expect([end, again.read('real/b.txt')], where).toEqual(['ok', 'new\n']);
  }
});

verifies('approval.target', 'the real path that a call acts on is shown', async () => {
  const workspace = inCode();
  symlinkSync(workspace.path('real'), workspace.path('link'));
  const host = hostOf(
    Object.values(toolbox({ roots: [workspace.root], commands: COMMANDS })).map((one) => loopFromTool(one)),
  );
  const targetOf = async (loop: Tool, input: object) => {
    const { turnId } = await host.run({ loop, input });
    const { target } = await waiting(host);
    await host.cancel(turnId, 'not needed');
    return target;
  };
  const real = workspace.path('real/a.txt');
  expect(await targetOf('edit_file', edit('real/a.txt'))).toEqual({ kind: 'file', path: real });
  expect(await targetOf('write_file', write('link/a.txt'))).toEqual({ kind: 'file', path: real, isIndirect: true });
  const path = workspace.path('x/b.txt');
  expect(await targetOf('write_file', write('x/b.txt'))).toEqual({ kind: 'file', path, isNew: true });
  const confinement = 'WITHOUT a sandbox';
  const directory = { kind: 'directory', path: workspace.path('real'), confinement };
  expect(await targetOf('run_command', touch('real'))).toEqual(directory);
});

verifies('approval.target', 'a command that was approved in a sandbox does not run without one', async (context) => {
  context.skip(!('bubblewrap' in (await probeSandbox())), 'needs bubblewrap');
  for (const [approvedSettings, laterSettings] of [
    [{ sandbox: 'required' }, { sandbox: 'off' }],
    [{ sandbox: 'preferred' }, { sandbox: 'preferred', bubblewrap: '/nowhere/bwrap' }],
    [{ sandbox: 'required' }, { sandbox: 'required', network: true }],
  ] as const) {
    const workspace = inCode();
    const store = memoryStore();
    const hostWith = (seed: number, commands: object) =>
      hostOf([loopFromTool(toolbox({ roots: [workspace.root], commands }).run_command)], { store, seed });
    const { turnId } = await hostWith(1, approvedSettings).run({ loop: 'run_command', input: touch('real') });
    const end = await approved(hostWith(2, laterSettings), turnId);
    expect([end, workspace.read('real/a.txt')], JSON.stringify(laterSettings)).toEqual(['TOOL_NOT_ADMITTED', 'one\n']);
  }
});

verifies('approval.target', 'a standing grant for files covers no path that a link or .. leads away', async () => {
  const workspace = inCode();
  const host = hostOf([loopFromTool(toolbox({ roots: [workspace.root] }).write_file)]);
  const run = (path: string) => host.run({ loop: 'write_file', input: write(path), sessionId: 's' });
  const { turnId } = await run('real/a.txt');
  const standing = { properties: { path: { pattern: '^real/' } } };
  expect(await approved(host, turnId, { standing })).toBe('ok');
  expect([(await run('real/a.txt')).status, (await run('real/b.txt')).status]).toEqual(['ok', 'ok']);
  for (const path of ['real/../other/a.txt', 'real/../real/b.txt', 'real//b.txt', 'real/./b.txt']) {
    const paused = await run(path);
    expect([path, paused.status]).toEqual([path, 'paused']);
    await host.cancel(paused.turnId, 'not needed');
  }
  link(workspace, 'real/b.txt', 'other/a.txt');
  const linked = await run('real/b.txt');
  expect(linked.status).toBe('paused');
  await host.cancel(linked.turnId, 'not needed');
  link(workspace, 'real', 'other');
  expect((await run('real/a.txt')).status).toBe('paused');
  expect(workspace.read('other/a.txt')).toBe('one\n');
});

verifies('approval.target', 'a custom tool is bound to the target that it names', async () => {
  let path = '/data/one';
  const performed: unknown[] = [];
  const move = loopsTool({
    name: 'move',
    inputSchema: z.object({}),
    requestApproval: () => `Move ${path}?`,
    approvalTarget: () => ({ kind: 'file', path }),
    execute: (_, { approvedTarget }) => performed.push(approvedTarget),
  });
  const host = hostOf([loopFromTool(move)]);
  const first = await host.run({ loop: 'move', input: {} });
  expect(await approved(host, first.turnId)).toBe('ok');
  const second = await host.run({ loop: 'move', input: {} });
  path = '/data/two';
  expect(await approved(host, second.turnId)).toBe('TOOL_NOT_ADMITTED');
  expect(performed).toEqual([{ kind: 'file', path: '/data/one' }]);
});

verifies('approval.target', 'a target that changes while it is described is refused without an approval', async () => {
  let reads = 0;
  const move = loopsTool({
    name: 'move',
    inputSchema: z.object({}),
    requestApproval: () => 'Move it?',
    approvalTarget: () => ({ kind: 'file', path: `/data/${reads++}` }),
    execute: () => 'moved',
  });
  const malformed = loopsTool({
    name: 'bad',
    inputSchema: z.object({}),
    requestApproval: () => 'Move it?',
    approvalTarget: () => ({ path: 5 }) as never,
    execute: () => 'moved',
  });
  const host = hostOf([loopFromTool(move), loopFromTool(malformed)]);
  expect(await host.run({ loop: 'move', input: {} })).toMatchObject({ error: { code: 'TOOL_NOT_ADMITTED' } });
  expect(await host.run({ loop: 'bad', input: {} })).toMatchObject({ error: { code: 'TOOL_FAILED' } });
});
