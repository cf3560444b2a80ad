/** Confinement to the roots: no spelling of a path, no link and no symlink race gives access to anything outside. */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { open, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, failure, SECRET, snapshot, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { editFileTool } from './edit-file.js';
import { toolbox } from './index.js';
import { listFilesTool } from './list-files.js';
import { locateByComparison, Roots } from './roots.js';
import { searchFilesTool } from './search-files.js';
import { findPlatformProblem } from './toolbox.js';
import { viewFileTool } from './view-file.js';
import { writeFileTool } from './write-file.js';

afterAll(cleanUp);

type Workspace = ReturnType<typeof createWorkspace>;

/** Creates a root full of links to the outside. */
function createLinkedWorkspace(): Workspace {
  const workspace = createWorkspace({ 'a/b/c.txt': 'inside\n', 'file.txt': 'inside\n' });
  const { root, outside, evil } = workspace;
  const links = {
    out: outside,
    relative: '../outside',
    evil,
    up: '..',
    deep: 'a/../../outside',
    chain: 'out',
    'a/back': '../../outside',
    'secret.lnk': join(outside, 'secret.txt'),
    'secret.rel': '../outside/secret.txt',
    dangling: join(outside, 'new.txt'),
    slash: '/',
    self: '/proc/self/root',
    loop: 'loop',
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name));
  return workspace;
}

/** Spellings of `..`, some of them encoded or with look-alike characters. */
const PARENTS = [
  '../',
  '..//',
  './../',
  '%2e%2e/',
  '%2e%2e%2f',
  '..%2f',
  '%252e%252e%252f',
  '..%c0%af',
  '..\\',
  '..%5c',
  '..;/',
  '.%2e/',
  '%2e./',
  '..%00/',
];
const WIDE_PARENTS = ['\uff0e\uff0e/', '..\u2215', '.\u200b./', '..\0/', '.%00./', '....//', '..../', '.../'];

/** Links inside the root that lead out of it. */
const OUTWARD_LINKS = [
  'out',
  'relative',
  'evil',
  'up/outside',
  'deep',
  'chain',
  'a/back',
  'a/../out',
  'out/../out',
  './/out/.',
];

/** Returns paths that try to leave the root. */
function attackPaths({ root, outside, evil }: Workspace): readonly string[] {
  const spelled = [...PARENTS, ...WIDE_PARENTS].flatMap((up) => [
    `${up}outside/secret.txt`,
    `a/${up}${up}outside/secret.txt`,
    `a/b/${up}${up}${up}outside/secret.txt`,
    `${up.repeat(40)}${outside.slice(1)}/secret.txt`,
    `${root}/${up}outside/secret.txt`,
    `${up}root-evil/secret.txt`,
  ]);
  const absolute = [outside, evil].flatMap((directory) => [
    `${directory}/secret.txt`,
    `/${directory}/secret.txt`,
    `//${directory}/secret.txt`,
    `/.${directory}/secret.txt`,
    `file://${directory}/secret.txt`,
    `/proc/self/root${directory}/secret.txt`,
    `/proc/self/cwd/../../../../../..${directory}/secret.txt`,
    `/dev/fd/../../proc/self/root${directory}/secret.txt`,
    `${root}/../..${directory}/secret.txt`,
    `~${directory}/secret.txt`,
    `$HOME/..${directory}/secret.txt`,
    `${directory}/secret.txt\0.txt`,
  ]);
  const through = [
    ...OUTWARD_LINKS,
    `slash${outside}`,
    `self${outside}`,
    `up/up/..${outside}`,
    'loop',
    'chain/../chain',
  ].flatMap((link) => [
    `${link}/secret.txt`,
    `${link}/./secret.txt`,
    `${link}//secret.txt`,
    `${root}/${link}/secret.txt`,
    `${link}/new.txt`,
    `${link}/new/deep.txt`,
    `${link}`,
    `${link}/`,
  ]);
  const files = ['secret.lnk', 'secret.rel', 'dangling', './secret.lnk', 'a/../secret.rel', `${root}/dangling`].flatMap(
    (file) => [file, `${file}/`, `${file}/.`],
  );
  return [
    ...new Set([
      ...spelled,
      ...absolute,
      ...through,
      ...files,
      '..',
      '../',
      '/',
      '',
      '.',
      '\0',
      `${root}-evil`,
      `${root}/..`,
    ]),
  ];
}

