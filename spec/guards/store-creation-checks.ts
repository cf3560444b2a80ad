// Checks of stores that are created while a command runs, and of planted markers; each fails when its guard is broken.

import { match, ok, strictEqual } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { exposedCommand, freshRoot, inodeAt } from '../support/exposed-command.js';
import { isLocked, lockedStore } from '../support/locked-store.js';
import { DATABASE, use } from '../support/toolbox-fixture.mjs';
import type { LibraryParts } from './library.js';

/** The toolbox, the store and what they need. */
export const storeCreationParts: LibraryParts = [
  'adapters/toolbox/index.js',
  'adapters/toolbox/command-markers.js',
  'adapters/toolbox/store-protection.js',
  'adapters/toolbox/mounts.js',
  'adapters/toolbox/find-stores.js',
  'adapters/sqlite/index.js',
  'adapters/sqlite/sandbox-exposure.js',
  'base/announcement.js',
];

type StoreCreationLibrary = typeof import('../../src/adapters/toolbox/index.js') &
  typeof import('../../src/adapters/toolbox/command-markers.js') &
  typeof import('../../src/adapters/toolbox/store-protection.js') &
  typeof import('../../src/adapters/toolbox/mounts.js') &
  typeof import('../../src/adapters/toolbox/find-stores.js') &
  typeof import('../../src/adapters/sqlite/index.js') &
  typeof import('../../src/adapters/sqlite/sandbox-exposure.js') &
  typeof import('../../src/base/announcement.js') & { readonly folder: string };

type Check = (library: StoreCreationLibrary) => Promise<void>;

