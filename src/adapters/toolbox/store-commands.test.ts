/** The files of a store are hidden from sandboxed commands in every layout, including files created later. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect } from 'vitest';
import { digests, isLocked, lockedStore } from '../../../spec/support/locked-store.js';
import { cleanUp, createWorkspace, failure, SECRET, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { protectStore } from '../../journal/store-files.js';
import { toolbox } from './index.js';
import { mountsFor } from './mounts.js';
import { probeSandbox } from './sandbox.js';

const hasSandbox = 'bubblewrap' in (await probeSandbox());
const openStores: { close(): void }[] = [];
afterEach(() => {
  for (const store of openStores.splice(0)) store.close();
});
afterAll(cleanUp);

/** Creates a root with a store in one of its directories. */
function prepareRoot(directory: string) {
  const { root } = createWorkspace({ 'a.txt': 'harmless\n', 'sub/b.txt': 'harmless\n' });
  const path = join(root, directory, 'journal.db');
  openStores.push(lockedStore(path));
  const box = toolbox({ roots: [root] });
  const run = (command: string) => use(box.run_command, { command });
  return { root, path, store: join(root, directory), run };
}

const LAYOUTS = ['.rondo', 'packages/x/.rondo', 'data', 'var/lib/data', '.'];

verifies(
  'toolbox.store',
  'a sandboxed command can neither read, list, copy, link nor remove a store file',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    for (const layout of LAYOUTS) {
      const { root, path, store, run } = prepareRoot(layout);
      const before = digests(store);
      const commands = [
        `cat ${path}*`,
        `cat ${path}.owner`,
        `cp ${path} copy`,
        `cp -r ${store} copies; cat copies/journal.db`,
        `ln ${path} hard; cat hard`,
        `ln -s ${path}.owner soft; cat soft`,
        `mv ${path}.owner moved; cat moved`,
        `mv ${store} moved-store`,
        `rm ${path}`,
        `rm -rf ${path}* ${store}/.??*; ls ${path}`,
        `echo x > ${path}`,
        `echo x > ${path}-journal`,
        `echo x > ${path}.owner.1`,
        `grep -r ${SECRET} .`,
        `unshare -rm sh -c 'umount ${store}; cat ${path}.owner'`,
        `unshare -rm sh -c 'mount -o remount,rw ${store} && echo x > ${path}.lock'`,
      ];
      for (const command of commands) {
        const { exitCode, output } = await run(command);
        const isLeaked = String(output).includes(SECRET);
        expect({ command, failed: exitCode !== 0, isLeaked }).toEqual({ command, failed: true, isLeaked: false });
      }
      const listed = String((await run(`ls -a ${store}; find . -name 'journal*'`)).output);
      expect(listed).not.toContain('journal');
      await run(`rm -rf ${path} ${store}; rm -rf * .rondo`);
      expect(
        digests(store)
          .split('\n')
          .filter((line) => line.includes('journal')),
      ).toEqual(before.split('\n').filter((line) => line.includes('journal')));
      expect(isLocked(path)).toBe(true);
      expect(existsSync(join(root, 'copy'))).toBe(false);
    }
  },
);

verifies('toolbox.store', 'a store file that its owner replaces while a command runs stays hidden', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  for (const layout of LAYOUTS) {
    const { root, path, run } = prepareRoot(layout);
    const result = run(`echo > sub/begun; until test -e sub/go; do sleep 0.01; done; cat ${path}.owner; ls ${path}*`);
    while (!existsSync(join(root, 'sub/begun'))) await new Promise((resolve) => setTimeout(resolve, 10));
    writeFileSync(`${path}.owner.2`, SECRET);
    renameSync(`${path}.owner.2`, `${path}.owner`);
    writeFileSync(`${path}-journal`, SECRET);
    writeFileSync(join(root, 'sub/go'), '');
    const { output } = await result;
    expect(output).not.toContain(SECRET);
    expect(output).toMatch(/No such file.*No such file/s);
  }
});

verifies('toolbox.store', 'a command cannot move a store to a path that is not protected', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  for (const layout of ['packages/x/.rondo', 'var/lib/data']) {
    const { path, run } = prepareRoot(layout);
    const [top = '', next = ''] = layout.split('/');
    expect(await run(`mv ${top} moved`)).not.toMatchObject({ exitCode: 0 });
    expect(await run(`mv ${top}/${next} moved`)).not.toMatchObject({ exitCode: 0 });
    expect(existsSync(path)).toBe(true);
  }
});

