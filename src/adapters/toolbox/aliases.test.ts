/** Data directories that only a search finds, and aliases of their files: hard links and mounts. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, DATABASE, failure, SECRET, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { DATA_MARKER } from '../../journal/store-files.js';
import { AliasDetector, parseMountPoints } from './aliases.js';
import { findStores } from './find-stores.js';
import { toolbox } from './index.js';
import { mountsFor } from './mounts.js';
import { probeSandbox } from './sandbox.js';

const hasSandbox = 'bubblewrap' in (await probeSandbox());
const canMount = tryMount();
afterAll(cleanUp);

const REFUSED = /belongs to Rondo's store/;
const UNDER_ANOTHER_NAME = /belongs to Rondo's store \(under another name/;

/** Returns true if this process is permitted to mount file systems. */
function tryMount(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-mount-'));
  try {
    mount(directory, directory);
    unmount(directory);
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(directory);
  }
}

function mount(source: string, mountPoint: string): void {
  execFileSync('mount', ['--bind', source, mountPoint], { stdio: 'ignore' });
}

function unmount(mountPoint: string): void {
  execFileSync('umount', ['-l', mountPoint], { stdio: 'ignore' });
}

/** Creates a root with an unmarked data directory of another process, and its tools. */
function prepareRoot(files: { readonly [name: string]: string } = {}) {
  const { root } = createWorkspace({
    '.rondo/keys/key': SECRET,
    'a.txt': 'harmless\n',
    'sub/b.txt': 'harmless\n',
    ...files,
  });
  const box = toolbox({ roots: [root] });
  return { root, box, run: (command: string) => use(box.run_command, { command }) };
}

verifies('toolbox.data', 'a data directory in node_modules or .git is hidden from a command', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const directories = ['node_modules/app/.rondo', '.git/modules/.rondo', 'node_modules/.git/state'];
  const { root, run } = prepareRoot(Object.fromEntries(directories.map((directory) => [`${directory}/key`, SECRET])));
  writeFileSync(join(root, 'node_modules/.git/state', DATA_MARKER), '');
  const { output } = await run(
    `for d in ${directories.join(' ')}; do cat $d/key; echo x > $d/key; done; rm -rf node_modules`,
  );
  expect(output).not.toContain(SECRET);
  for (const directory of directories) expect(readFileSync(join(root, directory, 'key'), 'utf8')).toBe(SECRET);
});

verifies('toolbox.data', 'a search finds changes of directories since the last one', async () => {
  const { root } = createWorkspace({ 'a/b/c.txt': '', 'd/e.txt': '' });
  const later = () => Date.now() + 60_000;
  const search = async () => (await findStores([root], 100, later)).dataDirectories;
  expect(await search()).toEqual([]);
  // Waits until the clock of the file system has advanced.
  await setTimeout(50);
  mkdirSync(join(root, 'a/b/.rondo'));
  writeFileSync(join(root, 'd', DATA_MARKER), '');
  expect(await search()).toEqual([join(root, 'd'), join(root, 'a/b/.rondo')]);
  expect(await search()).toEqual([join(root, 'd'), join(root, 'a/b/.rondo')]);
});

verifies('toolbox.data', 'a directory that changed just now is read again even if its ctime is the same', async () => {
  const { root } = createWorkspace();
  for (let round = 0; round < 50; round++) {
    const directory = join(root, String(round));
    mkdirSync(directory);
    await findStores([directory]);
    mkdirSync(join(directory, '.rondo'));
    expect((await findStores([directory])).dataDirectories).toEqual([join(directory, '.rondo')]);
  }
});

verifies('toolbox.data', 'no tool opens a hard link to a file in a data directory of another process', async () => {
  const { root, box } = prepareRoot({ 'db/x': DATABASE, 'db/x.anchor': SECRET });
  linkSync(join(root, '.rondo/keys/key'), join(root, 'hard.txt'));
  linkSync(join(root, 'db/x'), join(root, 'sub/hard.txt'));
  linkSync(join(root, 'a.txt'), join(root, 'c.txt'));
  for (const path of ['hard.txt', 'sub/hard.txt']) {
    expect(await failure(use(box.view_file, { path }))).toMatch(UNDER_ANOTHER_NAME);
    expect(await failure(use(box.edit_file, { path, old: SECRET, new: 'x' }))).toMatch(UNDER_ANOTHER_NAME);
    expect(await failure(use(box.write_file, { path, content: 'x' }))).toMatch(UNDER_ANOTHER_NAME);
  }
  expect(await use(box.search_files, { query: SECRET, hidden: true })).toMatchObject({ matches: [] });
  expect(await use(box.view_file, { path: 'c.txt' })).toMatchObject({ text: '1\tharmless' });
});

