// Stores that are created in the roots of a running sandboxed command: which side waits, and for how long.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, onTestFinished } from 'vitest';
import { openSqlite, type SqliteStore } from '../../src/adapters/sqlite/index.js';
import { toolbox } from '../../src/adapters/toolbox/index.js';
import { probeSandbox } from '../../src/adapters/toolbox/sandbox.js';
import { Announcement, listAnnouncements } from '../../src/base/announcement.js';
import { Project } from '../support/cli-project.js';
import { exposedCommand, freshRoot, inodeAt } from '../support/exposed-command.js';
import { verifies } from '../verifies.js';

const isSandboxed = 'bubblewrap' in (await probeSandbox());
const built = fileURLToPath(new URL('../../dist', import.meta.url));
const roots: string[] = [];
const stores: SqliteStore[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  for (const root of roots.splice(0)) rmSync(root, { recursive: true, force: true });
});

/** Creates a root directory and a toolbox that uses it. */
function createRoot() {
  const root = freshRoot();
  roots.push(root);
  return { root, box: toolbox({ roots: [root] }) };
}

/** Starts to open a store. `notice` resolves with the first message to the operator. */
function startOpening(path: string) {
  let notify: (message: string) => void = () => undefined;
  const notice = new Promise<string>((resolve) => {
    notify = resolve;
  });
  const opened = openSqlite(path, { notify }).then((store) => {
    stores.push(store);
    return store;
  });
  return { notice, opened };
}

/** Starts a process that runs a program with the built package until it is killed. */
async function startProcess(program: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

/** Kills a process and waits for its end. */
async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Directories of a store, relative to the root of the command. */
const STORE_DIRECTORIES = ['.rondo', 'state', 'deep/er/.rondo', '.'];

verifies(
  'toolbox.data.new',
  'a store in a root of a running command is created only after the command has ended',
  async (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    await Promise.all(
      STORE_DIRECTORIES.map(async (directory) => {
        const { root, box } = createRoot();
        const path = join(root, directory, 'journal.db');
        const command = await exposedCommand(box, root, { last: 'ls -aR; cat */*.owner .*/*.owner' });
        const { notice, opened } = startOpening(path);
        expect(await notice).toMatch(
          `Waiting to open ${path} until a sandboxed command of this process in ${root} has ended`,
        );
        expect(readdirSync(root)).toEqual(['pace']);
        const { output, exitCode } = await command.finish();
        expect({ exitCode, hasStore: /journal|secret|rondo/.test(String(output)) }).toEqual({
          exitCode: 1,
          hasStore: false,
        });
        await opened;
        expect(existsSync(`${path}.owner`)).toBe(true);
      }),
    );
  },
);

verifies(
  'toolbox.data.new',
  'a command starts only when a store that is being created is complete',
  async (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    const { root, box } = createRoot();
    const creation = new Announcement();
    await creation.add('store', [inodeAt(root)]);
    const starting = exposedCommand(box, root, { last: 'ls -a' });
    await setTimeout(300);
    expect(existsSync(join(root, 'pace/begun'))).toBe(false);
    writeFileSync(join(root, 'x'), '');
    writeFileSync(join(root, 'x.anchor'), '');
    creation.release();
    const { output } = await (await starting).finish();
    expect(output).toBe('.\n..\npace\n');
  },
);

verifies('toolbox.data.new', 'a store that a running command hides is opened without waiting', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const { root, box } = createRoot();
  for (const directory of ['.rondo', 'beside']) await (await openSqlite(join(root, directory, 'journal.db'))).close();
  const command = await exposedCommand(box, root);
  const paths = ['.rondo/journal.db', 'beside/journal.db', '.rondo/new.db', 'beside/new.db'].map((name) =>
    join(root, name),
  );
  for (const path of paths) await startOpening(path).opened;
  expect(existsSync(join(root, 'pace/go'))).toBe(false);
  await command.finish();
});

verifies(
  'toolbox.data.new',
  'a store that a running command has planted is not opened before the command has ended',
  async (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    const { root, box } = createRoot();
    const template = join(root, 'made/journal.db');
    await (await openSqlite(template)).close();
    const files = ['', '.anchor'].map((suffix) => readFileSync(`${template}${suffix}`));
    rmSync(join(root, 'made'), { recursive: true });
    files.forEach((content, index) => {
      writeFileSync(join(root, `copy${index}`), content);
    });
    const first = 'mkdir .rondo; cp copy0 .rondo/journal.db; cp copy1 .rondo/journal.db.anchor; chmod 600 .rondo/*';
    const command = await exposedCommand(box, root, { first, last: 'cat .rondo/*.owner' });
    const { notice, opened } = startOpening(join(root, '.rondo/journal.db'));
    await notice;
    const { output } = await command.finish();
    expect(output).toMatch(/No such file/);
    await opened;
  },
);

verifies(
  'toolbox.data.new',
  'a killed creator of a store and a killed host delay no other process',
  async (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    const { root, box } = createRoot();
    const load = (file: string): string => `await import(${JSON.stringify(join(built, file))})`;
    const creator = await startProcess(`
    const { Announcement } = ${load('base/announcement.js')};
    await new Announcement().add('store', ['${inodeAt(root)}']);
    console.log('announced');
    setInterval(() => {}, 1000);
  `);
    const starting = exposedCommand(box, root);
    await setTimeout(200);
    expect(existsSync(join(root, 'pace/begun'))).toBe(false);
    await kill(creator);
    await (await starting).finish();

    const host = await startProcess(`
    const { toolbox } = ${load('adapters/toolbox/index.js')};
    const { execute } = toolbox({ roots: ['${root}'] }).run_command.withApproval('always_allow');
    execute({ command: 'echo begun; sleep 100' }, { toolCallId: 'c', messages: [], onToolOutputDelta: console.log });
  `);
    const { notice, opened } = startOpening(join(root, 'state/journal.db'));
    expect(await notice).toContain(`a sandboxed command of process ${host.pid} in ${root}`);
    await kill(host);
    await opened;
    expect(listAnnouncements().filter(({ pid }) => [host.pid, creator.pid].includes(pid))).toEqual([]);
  },
);

verifies(
  'toolbox.data.new',
  'rondo run waits for a sandboxed command and then marks its data directory',
  async (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    const { root, box } = createRoot();
    const project = new Project();
    const command = await exposedCommand(box, root, { first: 'mkdir state; touch state/.rondo-data', last: 'ls -aR' });
    const running = project.start(['run', 'echo', '--data', join(root, 'state')]);
    while (!running.output().stderr.includes('a sandboxed command of process')) await setTimeout(20);
    const { output, note } = await command.finish();
    expect(output).not.toContain('journal');
    expect(note).toMatch(/state\/\.rondo-data, which was removed/);
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(existsSync(join(root, 'state/.rondo-data'))).toBe(true);
  },
);