verifies('toolbox.confined', 'none of 300 paths leads out of the root', async () => {
  const workspace = createLinkedWorkspace();
  const box = toolbox({ roots: [workspace.root] });
  const before = [snapshot(workspace.outside), snapshot(workspace.evil)];
  const paths = attackPaths(workspace);
  expect(paths.length).toBeGreaterThanOrEqual(300);
  const results: string[] = [];
  for (const path of paths) {
    results.push(await failure(use(box.view_file, { path })));
    results.push(await failure(use(box.search_files, { path, query: SECRET })));
    results.push(await failure(use(box.list_files, { path, depth: 2 })));
    results.push(await failure(use(box.edit_file, { path, old: SECRET, new: 'overwritten' })));
    results.push(await failure(use(box.write_file, { path, content: 'overwritten' })));
    results.push(await failure(Promise.resolve(box.write_file.requestApproval?.({ path, content: 'x' }, {}))));
  }
  expect(results.filter((text) => text.includes(SECRET))).toEqual([]);
  expect(results.filter((text) => text.includes('new.txt') && text.includes('"entries"'))).toEqual([]);
  expect([snapshot(workspace.outside), snapshot(workspace.evil)]).toEqual(before);
  expect(readdirSync(join(workspace.root, '..')).sort()).toEqual(['outside', 'root', 'root-evil']);
  expect(results.filter((text) => text.includes('is outside of the directories')).length).toBeGreaterThan(300);
});

verifies('toolbox.confined', 'an unusual path inside of the root is accepted', async () => {
  const { root } = createWorkspace({
    'a/b.txt': 'inside\n',
    '..c': 'inside\n',
    '%2e%2e': 'inside\n',
    'a b': 'inside\n',
  });
  symlinkSync(join(root, 'a'), join(root, 'inner'));
  const { view_file } = toolbox({ roots: [root] });
  for (const path of [
    'a/b.txt',
    './a//b.txt',
    'a/../a/b.txt',
    `${root}/a/b.txt`,
    'inner/b.txt',
    '..c',
    '%2e%2e',
    'a b',
    '../root/a/b.txt',
  ]) {
    expect(await use(view_file, { path })).toMatchObject({ text: '1\tinside' });
  }
});

verifies('toolbox.confined', 'a pipe, a socket or a device is refused at once', async () => {
  const { root } = createWorkspace();
  execFileSync('mkfifo', [join(root, 'pipe')]);
  const { view_file, edit_file, write_file, search_files, list_files } = toolbox({ roots: [root] });
  for (const work of [
    () => use(view_file, { path: 'pipe' }),
    () => use(edit_file, { path: 'pipe', old: 'a', new: 'b' }),
    () => use(write_file, { path: 'pipe', content: 'a' }),
  ]) {
    expect(await failure(work())).toBe(
      '"pipe" is not a regular file (a pipe, a socket or a device), so it is not opened.',
    );
  }
  expect(await use(search_files, { query: 'a' })).toMatchObject({ matches: [], files: 0 });
  expect(await use(list_files, {})).toMatchObject({ entries: ['pipe|'] });
  const devices = toolbox({ roots: ['/dev'] });
  expect(await failure(use(devices.view_file, { path: 'null' }))).toMatch(/is not a regular file/);
});

verifies('toolbox.confined', 'roots that cannot be used are rejected', () => {
  const { root } = createWorkspace({ file: '' });
  const creating =
    (roots: readonly string[]): (() => unknown) =>
    () =>
      toolbox({ roots });
  expect(creating([])).toThrow('options.roots must be an array of at least one and at most 100 directories.');
  expect(creating([join(root, 'none')])).toThrow(/cannot be used \(ENOENT\); create it first/);
  expect(creating([join(root, 'file')])).toThrow(/is not a directory/);
  expect(creating(['/'])).toThrow(/is the whole file system/);
});

