/** The file tools refuse store files by name, by link and in symlink races, and never drop the locks of SQLite. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, vi } from 'vitest';
import { digests, isLocked, lockedStore } from '../../../spec/support/locked-store.js';
import { cleanUp, createWorkspace, failure, SECRET, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import { editFileTool } from './edit-file.js';
import { listFilesTool } from './list-files.js';
import { resolveRoot } from './resolve-root.js';
import { locateByComparison, Roots } from './roots.js';
import { searchFilesTool } from './search-files.js';
import { isStorePath } from './store-protection.js';
import { toolbox } from './toolbox.js';
import { viewFileTool } from './view-file.js';
import { writeFileTool } from './write-file.js';

const race = vi.hoisted(() => ({ before: (_file: string, _flags: string | number): void => undefined }));
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>();
  const open: typeof real.open = (file, flags = 'r', mode = 0o666) => {
    race.before(String(file), flags);
    return real.open(file, flags, mode);
  };
  return { ...real, open };
});

const isLinux = process.platform === 'linux';
const openStores: { close(): void }[] = [];
afterEach(() => {
  race.before = () => undefined;
  for (const store of openStores.splice(0)) store.close();
});
afterAll(cleanUp);

/** Opens a path without access to its content. */
const O_PATH = 0o10000000;
const REFUSED = /belongs to Rondo's store/;

/** With the location of descriptors from the kernel, if available, and without. */
const rootFactories: readonly ((root: string) => Roots)[] = [
  (root) => new Roots([root]),
  (root) => new Roots([root], locateByComparison),
];

/** Creates a root with a store in one of its directories. */
function prepareRoot(directory: string, createRoots: (root: string) => Roots, name = 'journal.db') {
  const { root } = createWorkspace({ 'a.txt': 'harmless\n', 'dir/secret.txt': 'harmless\n', 'file.txt': 'harmless\n' });
  for (const file of ['secret.txt', 'secret.txt.owner.4711']) {
    mkdirSync(join(root, 'dir/sub'), { recursive: true });
    writeFileSync(join(root, 'dir/sub', file), 'harmless\n');
  }
  const path = join(root, directory, name);
  openStores.push(lockedStore(path));
  const roots = createRoots(root);
  const [view, list, search] = [viewFileTool(roots), listFilesTool(roots), searchFilesTool(roots)];
  const [edit, write] = [editFileTool(roots), writeFileTool(roots)];
  /** Calls every tool with a path and returns the results. */
  const tryAll = (file: string): Promise<readonly string[]> => {
    const works = [
      use(view, { path: file }),
      use(list, { path: file }),
      use(search, { path: file, query: 'e', hidden: true }),
      use(edit, { path: file, old: SECRET, new: 'overwritten' }),
      use(write, { path: file, content: 'overwritten' }),
      Promise.resolve(write.requestApproval?.({ path: file, content: 'overwritten' }, {})),
      Promise.resolve(edit.requestApproval?.({ path: file, old: SECRET, new: 'overwritten' }, {})),
    ];
    return Promise.all(works.map((work) => failure(work)));
  };
  return { root, path, store: join(root, directory), roots, view, list, search, edit, write, tryAll };
}

type PreparedRoot = ReturnType<typeof prepareRoot>;

async function forEachLayout(check: (prepared: PreparedRoot) => Promise<void>): Promise<void> {
  for (const directory of ['.rondo', 'data', '.'])
    for (const createRoots of rootFactories) await check(prepareRoot(directory, createRoots));
}

async function expectUntouched({ store, path }: PreparedRoot, work: () => Promise<void>): Promise<void> {
  const before = digests(store);
  if (isLinux) expect(isLocked(path)).toBe(true);
  await work();
  expect(digests(store)).toBe(before);
  if (isLinux) expect(isLocked(path), 'the locks of SQLite were dropped').toBe(true);
}

verifies('toolbox.store', 'every tool refuses the name of a store file, whether it exists or not', async () => {
  await forEachLayout(async (prepared) => {
    await expectUntouched(prepared, async () => {
      const suffixes = [
        '',
        '-wal',
        '-shm',
        '-journal',
        '.anchor',
        '.anchor.new',
        '.lock',
        '.owner',
        '.owner.1',
        '.sock',
      ];
      for (const file of suffixes.map((suffix) => `${prepared.path}${suffix}`)) {
        for (const result of await prepared.tryAll(file)) expect(result, file).toMatch(REFUSED);
      }
    });
  });
});

