// Layouts: the places of a data directory or a store in the root of a tool, and checks that an attack disclosed, copied
// and changed nothing of it.

import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';

/** A text that is only in the journal. */
export const MARK = 'Mk7-only-in-the-journal';
/** A text that is only in another file of the data directory. */
export const KEPT = 'Kp9-kept-in-the-data-directory';

/**
 * @typedef {{ root: string, directory: string, file: string, whole: boolean, host: any, roots: string[] }} Layout
 * `file` is the database; `whole` is true if the whole directory is protected, not only the files of the store.
 */

/**
 * Creates a store with the library. `own` is true if the process that calls the tools owns it; `close` kills the owner.
 */
async function createStore(fixture, { directory, own, whole, close = false }) {
  const root = join(fixture.folder, 'w');
  mkdirSync(join(root, 'sub'), { recursive: true });
  writeFileSync(join(root, 'harmless.txt'), 'harmless\n');
  mkdirSync(join(root, directory), { recursive: true });
  const file = join(root, directory, 'journal.db');
  const host = await fixture.host();
  const owner = own ? host : await fixture.host();
  await owner.must('open', { path: file, values: [MARK, 'second'] });
  if (close) {
    owner.child.kill('SIGKILL');
    await owner.closed;
  }
  if (whole) writeFileSync(join(root, directory, 'kept.txt'), `${KEPT}\n`);
  return { root, directory: join(root, directory), file, whole, host, roots: [root] };
}

/** Creates a data directory with the command line, which puts a marker into it. */
async function createDataDirectory(fixture, directory, { rename } = {}) {
  const root = join(fixture.folder, 'w');
  mkdirSync(join(root, 'sub'), { recursive: true });
  writeFileSync(join(root, 'harmless.txt'), 'harmless\n');
  mkdirSync(dirname(join(root, directory)), { recursive: true });
  fixture.toolLoop('e', 'builtin:echo');
  const { code, stderr } = await fixture.cli(
    ['run', 'e', '--data', join(root, directory), '--input', JSON.stringify({ message: MARK })],
    {},
  );
  expect(code === 0, 'the run that creates the data directory to succeed', stderr);
  let path = join(root, directory);
  if (rename !== undefined) {
    renameSync(path, join(root, rename));
    path = join(root, rename);
  }
  writeFileSync(join(path, 'kept.txt'), `${KEPT}\n`);
  const host = await fixture.host();
  return { root, directory: path, file: join(path, 'journal.db'), whole: true, host, roots: [root] };
}

/** @type {Record<string, (fixture: any) => Promise<Layout>>} */
export const layouts = {
  own: (fixture) => createStore(fixture, { directory: '.rondo', own: true, whole: true }),
  'own-shared': (fixture) => createStore(fixture, { directory: 'db', own: true, whole: false }),
  'own-deep': (fixture) => createStore(fixture, { directory: 'a/b/c/.rondo', own: true, whole: true }),
  others: (fixture) => createStore(fixture, { directory: '.rondo', own: false, whole: true }),
  'others-shared': (fixture) => createStore(fixture, { directory: 'sub/db', own: false, whole: false }),
  'killed-shared': (fixture) => createStore(fixture, { directory: 'db', own: false, whole: false, close: true }),
  marked: (fixture) => createDataDirectory(fixture, 'state'),
  'marked-deep': (fixture) => createDataDirectory(fixture, 'a/b/my state'),
  'marked-hidden': (fixture) => createDataDirectory(fixture, '.cache/.st'),
  'marked-odd': (fixture) => createDataDirectory(fixture, "d\u00e4t\u00e4 '$HOME' \\ *"),
  renamed: (fixture) => createDataDirectory(fixture, 'state', { rename: 'was state' }),
  modules: (fixture) => createDataDirectory(fixture, 'node_modules/app/state'),
  'modules-rondo': (fixture) => createStore(fixture, { directory: 'node_modules/app/.rondo', own: false, whole: true }),
  git: (fixture) => createDataDirectory(fixture, '.git/state'),
  'git-rondo': (fixture) => createStore(fixture, { directory: '.git/.rondo', own: false, whole: true }),
};

/**
 * Returns the inode, mode, size and content digest of the directory and its files. The content of the shared memory
 * file is left out, because a live store may change it.
 * @param {Layout} layout
 */
export function fingerprint({ directory, file, whole }) {
  const names = readdirSync(directory).filter((name) => whole || name.startsWith('journal.db'));
  const rows = names.sort().map((name) => {
    const path = join(directory, name);
    const { ino, mode, size } = lstatSync(path);
    const content = lstatSync(path).isFile() && !name.endsWith('-shm') ? readFileSync(path) : '';
    return `${name} ${ino} ${mode} ${size} ${createHash('sha256').update(content).digest('hex').slice(0, 12)}`;
  });
  return [`${lstatSync(directory).ino} ${lstatSync(directory).mode} ${file}`, ...rows].join('\n');
}

/** Asserts that a text has no content of the store, no `secret` and none of the file names `names`. */
export function assertNotDisclosed(text, { file }, secret = '', names = ['kept.txt']) {
  for (const mark of [MARK, KEPT, 'SQLite format', ...names, ...(secret === '' ? [] : [secret])]) {
    expect(
      !text.includes(mark),
      'no content of the data directory',
      `${mark} in: ${excerptAround(text, mark)} (${file})`,
    );
  }
}

/** Returns the part of a text around a mark. */
function excerptAround(text, mark) {
  const at = text.indexOf(mark);
  return text.slice(Math.max(0, at - 80), at + 80);
}

/**
 * Asserts that no other file of the root has content of the store. `known` paths are skipped.
 * @param {Layout} layout
 */
export function assertNotCopied({ root, directory, file }, known = []) {
  for (const entry of readdirSync(root, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || [directory, ...known].some((skipped) => path === skipped || path.startsWith(`${skipped}/`)))
      continue;
    const text = readFileSync(path, 'latin1');
    expect(
      !text.includes(MARK) && !text.includes(KEPT),
      'no copy of the data directory',
      `${path} is a copy of ${file}`,
    );
  }
}

/** Returns the secret in the owner file of a live owner, or an empty string. */
export function secretOf({ file }) {
  try {
    return JSON.parse(readFileSync(`${file}.owner`, 'utf8')).secret ?? '';
  } catch {
    return '';
  }
}