verifies('toolbox.store', 'a command can use the other files in the directory of a store', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  for (const layout of LAYOUTS) {
    const { root, store, run } = prepareRoot(layout);
    writeFileSync(join(root, 'sub/new.txt'), '');
    const inside = layout.endsWith('.rondo') ? join(store, '..') : store;
    mkdirSync(join(inside, 'folder'), { recursive: true });
    writeFileSync(join(inside, 'beside.txt'), 'beside\n');
    symlinkSync('beside.txt', join(inside, 'link.txt'));
    const { exitCode, output } = await run(
      `cat ${inside}/beside.txt ${inside}/link.txt && echo more >> ${inside}/beside.txt && ` +
        `echo x > ${inside}/folder/new && echo x > sub/made && rm sub/new.txt`,
    );
    expect({ exitCode, output }).toEqual({ exitCode: 0, output: 'beside\nbeside\n' });
    expect(readFileSync(join(inside, 'beside.txt'), 'utf8')).toBe('beside\nmore\n');
    expect(existsSync(join(inside, 'folder/new'))).toBe(true);
    expect(existsSync(join(root, 'sub/made'))).toBe(true);
    expect(existsSync(join(root, 'sub/new.txt'))).toBe(false);
  }
});

verifies(
  'toolbox.store',
  'the data directory of a project that this process does not use is hidden too',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    const { root } = createWorkspace({ '.rondo/owner.json': SECRET, 'a/b/c/.rondo/journal.db.owner': SECRET });
    const run = (command: string) => use(toolbox({ roots: [root] }).run_command, { command });
    expect(await run('cat .rondo/* a/b/c/.rondo/*')).toMatchObject({ output: expect.not.stringContaining(SECRET) });
    expect(await run('rm -rf .rondo a; echo x > .rondo/owner.json')).not.toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(root, '.rondo/owner.json'), 'utf8')).toBe(SECRET);
    expect(readFileSync(join(root, 'a/b/c/.rondo/journal.db.owner'), 'utf8')).toBe(SECRET);
  },
);

verifies('toolbox.store', 'every visible store is covered before its other files are mounted back', async () => {
  const { root, store } = prepareRoot('var/data');
  const { root: plain } = createWorkspace({ 'x/.rondo/a': '', 'node_modules/y/.rondo/a': '' });
  mkdirSync(join(store, 'keep'));
  const [data, foreign] = [join(plain, 'x/.rondo'), join(plain, 'node_modules/y/.rondo')];
  const [above, modules, module] = ['x', 'node_modules', 'node_modules/y'].map((name) => join(plain, name));
  expect((await mountsFor([plain])).mounts).toEqual([
    ...['--bind', plain, plain, '--bind', above, above],
    ...['--tmpfs', data, '--remount-ro', data],
    ...['--bind', modules, modules, '--bind', module, module],
    ...['--tmpfs', foreign, '--remount-ro', foreign],
  ]);
  const parent = join(root, 'var');
  const keep = join(store, 'keep');
  expect((await mountsFor([keep, root])).mounts).toEqual([
    ...['--bind', root, root],
    ...['--bind', parent, parent],
    ...['--tmpfs', store, '--bind-try', keep, keep, '--remount-ro', store],
    ...['--bind', keep, keep],
  ]);
});

verifies(
  'toolbox.store',
  'with a store directly in a root, the root is read-only and a .rondo in it is hidden',
  async () => {
    const { root } = prepareRoot('.');
    mkdirSync(join(root, '.rondo'));
    const visible = ['a.txt', 'sub'].map((name) => join(root, name));
    const [file = '', folder = ''] = visible;
    expect((await mountsFor([root])).mounts).toEqual([
      ...['--bind', root, root, '--tmpfs', root],
      ...['--bind-try', file, file, '--bind-try', folder, folder, '--remount-ro', root],
    ]);
  },
);

verifies('toolbox.store', 'a command fails if a store is among too many other files to hide it', async () => {
  const { root, store } = prepareRoot('data');
  for (let i = 0; i < 1001; i++) writeFileSync(join(store, `f${i}`), '');
  expect(await failure(mountsFor([root]))).toMatch(/^Nothing was run: .* move the store to a directory of its own/);
});

verifies('toolbox.store', 'a store in a system directory is hidden, and the other files stay read-only', async () => {
  const directory = '/usr/local';
  protectStore(join(directory, 'rondo-test.db'));
  const { root } = createWorkspace();
  const [entry = ''] = readdirSync(directory).filter((name) => !lstatSync(join(directory, name)).isSymbolicLink());
  const mounts = (await mountsFor([root])).mounts.join(' ');
  expect(mounts).toContain(`--tmpfs ${directory} --`);
  expect(mounts).toContain(` --ro-bind-try ${join(directory, entry)} ${join(directory, entry)} `);
  expect(mounts).toContain(`--remount-ro ${directory}`);
});