verifies('toolbox.store', 'a .rondo directory is refused, and nothing is created in one', async () => {
  for (const createRoots of rootFactories) {
    const prepared = prepareRoot('.rondo', createRoots);
    mkdirSync(join(prepared.root, 'a/.rondo'), { recursive: true });
    writeFileSync(join(prepared.root, 'a/.rondo/owner.json'), SECRET);
    await expectUntouched(prepared, async () => {
      const files = ['.rondo', './.rondo/', '.rondo/new', '.rondo/new/deep.txt', 'a/.rondo/owner.json', 'b/.rondo/new'];
      for (const file of files) {
        for (const result of await prepared.tryAll(file)) expect(result, file).toMatch(REFUSED);
      }
    });
    expect(existsSync(join(prepared.root, 'b'))).toBe(false);
    expect(existsSync(join(prepared.root, '.rondo/new'))).toBe(false);
  }
});

verifies('toolbox.store', 'listings and searches omit store files without a note', async () => {
  await forEachLayout(async (prepared) => {
    await expectUntouched(prepared, async () => {
      const { list, search, store, root } = prepared;
      const listed = await use(list, { depth: 5, hidden: true });
      expect(JSON.stringify(listed)).not.toMatch(/journal\.db|\.rondo|note/);
      expect(listed.entries).toContain('a.txt');
      const result = await use(search, { query: SECRET, hidden: true });
      expect(result).toMatchObject({ matches: [], files: 5 });
      expect(result.note).toBe(undefined);
      if (store.endsWith('data')) expect(await use(list, { path: 'data' })).toEqual({ path: 'data', entries: [] });
      expect((await use(search, { query: 'harmless', path: root })).matches).toHaveLength(5);
    });
  });
});

verifies('toolbox.store', 'a symbolic link to a store file or its directory is refused', async () => {
  await forEachLayout(async (prepared) => {
    const { root, path, store } = prepared;
    const links = { database: path, owner: `${path}.owner`, later: `${path}-journal`, chain: 'database' };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name));
    symlinkSync(store, join(root, 'folder'));
    await expectUntouched(prepared, async () => {
      const opened: string[] = [];
      race.before = (file) => void opened.push(file);
      for (const file of ['database', 'owner', 'chain', 'folder/journal.db', 'folder/journal.db.owner']) {
        for (const result of await prepared.tryAll(file)) expect(result, file).toMatch(REFUSED);
      }
      expect(opened, 'a store file was opened to find out what it is').toEqual([]);
      for (const file of ['folder/journal.db-journal', 'folder/journal.db.lock']) {
        for (const result of await prepared.tryAll(file)) expect(result, file).toMatch(/Rondo's store|does not exist/);
      }
      expect(await failure(use(prepared.write, { path: 'later', content: 'x' }))).toMatch(
        /a link that is not followed/,
      );
    });
    expect(existsSync(`${path}-journal`)).toBe(false);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });
});

