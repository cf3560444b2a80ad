/** Data directories of any name and any process: no tool can use them or their content. */
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import {
  cleanUp,
  createWorkspace,
  DATABASE,
  failure,
  SECRET,
  snapshot,
  use,
} from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { DATA_MARKER, protectDirectory } from '../../journal/store-files.js';
import { findStores } from './find-stores.js';
import { toolbox } from './index.js';
import { probeSandbox } from './sandbox.js';
import { isDataDirectory } from './store-protection.js';

const hasSandbox = 'bubblewrap' in (await probeSandbox());
afterAll(cleanUp);

const REFUSED = /belongs to Rondo's store/;
const FILES = { 'owner.json': SECRET, 'keys/signing.key': SECRET, 'receipts/1.json': SECRET, 'journal.db': SECRET };

/** Turns a directory into a data directory. */
type Protect = (directory: string) => void;
const protections: { readonly [name: string]: Protect } = {
  registered: protectDirectory,
  marked: (directory) => writeFileSync(join(directory, DATA_MARKER), ''),
};

function prepareRoot(protect: Protect, name: string) {
  const files = Object.entries(FILES).map(([file, text]) => [join(name, file), text]);
  const { root } = createWorkspace({ 'a.txt': 'harmless\n', 'sub/b.txt': 'harmless\n', ...Object.fromEntries(files) });
  const data = join(root, name);
  protect(data);
  const box = toolbox({ roots: [root] });
  return { root, data, box, run: (command: string) => use(box.run_command, { command }) };
}

async function forEachDataDirectory(check: (prepared: ReturnType<typeof prepareRoot>) => Promise<void>): Promise<void> {
  for (const protect of Object.values(protections)) {
    for (const name of ['state', 'var/lib/state']) await check(prepareRoot(protect, name));
  }
}

verifies('toolbox.data', 'no tool views, searches, lists, writes or edits what is in a data directory', async () => {
  await forEachDataDirectory(async ({ root, data, box }) => {
    const before = snapshot(data);
    symlinkSync(data, join(root, 'folder'));
    symlinkSync(join(data, 'owner.json'), join(root, 'link'));
    const inside = ['', 'owner.json', 'keys', 'keys/signing.key', 'new.txt', 'new/deep.txt', DATA_MARKER];
    for (const path of [...inside.flatMap((name) => [join(data, name), join('folder', name)]), 'link']) {
      const results = [
        await failure(use(box.view_file, { path })),
        await failure(use(box.list_files, { path })),
        await failure(use(box.search_files, { path, query: 'e', hidden: true })),
        await failure(use(box.edit_file, { path, old: SECRET, new: 'overwritten' })),
        await failure(use(box.write_file, { path, content: 'overwritten' })),
        await failure(use(box.run_command, { command: 'ls', directory: path })),
      ];
      for (const text of results) expect(text, path).toMatch(/belongs to Rondo's store|does not exist/);
    }
    expect(snapshot(data)).toBe(before);
    expect(await use(box.search_files, { query: SECRET, hidden: true })).toMatchObject({ matches: [] });
    const { entries } = await use(box.list_files, { depth: 10, hidden: true });
    expect(JSON.stringify(entries)).not.toContain('state');
    expect(entries).toContain('a.txt');
  });
});

verifies('toolbox.data', 'a hard link to a file of a data directory is refused', async () => {
  const { root, data, box } = prepareRoot(protectDirectory, 'state');
  linkSync(join(data, 'keys/signing.key'), join(root, 'innocent.txt'));
  linkSync(join(root, 'a.txt'), join(root, 'b.txt'));
  expect(await failure(use(box.view_file, { path: 'innocent.txt' }))).toMatch(REFUSED);
  expect(await use(box.search_files, { query: SECRET })).toMatchObject({ matches: [] });
  expect(await use(box.view_file, { path: 'b.txt' })).toMatchObject({ text: '1\tharmless' });
});

verifies('toolbox.data', 'a data directory is recognized through any path', () => {
  const { root, data } = prepareRoot(protectDirectory, 'state');
  symlinkSync(data, join(root, 'mounted'));
  expect(isDataDirectory(join(root, 'mounted'))).toBe(true);
  expect(isDataDirectory(join(root, 'sub'))).toBe(false);
  for (const name of ['.RONDO', '.Rondo/keys']) expect(isDataDirectory(join(root, name))).toBe(true);
});

verifies('toolbox.data', 'a marked data directory is still recognized after it was renamed', async () => {
  const { root, data, box } = prepareRoot(protections.marked as Protect, 'state');
  renameSync(data, join(root, 'renamed'));
  expect(await failure(use(box.view_file, { path: 'renamed/owner.json' }))).toMatch(REFUSED);
});

verifies('toolbox.data', 'no tool can write a data marker', async () => {
  const { root } = createWorkspace({ 'src/a.txt': 'harmless\n' });
  const { write_file, view_file } = toolbox({ roots: [root] });
  for (const name of [DATA_MARKER, DATA_MARKER.toUpperCase()]) {
    expect(await failure(use(write_file, { path: join('src', name), content: '' }))).toMatch(REFUSED);
  }
  expect(await use(view_file, { path: 'src/a.txt' })).toMatchObject({ text: '1\tharmless' });
});

verifies('toolbox.data', 'a root in a data directory is refused, on creation of the toolbox and later', async () => {
  for (const protect of Object.values(protections)) {
    const { data } = prepareRoot(protect, 'state');
    for (const root of [data, join(data, 'keys')]) {
      expect(() => toolbox({ roots: [root] })).toThrow(/is in the data directory of a store/);
    }
    const { root } = createWorkspace({ 'work/a.txt': SECRET });
    const early = toolbox({ roots: [join(root, 'work')] });
    protect(root);
    expect(await failure(use(early.view_file, { path: 'a.txt' }))).toMatch(REFUSED);
    expect(await failure(use(early.run_command, { command: 'cat a.txt' }))).toMatch(REFUSED);
  }
});

verifies(
  'toolbox.data',
  'a sandboxed command can neither read, list, copy, move nor remove a data directory or its parents',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    await forEachDataDirectory(async ({ root, data, run }) => {
      const before = snapshot(data);
      const top = data.slice(root.length + 1).split('/')[0];
      const commands = [
        `cat ${data}/owner.json`,
        `ls ${data}/keys`,
        `cp -r ${data} copy && cat copy/owner.json`,
        `cat /proc/self/root${data}/owner.json /proc/1/root${data}/owner.json`,
        `ln ${data}/owner.json hard`,
        `mv ${data} moved`,
        `mv ${top} moved`,
        `mv ${root} ${root}-moved`,
        `echo x > ${data}/new`,
        `grep -r ${SECRET} .`,
        `unshare -rm sh -c 'umount ${data}; cat ${data}/owner.json'`,
      ];
      for (const command of commands) {
        const { exitCode, output } = await run(command);
        const isLeaked = String(output).includes(SECRET);
        expect({ command, failed: exitCode !== 0, isLeaked }).toEqual({ command, failed: true, isLeaked: false });
      }
      await run(`rm -rf ${data} ${top} ${root} ./*`);
      expect(snapshot(data)).toBe(before);
      expect(existsSync(join(root, 'sub'))).toBe(false);
    });
  },
);