verifies('toolbox.confined', 'all roots can be used, and nothing else', async () => {
  const [one, two] = [createWorkspace({ a: 'one\n' }), createWorkspace({ b: 'two\n' })];
  const { view_file, list_files } = toolbox({ roots: [one.root, two.root] });
  expect(await use(view_file, { path: join(two.root, 'b') })).toMatchObject({
    path: join(two.root, 'b'),
    text: '1\ttwo',
  });
  expect(await use(list_files, { path: two.root })).toMatchObject({ entries: [join(two.root, 'b')] });
  expect(await failure(use(view_file, { path: 'b' }))).toMatch(/does not exist/);
  expect(await failure(use(view_file, { path: join(two.outside, 'secret.txt') }))).toMatch(/is outside/);
});

async function stopSwapping(child: ChildProcess): Promise<void> {
  // A process that exited by itself would have failed to swap anything.
  expect(child.exitCode).toBe(null);
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

interface RaceResult {
  readonly succeeded: number;
  readonly refused: number;
  readonly leaks: readonly string[];
  readonly outside: string;
}

/** Uses the tools while another process replaces a directory and a file by links to the outside. */
async function race(rootsOf: (root: string) => Roots, rounds: number): Promise<RaceResult> {
  const workspace = createWorkspace({ 'dir/secret.txt': 'harmless\n', 'file.txt': 'harmless\n' });
  const roots = rootsOf(workspace.root);
  const tools = [
    viewFileTool(roots),
    searchFilesTool(roots),
    listFilesTool(roots),
    writeFileTool(roots),
    editFileTool(roots),
  ] as const;
  const [view, search, list, write, edit] = tools;
  const swapper = fork(
    new URL('../../../spec/support/swap-process.mjs', import.meta.url),
    [workspace.root, workspace.outside],
    { execArgv: [] },
  );
  try {
    await once(swapper, 'message');
    const results: string[] = [];
    for (let i = 0; i < rounds; i++) {
      const works = [
        use(view, { path: i % 2 === 0 ? 'dir/secret.txt' : 'file.txt' }),
        use(search, { query: 'e', path: i % 2 === 0 ? 'dir' : '.' }),
        use(list, { path: 'dir', depth: 2 }),
        use(write, { path: `dir/new-${i % 5}.txt`, content: 'overwritten\n' }),
        use(write, { path: 'dir/secret.txt', content: 'harmless\n' }),
        use(edit, { path: 'file.txt', old: SECRET.slice(0, 5), new: 'overwritten' }),
        use(write, { path: `dir/made/${i}.txt`, content: 'overwritten\n' }),
      ];
      results.push(...(await Promise.all(works.map((work) => failure(work)))));
    }
    const returned = results.filter((text) => text.startsWith('It returned'));
    const leaks = results.filter((text) => text.includes(SECRET));
    return {
      succeeded: returned.length,
      refused: results.length - returned.length,
      leaks,
      outside: snapshot(workspace.outside),
    };
  } finally {
    await stopSwapping(swapper);
  }
}

verifies(
  'toolbox.confined',
  'a link that replaces a file after the check gives no access to the outside',
  async (context) => {
    const hasProc = existsSync('/proc/self/fd');
    context.skip(!hasProc, 'needs /proc');
    const { succeeded, refused, leaks, outside } = await race((root) => new Roots([root]), 120);
    expect(leaks).toEqual([]);
    expect(outside).toBe(`secret.txt: ${SECRET}\n`);
    // The race had both outcomes.
    expect(succeeded).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(20);
  },
);

verifies('toolbox.confined', 'a file replaced while it was opened is detected without /proc too', async () => {
  const { root, outside } = createWorkspace({ 'a.txt': 'inside\n', 'dir/b.txt': 'inside\n' });
  const roots = new Roots([root], locateByComparison);
  const handle = await open(join(outside, 'secret.txt'));
  expect(await failure(locateByComparison(handle, join(root, 'a.txt')))).toMatch(/was replaced while it was opened/);
  expect(await locateByComparison(handle, join(outside, 'secret.txt'))).toBe(join(outside, 'secret.txt'));
  await handle.close();
  symlinkSync(outside, join(root, 'out'));
  expect(await failure(use(viewFileTool(roots), { path: 'out/secret.txt' }))).toMatch(/is outside/);
  expect(await failure(use(writeFileTool(roots), { path: 'out/new.txt', content: 'x' }))).toMatch(/is outside/);
  expect(await use(viewFileTool(roots), { path: 'dir/b.txt' })).toMatchObject({ text: '1\tinside' });
  expect(await use(listFilesTool(roots), { depth: 2 })).toMatchObject({
    entries: ['a.txt', 'dir/', 'dir/b.txt', 'out@'],
  });
  await use(writeFileTool(roots), { path: 'dir/new/c.txt', content: 'new\n' });
  expect(readFileSync(join(root, 'dir/new/c.txt'), 'utf8')).toBe('new\n');
  expect(readdirSync(join(root, 'dir/new'))).toEqual(['c.txt']);
  expect([findPlatformProblem('linux'), findPlatformProblem('darwin')]).toEqual([undefined, undefined]);
  expect(findPlatformProblem('win32')).toMatch(/needs Linux or macOS/);
});

verifies('toolbox.confined', 'the race of these tests defeats a check before opening', async () => {
  const workspace = createWorkspace({ 'dir/secret.txt': 'harmless\n', 'file.txt': 'harmless\n' });
  const swapper = fork(
    new URL('../../../spec/support/swap-process.mjs', import.meta.url),
    [workspace.root, workspace.outside],
    { execArgv: [] },
  );
  let leaked = false;
  try {
    await once(swapper, 'message');
    const file = join(workspace.root, 'dir/secret.txt');
    // A vulnerable implementation: resolves the path, then reads the file.
    for (let i = 0; i < 50_000 && !leaked; i++) {
      const isInside = await realpath(file)
        .then((real) => real.startsWith(workspace.root))
        .catch(() => false);
      if (isInside) leaked = (await readFile(file, 'utf8').catch(() => '')).includes(SECRET);
    }
  } finally {
    await stopSwapping(swapper);
  }
  expect(leaked).toBe(true);
});

verifies('toolbox.confined', 'a root that is replaced by a link gives no access to its target', async () => {
  const workspace = createWorkspace({ 'secret.txt': 'harmless\n' });
  const box = toolbox({ roots: [workspace.root] });
  execFileSync('mv', [workspace.root, `${workspace.root}-moved`]);
  symlinkSync(workspace.outside, workspace.root);
  expect(realpathSync(join(workspace.root, 'secret.txt'))).toBe(join(workspace.outside, 'secret.txt'));
  expect(await failure(use(box.view_file, { path: 'secret.txt' }))).toMatch(/is outside/);
  expect(await failure(use(box.write_file, { path: 'secret.txt', content: 'x' }))).toMatch(/is outside/);
  expect(await failure(use(box.write_file, { path: 'new.txt', content: 'x' }))).toMatch(/is outside/);
  expect(readFileSync(join(workspace.outside, 'secret.txt'), 'utf8')).toBe(`${SECRET}\n`);
  expect(await failure(use(box.run_command, { command: 'ls' }))).toMatch(/is outside/);
  const other = toolbox({ roots: [createWorkspace().root, `${workspace.root}-moved`] });
  execFileSync('mv', [`${workspace.root}-moved`, `${workspace.root}-again`]);
  symlinkSync(workspace.outside, `${workspace.root}-moved`);
  expect(await failure(use(other.run_command, { command: 'ls' }))).toMatch(/is outside/);
  mkdirSync(join(workspace.outside, 'sub'));
  writeFileSync(join(workspace.outside, 'sub', 'x'), SECRET);
  expect(await failure(use(box.list_files, { path: 'sub' }))).toMatch(/is outside/);
});