verifies('toolbox.data', 'a command cannot read or change a hard link to a file of a store', async (context) => {
  context.skip(!hasSandbox, 'needs bubblewrap');
  const { root, run } = prepareRoot({ 'db/x': DATABASE, 'db/x.anchor': SECRET, 'db/y.txt': 'harmless\n' });
  const links = ['hard', 'sub/deep/hard', 'db/hard'].map((name) => join(root, name));
  mkdirSync(join(root, 'sub/deep'));
  for (const path of links) linkSync(join(root, '.rondo/keys/key'), path);
  linkSync(join(root, 'db/x'), join(root, 'other'));
  linkSync(join(root, 'a.txt'), join(root, 'c.txt'));
  const { output } = await run(
    `for f in ${links.join(' ')} other; do cat $f; echo x >> $f; mv $f moved; cp $f copy; cat moved copy; done; mv sub elsewhere; cat */deep/hard`,
  );
  expect(output).not.toContain(SECRET);
  for (const path of links) expect(readFileSync(path, 'utf8')).toBe(SECRET);
  expect(existsSync(join(root, 'sub'))).toBe(true);
  expect(await run('cat c.txt db/y.txt; echo more >> c.txt; echo x > sub/deep/new')).toMatchObject({
    exitCode: 0,
    output: 'harmless\nharmless\n',
  });
});

verifies(
  'toolbox.data',
  'a data directory or a file of it is refused and hidden where it is mounted',
  async (context) => {
    context.skip(!canMount, 'needs root, to mount');
    context.skip(!hasSandbox, 'needs bubblewrap');
    const { root, box, run } = prepareRoot({ 'other dir/c.txt': 'harmless\n', 'bound file': '' });
    const bound = ['bound dir', 'sub/keys', 'bound file', 'plain'].map((name) => join(root, name));
    for (const directory of bound.filter((path) => !existsSync(path))) mkdirSync(directory);
    const names = ['.rondo', '.rondo/keys', '.rondo/keys/key', 'other dir'];
    for (const [index, path] of bound.entries()) mount(join(root, names[index] ?? ''), path);
    try {
      for (const path of ['bound dir/keys/key', 'sub/keys/key', 'bound file', 'bound dir', 'sub/keys']) {
        expect(await failure(use(box.view_file, { path })), path).toMatch(UNDER_ANOTHER_NAME);
        expect(await failure(use(box.list_files, { path })), path).toMatch(UNDER_ANOTHER_NAME);
      }
      for (const path of ['bound dir/new', 'sub/keys/new/deep']) {
        expect(await failure(use(box.write_file, { path, content: 'x' })), path).toMatch(UNDER_ANOTHER_NAME);
      }
      expect(await use(box.view_file, { path: 'plain/c.txt' })).toMatchObject({ text: '1\tharmless' });
      const { output } = await run(
        'for f in "bound dir/keys/key" sub/keys/key "bound file"; do cat "$f"; echo x >> "$f"; done; ls -a "bound dir" sub/keys; cat plain/c.txt',
      );
      expect(output).not.toContain(SECRET);
      expect(output).toMatch(/harmless\n$/);
      expect(readFileSync(join(root, '.rondo/keys/key'), 'utf8')).toBe(SECRET);
    } finally {
      for (const path of bound) unmount(path);
    }
  },
);

verifies('toolbox.data', 'mount points are unescaped as the kernel escapes them', () => {
  const table = [
    '36 29 254:0 /a /mnt/with\\040space\\134and\\011more rw shared:1 - ext4 /dev/vda rw',
    '37 29 254:0 / /mnt/ä rw - ext4 /dev/vda rw',
    '',
  ].join('\n');
  expect(parseMountPoints(table)).toEqual(['/mnt/with space\\and\tmore', '/mnt/ä']);
});