verifies('toolbox.store', 'a hard link to a store file is refused under any name', async () => {
  await forEachLayout(async (prepared) => {
    const { root, path } = prepared;
    const names = { 'copy.txt': '', 'dir/wal': '-wal', 'owner.txt': '.owner', 'dir/anchor': '.anchor' };
    for (const [name, suffix] of Object.entries(names)) linkSync(`${path}${suffix}`, join(root, name));
    await expectUntouched(prepared, async () => {
      const opened: (string | number)[] = [];
      race.before = (_file, flags) => void (Number(flags) & O_PATH || opened.push(flags));
      for (const file of Object.keys(names)) {
        for (const result of await prepared.tryAll(file)) expect(result, file).toMatch(/Rondo's store|not a directory/);
      }
      expect(opened, 'a store file was opened to find out what it is').toEqual([]);
      const result = await use(prepared.search, { query: SECRET });
      expect(result.matches).toEqual([]);
    });
  });
});

async function stopSwapping(child: ChildProcess): Promise<void> {
  expect(child.exitCode).toBe(null);
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

verifies('toolbox.store', 'no store file is opened while another process keeps swapping links', async () => {
  for (const createRoots of rootFactories) {
    const prepared = prepareRoot('data', createRoots, 'secret.txt');
    await expectUntouched(prepared, async () => {
      const swapper = fork(
        new URL('../../../spec/support/swap-process.mjs', import.meta.url),
        [prepared.root, prepared.store],
        {
          execArgv: [],
        },
      );
      const results: string[] = [];
      // Continues until the race had both outcomes, which takes longer on a busy machine.
      const returned = (): number => results.filter((text) => text.startsWith('It returned')).length;
      const refused = (): number => results.filter((text) => REFUSED.test(text)).length;
      try {
        await once(swapper, 'message');
        for (let i = 0; i < 15 || (i < 500 && Math.min(returned(), refused()) <= 10); i++) {
          for (const file of ['dir/secret.txt', 'file.txt', 'dir/secret.txt.owner', 'dir']) {
            results.push(...(await prepared.tryAll(file)));
          }
        }
      } finally {
        await stopSwapping(swapper);
      }
      expect(results.filter((text) => text.includes(SECRET))).toEqual([]);
      expect(returned()).toBeGreaterThan(10);
      expect(refused()).toBeGreaterThan(10);
    });
  }
});

/** Runs work before the given open call, counted from 1. The returned function returns true if it has run. */
function beforeOpening(openNumber: number, work: () => void): () => boolean {
  let openCount = 0;
  race.before = () => {
    openCount += 1;
    if (openCount === openNumber) work();
  };
  return () => openCount >= openNumber;
}

const racingCalls: readonly ((prepared: PreparedRoot) => Promise<unknown>)[] = [
  ({ view }) => use(view, { path: 'dir/sub/secret.txt' }),
  ({ view }) => use(view, { path: 'dir/sub/secret.txt.owner.4711' }),
  ({ search }) => use(search, { path: 'dir/sub/secret.txt', query: 'e' }),
  ({ search }) => use(search, { path: 'dir', query: 'e' }),
  ({ list }) => use(list, { path: 'dir', depth: 3 }),
  ({ edit }) => use(edit, { path: 'dir/sub/secret.txt', old: 'e', new: 'overwritten', all: true }),
  ({ write }) => use(write, { path: 'dir/sub/secret.txt', content: 'overwritten' }),
  ({ write }) => use(write, { path: 'dir/sub/secret.txt-journal', content: 'overwritten' }),
];

verifies('toolbox.store', 'a link that replaces a directory after the check opens no store file', async () => {
  for (const directory of ['.rondo', 'data']) {
    for (const createRoots of rootFactories) {
      for (const callTool of racingCalls) {
        for (let openNumber = 1, swapped = true; swapped; openNumber++) {
          const prepared = prepareRoot(join(directory, 'sub'), createRoots, 'secret.txt');
          const path = join(prepared.root, 'dir');
          await expectUntouched(prepared, async () => {
            const hasSwapped = beforeOpening(openNumber, () => {
              renameSync(path, `${path}.old`);
              symlinkSync(join(prepared.root, directory), path);
            });
            expect(await failure(callTool(prepared))).not.toContain(SECRET);
            swapped = hasSwapped();
          });
          race.before = () => undefined;
        }
      }
    }
  }
});

verifies('toolbox.store', 'a directory that becomes a data directory while it is used is refused', async () => {
  for (const createRoots of rootFactories) {
    for (let openNumber = 1, moved = true; moved; openNumber++) {
      const { root } = createWorkspace({ 'dir/a.txt': 'harmless\n' });
      const hasMoved = beforeOpening(openNumber, () => renameSync(join(root, 'dir'), join(root, '.rondo')));
      const result = await failure(use(writeFileTool(createRoots(root)), { path: 'dir/new.txt', content: 'x' }));
      moved = hasMoved();
      expect(existsSync(join(root, '.rondo/new.txt')), result).toBe(false);
      expect(result.startsWith('It returned')).toBe(!moved);
      race.before = () => undefined;
    }
  }
});

verifies('toolbox.store', 'a root in a data directory is refused on creation of the toolbox', () => {
  const { root } = createWorkspace({ '.rondo/work/a.txt': '' });
  for (const inside of ['.rondo', '.rondo/work']) {
    const creating = (): unknown => toolbox({ roots: [join(root, inside)] });
    expect(creating).toThrow(LoopError);
    expect(creating).toThrow(/is in the data directory of a store/);
  }
  symlinkSync(join(root, '.rondo/work'), join(root, 'link'));
  expect(() => resolveRoot(join(root, 'link'), () => false)).toThrow(/is in the data directory of a store/);
});

verifies('toolbox.store', 'a store file that was deleted while it was checked is still refused', () => {
  const prepared = prepareRoot('data', (root) => new Roots([root]));
  expect(isStorePath(`${prepared.path} (deleted)`)).toBe(true);
  expect(isStorePath(join(prepared.root, 'a.txt (deleted)'))).toBe(false);
});
