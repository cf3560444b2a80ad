/** Tools for files and the files of a store: refused by name, by link and when swapped in; SQLite's locks stay held. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, vi } from 'vitest';
import { digests, isLocked, lockedStore } from '../../../spec/support/locked-store.js';
import { cleanUp, failure, SECRET, stage, use } from '../../../spec/support/toolbox-fixture.mjs';
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

const linux = process.platform === 'linux';
const open: { close(): void }[] = [];
afterEach(() => {
  race.before = () => undefined;
  for (const store of open.splice(0)) store.close();
});
afterAll(cleanUp);

/** Identifies a file without opening it. */
const O_PATH = 0o10000000;
const REFUSED = /belongs to Rondo's store/;

/** With what the kernel says of a descriptor, where it does, and without. */
const ways: readonly ((root: string) => Roots)[] = [
  (root) => new Roots([root]),
  (root) => new Roots([root], locateByComparison),
];

/** A root with a store in it, in the default directory or in another one. */
function staged(directory: string, way: (root: string) => Roots, name = 'journal.db') {
  const { root } = stage({ 'a.txt': 'harmless\n', 'dir/secret.txt': 'harmless\n', 'file.txt': 'harmless\n' });
  for (const file of ['secret.txt', 'secret.txt.owner.4711']) {
    mkdirSync(join(root, 'dir/sub'), { recursive: true });
    writeFileSync(join(root, 'dir/sub', file), 'harmless\n');
  }
  const path = join(root, directory, name);
  open.push(lockedStore(path));
  const roots = way(root);
  const [view, list, search] = [viewFileTool(roots), listFilesTool(roots), searchFilesTool(roots)];
  const [edit, write] = [editFileTool(roots), writeFileTool(roots)];
  /** What comes of all that the tools can do with one path. */
  const tries = (file: string): Promise<readonly string[]> => {
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
  return { root, path, store: join(root, directory), roots, view, list, search, edit, write, tries };
}

type Staged = ReturnType<typeof staged>;

async function eachLayout(work: (place: Staged) => Promise<void>): Promise<void> {
  for (const directory of ['.rondo', 'data', '.']) for (const way of ways) await work(staged(directory, way));
}

async function expectUntouched({ store, path }: Staged, work: () => Promise<void>): Promise<void> {
  const before = digests(store);
  if (linux) expect(isLocked(path)).toBe(true);
  await work();
  expect(digests(store)).toBe(before);
  if (linux) expect(isLocked(path), 'the locks of SQLite were dropped').toBe(true);
}

verifies('toolbox.store', 'a store file that is named is refused by every tool, whether it exists or not', async () => {
  await eachLayout(async (place) => {
    await expectUntouched(place, async () => {
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
      for (const file of suffixes.map((suffix) => `${place.path}${suffix}`)) {
        for (const said of await place.tries(file)) expect(said, file).toMatch(REFUSED);
      }
    });
  });
});

verifies('toolbox.store', 'a .rondo directory is refused, and nothing is created in one', async () => {
  for (const way of ways) {
    const place = staged('.rondo', way);
    mkdirSync(join(place.root, 'a/.rondo'), { recursive: true });
    writeFileSync(join(place.root, 'a/.rondo/owner.json'), SECRET);
    await expectUntouched(place, async () => {
      const files = ['.rondo', './.rondo/', '.rondo/new', '.rondo/new/deep.txt', 'a/.rondo/owner.json', 'b/.rondo/new'];
      for (const file of files) {
        for (const said of await place.tries(file)) expect(said, file).toMatch(REFUSED);
      }
    });
    expect(existsSync(join(place.root, 'b'))).toBe(false);
    expect(existsSync(join(place.root, '.rondo/new'))).toBe(false);
  }
});

verifies('toolbox.store', 'listings and searches leave store files out without a word', async () => {
  await eachLayout(async (place) => {
    await expectUntouched(place, async () => {
      const { list, search, store, root } = place;
      const listed = await use(list, { depth: 5, hidden: true });
      expect(JSON.stringify(listed)).not.toMatch(/journal\.db|\.rondo|note/);
      expect(listed.entries).toContain('a.txt');
      const found = await use(search, { query: SECRET, hidden: true });
      expect(found).toMatchObject({ matches: [], files: 5 });
      expect(found.note).toBe(undefined);
      if (store.endsWith('data')) expect(await use(list, { path: 'data' })).toEqual({ path: 'data', entries: [] });
      expect((await use(search, { query: 'harmless', path: root })).matches).toHaveLength(5);
    });
  });
});

verifies('toolbox.store', 'a symbolic link to a store file or its directory leads nowhere', async () => {
  await eachLayout(async (place) => {
    const { root, path, store } = place;
    const links = { database: path, owner: `${path}.owner`, later: `${path}-journal`, chain: 'database' };
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(root, name));
    symlinkSync(store, join(root, 'folder'));
    await expectUntouched(place, async () => {
      const opened: string[] = [];
      race.before = (file) => void opened.push(file);
      for (const file of ['database', 'owner', 'chain', 'folder/journal.db', 'folder/journal.db.owner']) {
        for (const said of await place.tries(file)) expect(said, file).toMatch(REFUSED);
      }
      expect(opened, 'a store file was opened to find out what it is').toEqual([]);
      for (const file of ['folder/journal.db-journal', 'folder/journal.db.lock']) {
        for (const said of await place.tries(file)) expect(said, file).toMatch(/Rondo's store|does not exist/);
      }
      expect(await failure(use(place.write, { path: 'later', content: 'x' }))).toMatch(/a link that is not followed/);
    });
    expect(existsSync(`${path}-journal`)).toBe(false);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });
});

verifies('toolbox.store', 'a hard link to a store file is refused under any name', async () => {
  await eachLayout(async (place) => {
    const { root, path } = place;
    const names = { 'copy.txt': '', 'dir/wal': '-wal', 'owner.txt': '.owner', 'dir/anchor': '.anchor' };
    for (const [name, suffix] of Object.entries(names)) linkSync(`${path}${suffix}`, join(root, name));
    await expectUntouched(place, async () => {
      const opened: (string | number)[] = [];
      race.before = (_file, flags) => void (Number(flags) & O_PATH || opened.push(flags));
      for (const file of Object.keys(names)) {
        for (const said of await place.tries(file)) expect(said, file).toMatch(/Rondo's store|not a directory/);
      }
      expect(opened, 'a store file was opened to find out what it is').toEqual([]);
      const found = await use(place.search, { query: SECRET });
      expect(found.matches).toEqual([]);
    });
  });
});

async function ended(child: ChildProcess): Promise<void> {
  expect(child.exitCode).toBe(null);
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

verifies('toolbox.store', 'links that another process swaps all the time open no store file', async () => {
  for (const way of ways) {
    const place = staged('data', way, 'secret.txt');
    await expectUntouched(place, async () => {
      const swapper = fork(
        new URL('../../../spec/support/swap-process.mjs', import.meta.url),
        [place.root, place.store],
        {
          execArgv: [],
        },
      );
      const said: string[] = [];
      // Both ends of the race have to be seen; on a busy machine that takes longer.
      const returned = (): number => said.filter((text) => text.startsWith('It returned')).length;
      const refused = (): number => said.filter((text) => REFUSED.test(text)).length;
      try {
        await once(swapper, 'message');
        for (let i = 0; i < 15 || (i < 500 && Math.min(returned(), refused()) <= 10); i++) {
          for (const file of ['dir/secret.txt', 'file.txt', 'dir/secret.txt.owner', 'dir']) {
            said.push(...(await place.tries(file)));
          }
        }
      } finally {
        await ended(swapper);
      }
      expect(said.filter((text) => text.includes(SECRET))).toEqual([]);
      expect(returned()).toBeGreaterThan(10);
      expect(refused()).toBeGreaterThan(10);
    });
  }
});

/** Does something just before the n-th file is opened; tells whether it came to that. */
function beforeOpening(nth: number, work: () => void): () => boolean {
  let opened = 0;
  race.before = () => {
    opened += 1;
    if (opened === nth) work();
  };
  return () => opened >= nth;
}

const swappedWorks: readonly ((place: Staged) => Promise<unknown>)[] = [
  ({ view }) => use(view, { path: 'dir/sub/secret.txt' }),
  ({ view }) => use(view, { path: 'dir/sub/secret.txt.owner.4711' }),
  ({ search }) => use(search, { path: 'dir/sub/secret.txt', query: 'e' }),
  ({ search }) => use(search, { path: 'dir', query: 'e' }),
  ({ list }) => use(list, { path: 'dir', depth: 3 }),
  ({ edit }) => use(edit, { path: 'dir/sub/secret.txt', old: 'e', new: 'overwritten', all: true }),
  ({ write }) => use(write, { path: 'dir/sub/secret.txt', content: 'overwritten' }),
  ({ write }) => use(write, { path: 'dir/sub/secret.txt-journal', content: 'overwritten' }),
];

verifies('toolbox.store', 'a link that is swapped in after the check opens no store file', async () => {
  for (const directory of ['.rondo', 'data']) {
    for (const way of ways) {
      for (const work of swappedWorks) {
        for (let nth = 1, swapped = true; swapped; nth++) {
          const place = staged(join(directory, 'sub'), way, 'secret.txt');
          const at = join(place.root, 'dir');
          await expectUntouched(place, async () => {
            const hasSwapped = beforeOpening(nth, () => {
              renameSync(at, `${at}.was`);
              symlinkSync(join(place.root, directory), at);
            });
            expect(await failure(work(place))).not.toContain(SECRET);
            swapped = hasSwapped();
          });
          race.before = () => undefined;
        }
      }
    }
  }
});

verifies('toolbox.store', 'a directory that becomes a data directory while it is used is refused', async () => {
  for (const way of ways) {
    for (let nth = 1, moved = true; moved; nth++) {
      const { root } = stage({ 'dir/a.txt': 'harmless\n' });
      const hasMoved = beforeOpening(nth, () => renameSync(join(root, 'dir'), join(root, '.rondo')));
      const said = await failure(use(writeFileTool(way(root)), { path: 'dir/new.txt', content: 'x' }));
      moved = hasMoved();
      expect(existsSync(join(root, '.rondo/new.txt')), said).toBe(false);
      expect(said.startsWith('It returned')).toBe(!moved);
      race.before = () => undefined;
    }
  }
});

verifies('toolbox.store', 'a root in a data directory is refused when the toolbox is made', () => {
  const { root } = stage({ '.rondo/work/a.txt': '' });
  for (const inside of ['.rondo', '.rondo/work']) {
    const made = (): unknown => toolbox({ roots: [join(root, inside)] });
    expect(made).toThrow(LoopError);
    expect(made).toThrow(/lies in the data directory of a store/);
  }
  symlinkSync(join(root, '.rondo/work'), join(root, 'link'));
  expect(() => resolveRoot(join(root, 'link'), () => false)).toThrow(/lies in the data directory of a store/);
});

verifies('toolbox.store', 'a store file that was deleted while it was judged is still refused', () => {
  const place = staged('data', (root) => new Roots([root]));
  expect(isStorePath(`${place.path} (deleted)`)).toBe(true);
  expect(isStorePath(join(place.root, 'a.txt (deleted)'))).toBe(false);
});