verifies('toolbox.data', 'hard links cause at most one search a second, and files with one name none', async () => {
  const { root } = createWorkspace({ 'a.txt': '', 'plain.txt': '' });
  const link = join(root, 'link.txt');
  linkSync(join(root, 'a.txt'), link);
  let now = 0;
  const detector = new AliasDetector([root], () => now);
  const isAlias = (path: string) => detector.isAlias(path, lstatSync(path, { bigint: true }));
  expect(await isAlias(link)).toBe(false);
  mkdirSync(join(root, '.rondo'));
  linkSync(link, join(root, '.rondo/key'));
  expect(await isAlias(link)).toBe(false);
  now = 1000;
  expect(await isAlias(link)).toBe(true);
  expect(await isAlias(join(root, 'plain.txt'))).toBe(false);
});

const PROGRAM = `
import { mkdirSync, writeFileSync } from 'node:fs';
import { toolbox } from 'rondo/toolbox';
mkdirSync('/usr/src/state/.rondo', { recursive: true });
writeFileSync('/usr/src/state/.rondo/key', '${SECRET}');
writeFileSync('/usr/src/state/plain', 'harmless');
const { run_command } = toolbox({ roots: [process.argv[1]] });
const command = 'cat /usr/src/state/plain /usr/src/state/.rondo/key';
const { output } = await run_command.withApproval('always_allow').execute({ command }, { toolCallId: 'c', messages: [], onToolOutputDelta() {} });
console.log(output);
`;

verifies('toolbox.data', 'a data directory in a directory of locally installed programs is hidden', (context) => {
  context.skip(!canMount, 'needs root, to mount');
  context.skip(!hasSandbox, 'needs bubblewrap');
  const hasSources = existsSync('/usr/src');
  context.skip(!hasSources, 'needs /usr/src');
  const { root } = createWorkspace();
  const node = [process.execPath, '--input-type=module', '-e', PROGRAM, root];
  const script = 'mount -t tmpfs t /usr/src && exec "$@"';
  const cwd = fileURLToPath(new URL('../../../', import.meta.url));
  const output = execFileSync('unshare', ['-m', 'sh', '-c', script, 'sh', ...node], { cwd, encoding: 'utf8' });
  expect(output).toMatch(/^harmless/);
  expect(output).not.toContain(SECRET);
});

verifies('toolbox.data', 'a refusal names the file or directory name by which a store was recognized', async () => {
  const { root, box } = prepareRoot({ 'src/a.txt': '', 'db/x': '', 'db/x.owner': '' });
  const marker = join(root, 'src', DATA_MARKER);
  writeFileSync(marker, '');
  const evidence = (file: string): string =>
    ` (marked by the file ${file}; if there is no store, ask the operator to remove it)`;
  expect(() => toolbox({ roots: [join(root, 'src')] })).toThrow(
    `The root ${root}/src is in the data directory of a store${evidence(marker)}; choose another one.`,
  );
  expect(() => toolbox({ roots: [join(root, '.rondo/keys')] })).toThrow(
    / \(known by the directory name \.rondo\); choose another/,
  );
  for (const [path, file] of [
    ['src/a.txt', marker],
    ['db/x', join(root, 'db/x.owner')],
  ] as const) {
    const text = await failure(use(box.view_file, { path }));
    expect(text).toMatch(REFUSED);
    expect(text).toContain(evidence(file));
  }
});

verifies('toolbox.isolation', 'every visible mount is compared, and no covered one', async () => {
  const { root } = prepareRoot({ 'db/x': '', 'db/x.anchor': '', 'db/y.txt': '', 'deep/er/.rondo/key': '' });
  const { sources } = await mountsFor([root]);
  const inodes = sources.map(({ path, inode }) => [path.slice(root.length), inode] as const);
  const paths = ['', '/deep', '/deep/er', '/db/y.txt'];
  const expected = paths.map((path) => {
    const { dev, ino } = lstatSync(join(root, path), { bigint: true });
    return [path, `${dev}:${ino}`] as const;
  });
  expect(new Map(inodes)).toEqual(new Map(expected));
});