verifies('toolbox.data', 'a sandboxed command cannot connect to the socket of an owner', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { data, run } = prepareRoot(protectDirectory, 'state');
  let connections = 0;
  const path = join(data, 's.sock');
  const server = createServer((socket) => socket.end(String(connections++))).listen(path);
  await once(server, 'listening');
  const connect = `node -e "require('net').connect('${path}').on('connect', () => process.exit(0)).on('error', () => process.exit(7))"`;
  expect(await run(connect)).toMatchObject({ exitCode: 7 });
  expect(connections).toBe(0);
  server.close();
});

verifies(
  'toolbox.data',
  'a store of another process in a directory with other files is recognized by its files',
  async (context) => {
    context.skip(!hasSandbox, 'needs bubblewrap');
    const files = {
      'db/x': DATABASE,
      'db/x.anchor': SECRET,
      'db/x.owner.12': SECRET,
      'db/xylophone.txt': 'harmless\n',
    };
    const { root } = createWorkspace({ ...files, 'db/x-wal': SECRET });
    const box = toolbox({ roots: [root] });
    for (const path of ['db/x', 'db/x.anchor', 'db/x.owner.12', 'db/x-wal']) {
      expect(await failure(use(box.view_file, { path })), path).toMatch(REFUSED);
      expect(await failure(use(box.write_file, { path, content: '' })), path).toMatch(REFUSED);
    }
    expect(await use(box.list_files, { path: 'db' })).toMatchObject({ entries: ['db/xylophone.txt'] });
    expect(await use(box.search_files, { query: SECRET })).toMatchObject({ matches: [] });
    const { output } = await use(box.run_command, { command: `cat db/*; ls db; rm -rf db` });
    expect(output).not.toContain(SECRET);
    expect(output).toContain('harmless\nxylophone.txt\n');
    expect(readFileSync(join(root, 'db/x'), 'utf8')).toBe(DATABASE);
  },
);

verifies('toolbox.data', 'a search fails if there are too many directories', async () => {
  const { root } = createWorkspace();
  for (let i = 0; i < 10; i++) mkdirSync(join(root, `d${i}/e/f`), { recursive: true });
  expect(await findStores([root], 31)).toMatchObject({ dataDirectories: [], sharedDirectories: [] });
  expect(await failure(findStores([root], 30))).toMatch(
    /^Nothing was done: .* more than 30 directories.* smaller roots/,
  );
});
