/**
 * Data markers and store files that a sandboxed command writes: they close no directory, and those of stores are kept.
 */
import { linkSync, lstatSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, expect, onTestFinished } from 'vitest';
import { exposedCommand } from '../../../spec/support/exposed-command.js';
import { isLocked, lockedStore } from '../../../spec/support/locked-store.js';
import { cleanUp, createWorkspace, DATABASE, failure, SECRET, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { DATA_MARKER } from '../../journal/store-files.js';
import { toolbox } from './index.js';
import { probeSandbox } from './sandbox.js';
import { isDatabase, isStorePath } from './store-protection.js';

const isLinux = process.platform === 'linux';
const isSandboxed = 'bubblewrap' in (await probeSandbox());
const openStores: { close(): void }[] = [];
afterEach(() => {
  for (const store of openStores.splice(0)) store.close();
});
afterAll(cleanUp);

const VISIBLE_FILES = { 'sub/seen.txt': 'to be seen\n', 'a/b/c/seen.txt': 'to be seen\n' };

function prepareRoot(files: { readonly [name: string]: string } = VISIBLE_FILES) {
  const { root } = createWorkspace(files);
  const box = toolbox({ roots: [root] });
  return { root, box, run: (command: string) => use(box.run_command, { command }) };
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

const MARKERS: { readonly [line: string]: RegExp | undefined } = {
  'touch .rondo-data': /^It created \.rondo-data, which was removed: .* closes its directory to all tools/,
  'touch sub/.rondo-data': /^It created sub\/\.rondo-data, which was removed/,
  'mv sub/seen.txt t; cp t sub/.rondo-data; mv t sub/seen.txt': /^It created sub\/\.rondo-data, which was removed/,
  'for d in a a/b a/b/c; do touch $d/.rondo-data; done':
    /^It created a\/\.\S+, a\/b\/\.\S+, a\/b\/c\/\.rondo-data, which/,
  'for n in 1 2 3 4 5 6 7; do mkdir n$n; touch n$n/.rondo-data; done': /n5\/\.rondo-data and 2 more, which was removed/,
  // None of these is a valid marker.
  'mkdir sub/.rondo-data; touch sub/.rondo-data/x': undefined,
  'ln -s seen.txt sub/.rondo-data': undefined,
  'mkfifo sub/.rondo-data': undefined,
};

verifies(
  'toolbox.data.planted',
  'a marker that a command writes is removed, so it closes no directory',
  async (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    for (const [line, expected] of Object.entries(MARKERS)) {
      const { root, box, run } = prepareRoot();
      const { note, exitCode } = await run(line);
      expect({ line, exitCode }).toEqual({ line, exitCode: 0 });
      if (expected === undefined) expect(note).toBeUndefined();
      else expect(note).toMatch(expected);
      expect(await use(box.view_file, { path: 'sub/seen.txt' })).toMatchObject({ text: '1\tto be seen' });
      expect(await run('cat a/b/c/seen.txt && touch sub/new a/b/c/new')).toMatchObject({ exitCode: 0 });
      expect(exists(join(root, 'a/b/c/new'))).toBe(true);
    }
  },
);

verifies('toolbox.data.planted', 'a marker is removed after a command that was killed or aborted', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const { root, box } = prepareRoot();
  const input = { command: 'touch .rondo-data; echo begun; sleep 60', timeoutSeconds: 1 };
  expect((await use(box.run_command, input)).note).toMatch(/^It was killed after 1000 ms\. It created \.rondo-data/);
  expect(exists(join(root, DATA_MARKER))).toBe(false);
  const abort = new AbortController();
  const options = { abortSignal: abort.signal, onToolOutputDelta: () => abort.abort() };
  expect(await failure(use(box.run_command, input, options))).toMatch(/abort/);
  expect(exists(join(root, DATA_MARKER))).toBe(false);
});

verifies('toolbox.data.planted', 'a marker that the command has not written is kept', async (context) => {
  context.skip(!isSandboxed, 'needs bubblewrap');
  const { root, box } = prepareRoot({
    ...VISIBLE_FILES,
    [`data/${DATA_MARKER}`]: '',
    [`other/${DATA_MARKER}`]: '',
    'shared/j.db': DATABASE,
    'shared/j.db.anchor': 'x',
  });
  const outside = join(root, '../moved-in');
  mkdirSync(outside);
  writeFileSync(join(outside, DATA_MARKER), '');
  // Makes the markers older than the command, beyond the resolution of file system timestamps.
  await new Promise((resolve) => setTimeout(resolve, 1200));
  const command = await exposedCommand(box, root, { first: 'touch sub/.rondo-data' });
  renameSync(join(root, 'other'), join(root, 'renamed'));
  renameSync(outside, join(root, 'moved-in'));
  // Another process starts to use the directory of an existing store as its data directory.
  writeFileSync(join(root, 'shared', DATA_MARKER), '');
  const { note } = await command.finish();
  expect(note).toMatch(/^It created sub\/\.rondo-data, which was removed: [^.]*\.$/);
  for (const directory of ['data', 'renamed', 'moved-in', 'shared']) {
    expect({ directory, isMarked: exists(join(root, directory, DATA_MARKER)) }).toEqual({ directory, isMarked: true });
  }
});

verifies(
  'toolbox.data.planted',
  'a store record next to a file that is not a database closes neither',
  async (context) => {
    context.skip(!isSandboxed, 'needs bubblewrap');
    for (const record of ['anchor', 'owner']) {
      const { box, run } = prepareRoot();
      await run(`touch sub/seen.txt.${record}; echo x > a/b/c/seen.txt.${record}`);
      expect(await use(box.view_file, { path: 'sub/seen.txt' })).toMatchObject({ text: '1\tto be seen' });
      expect(await use(box.list_files, { path: 'sub' })).toMatchObject({
        entries: ['sub/seen.txt', `sub/seen.txt.${record}`],
      });
      expect(await run('cat sub/seen.txt && touch sub/new a/b/c/new')).toMatchObject({ exitCode: 0 });
    }
  },
);

verifies('toolbox.data.planted', 'a file is protected as soon as its content is that of a database', async () => {
  const { root, box } = prepareRoot({ 'db/x': 'text', 'db/x.owner': SECRET });
  const listed = async () => (await use(box.list_files, { path: 'db' })).entries;
  expect(await listed()).toEqual(['db/x', 'db/x.owner']);
  for (const content of [DATABASE, '']) {
    writeFileSync(join(root, 'db/x'), content);
    expect(await listed()).toEqual([]);
    expect(await failure(use(box.view_file, { path: 'db/x.owner' }))).toMatch(/belongs to Rondo's store/);
  }
  writeFileSync(join(root, 'db/x'), 'text');
  expect(await listed()).toEqual(['db/x', 'db/x.owner']);
});

verifies('toolbox.store', 'a database that this process uses is recognized without opening it', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const { root, box } = prepareRoot();
  const path = join(root, 'db/journal.db');
  openStores.push(lockedStore(path));
  linkSync(path, join(root, 'sub/hard'));
  writeFileSync(join(root, 'sub/hard.anchor'), '');
  expect(isStorePath(join(root, 'sub/hard'))).toBe(true);
  expect(await use(box.list_files, { path: 'sub' })).toMatchObject({ entries: ['sub/seen.txt'] });
  expect(isLocked(path)).toBe(true);
});

verifies(
  'toolbox.store',
  'a database that another thread of this process uses is recognized without opening it',
  async (context) => {
    context.skip(!isLinux, 'needs Linux');
    const { root } = prepareRoot();
    const path = join(root, 'sub/journal.db');
    const sqlite = new URL('../../../dist/adapters/sqlite/index.js', import.meta.url).href;
    const program = `
    const { parentPort } = require('node:worker_threads');
    import('${sqlite}').then(({ openSqlite }) => openSqlite('${path}')).then(() => parentPort.postMessage('open'));
    setInterval(() => {}, 1000);
  `;
    const worker = new Worker(program, { eval: true });
    onTestFinished(async () => void (await worker.terminate()));
    await new Promise((resolve) => worker.once('message', resolve));
    expect(JSON.parse(readFileSync(`${path}.owner`, 'utf8'))).toMatchObject({ pid: process.pid });
    expect(isLocked(path)).toBe(true);
    expect(isDatabase(path)).toBe(true);
    expect(isStorePath(path)).toBe(true);
    expect(isLocked(path)).toBe(true);
  },
);