function inRoot(work: (library: StoreCreationLibrary, root: string) => Promise<void>): Check {
  return async (library) => {
    const root = freshRoot();
    try {
      await work(library, root);
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  };
}

/** True if a store can be created at this path immediately. */
async function canCreateStore({ waitUntilUnexposed }: StoreCreationLibrary, path: string): Promise<boolean> {
  try {
    (await waitUntilUnexposed(path, {}, 0)).release();
    return true;
  } catch {
    return false;
  }
}

/** Runs a check in a directory that is announced as the root of a command. */
function inAnnouncedRoot(work: (library: StoreCreationLibrary, root: string) => Promise<void>): Check {
  return inRoot(async (library, root) => {
    const command = new library.Announcement();
    await command.add('command', [inodeAt(root)]);
    try {
      await work(library, root);
    } finally {
      command.release();
    }
  });
}

/** Checks that no marker is removed after a command during which `change` ran. */
function keepsMarkers(change: (root: string) => void, startedMs: () => number): Check {
  return inRoot(async ({ stateBeforeCommand, mountsFor, removeCommandMarkers }, root) => {
    for (const name of ['data', 'shared']) mkdirSync(join(root, name));
    writeFileSync(join(root, 'data/.rondo-data'), '');
    writeFileSync(join(root, 'shared/x'), DATABASE);
    writeFileSync(join(root, 'shared/x.anchor'), '');
    const before = stateBeforeCommand(await mountsFor([root]), startedMs());
    change(root);
    const { removed } = await removeCommandMarkers([root], before);
    strictEqual(removed.join(), '');
  });
}

export const storeCreationChecks = {
  'no store is created where a running command can read it': inAnnouncedRoot(async (library, root) => {
    strictEqual(await canCreateStore(library, join(root, 'state/j.db')), false);
    strictEqual(existsSync(join(root, 'state')), false);
  }),
  'a store does not wait for a command that hides its directory': inRoot(async (library, root) => {
    const command = new library.Announcement();
    await command.add('command', [inodeAt(root)]);
    mkdirSync(join(root, '.rondo'));
    await command.add('hides', [inodeAt(join(root, '.rondo'))]);
    const isAllowed = await canCreateStore(library, join(root, '.rondo/j.db'));
    command.release();
    ok(isAllowed);
  }),
  'a store does not wait for an announcement of another user': inRoot(async (library, root) => {
    const name = `rondo-command-${process.pid}-${'0'.repeat(16)}-${inodeAt(root).replace(':', '-')}`;
    const program = `require('node:net').createServer().listen({ path: '\\0${name}' }, () => console.log('listening'))`;
    const child = spawn(process.execPath, ['-e', program], {
      uid: 65534,
      cwd: '/',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(child.stdout, 'data');
      ok(await canCreateStore(library, join(root, 'j.db')));
    } finally {
      child.kill('SIGKILL');
    }
  }),
  'no command starts while a store is being created': inRoot(
    async ({ openSqlite, openDriver, listAnnouncements }, root) => {
      const directories: string[] = [];
      const driver = (path: string) => {
        const all = listAnnouncements().filter(({ kind }) => kind === 'store');
        directories.push(all.some(({ directory }) => directory === inodeAt(dirname(path))) ? 'announced' : 'unknown');
        return openDriver(path);
      };
      await (await openSqlite(join(root, 'state/j.db'), { driver })).close();
      match(directories.join(), /^announced(?:,announced)*$/);
    },
  ),
  'a command waits for a store that is being created': inRoot(async ({ toolbox, Announcement }, root) => {
    const creation = new Announcement();
    await creation.add('store', [inodeAt(root)]);
    const running = use(toolbox({ roots: [root] }).run_command, { command: 'touch begun' });
    await setTimeout(1000);
    const hasBegun = existsSync(join(root, 'begun'));
    creation.release();
    await running;
    strictEqual(hasBegun, false);
  }),
  'a command is announced before it starts': inRoot(async (library, root) => {
    const command = await exposedCommand(library.toolbox({ roots: [root] }), root);
    const isAllowed = await canCreateStore(library, join(root, 'state/j.db'));
    await command.finish();
    strictEqual(isAllowed, false);
  }),
  'a command announces the directories that it hides': inRoot(async (library, root) => {
    mkdirSync(join(root, '.rondo'));
    const command = await exposedCommand(library.toolbox({ roots: [root] }), root);
    const isAllowed = await canCreateStore(library, join(root, '.rondo/j.db'));
    await command.finish();
    ok(isAllowed);
  }),
  'a marker that a command plants in its root is removed': inRoot(async ({ toolbox }, root) => {
    const { note } = await use(toolbox({ roots: [root] }).run_command, { command: 'touch .rondo-data' });
    match(String(note), /\.rondo-data, which was removed/);
    strictEqual(existsSync(join(root, '.rondo-data')), false);
  }),
  'a false anchor hides no file': inRoot(async ({ toolbox }, root) => {
    for (const [name, text] of [
      ['a.txt', 'text\n'],
      ['a.txt.anchor', ''],
    ])
      writeFileSync(join(root, `${name}`), `${text}`);
    const { text } = await use(toolbox({ roots: [root] }).view_file, { path: 'a.txt' });
    match(String(text), /text/);
  }),
  'a false anchor does not make a directory read-only for commands': inRoot(async ({ findStores }, root) => {
    for (const [name, text] of [
      ['a.txt', 'text\n'],
      ['a.txt.anchor', ''],
    ])
      writeFileSync(join(root, `${name}`), `${text}`);
    strictEqual((await findStores([root])).sharedDirectories.join(), '');
  }),
  'a directory with the name of the marker does not mark its parent': inRoot(async ({ isDataDirectory }, root) => {
    mkdirSync(join(root, '.rondo-data'));
    strictEqual(isDataDirectory(root), false);
  }),
  'a database that this process has open is not opened again': inRoot(async ({ isDatabase }, root) => {
    const store = lockedStore(join(root, 'db/j.db'));
    linkSync(join(root, 'db/j.db'), join(root, 'hard'));
    writeFileSync(join(root, 'hard.anchor'), '');
    const descriptors = (): number => readdirSync('/proc/self/fd').length;
    const before = descriptors();
    const isKnown = isDatabase(join(root, 'hard'));
    const isStillLocked = isLocked(join(root, 'db/j.db'));
    // A descriptor that a broken twin opened stays open, so that closing it does not release the lock.
    const isUntouched = descriptors() === before;
    store.close();
    ok(isKnown && isStillLocked && isUntouched);
  }),
  'a database that another thread has open is not opened again': inRoot(async ({ isDatabase }, root) => {
    writeFileSync(join(root, 'x'), 'not a database, but recognized by its owner file');
    writeFileSync(join(root, 'x.owner'), JSON.stringify({ pid: process.pid, start: '' }));
    ok(isDatabase(join(root, 'x')));
  }),
  'a renamed data directory keeps its marker': keepsMarkers(
    (root) => renameSync(join(root, 'data'), join(root, 'renamed')),
    () => 0,
  ),
  'a store that is marked while a command runs keeps its marker': keepsMarkers(
    (root) => writeFileSync(join(root, 'shared/.rondo-data'), ''),
    () => 0,
  ),
  'a data directory that is moved into a root keeps its marker': keepsMarkers(
    (root) => {
      mkdirSync(join(root, 'moved'));
      writeFileSync(join(root, 'moved/.rondo-data'), '');
    },
    // As if the command started long after the file was created.
    () => Date.now() + 60_000,
  ),
} satisfies { readonly [promise: string]: Check };
