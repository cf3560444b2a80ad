// Where data directories and stores can lie in the root of a tool, and what must be as before when an attack on one is over.

import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';

/** What only the files of the store hold. */
export const MARK = 'Mk7-only-in-the-journal';
export const KEPT = 'Kp9-kept-in-the-data-directory';

/**
 * @typedef {{ root: string, directory: string, file: string, whole: boolean, host: any, roots: string[] }} Layout
 * `file` is one that holds a mark; `whole` is true if all of the directory is out of reach.
 */

async function opened(scene, { directory, own, whole, close = false }) {
  const root = join(scene.folder, 'w');
  mkdirSync(join(root, 'sub'), { recursive: true });
  writeFileSync(join(root, 'harmless.txt'), 'harmless\n');
  mkdirSync(join(root, directory), { recursive: true });
  const file = join(root, directory, 'journal.db');
  const host = await scene.host();
  const owner = own ? host : await scene.host();
  await owner.must('open', { path: file, values: [MARK, 'second'] });
  if (close) {
    owner.child.kill('SIGKILL');
    await owner.closed;
  }
  if (whole) writeFileSync(join(root, directory, 'kept.txt'), `${KEPT}\n`);
  return { root, directory: join(root, directory), file, whole, host, roots: [root] };
}

/** A data directory that the command line made, with the marker in it. */
async function marked(scene, directory, { rename } = {}) {
  const root = join(scene.folder, 'w');
  mkdirSync(join(root, 'sub'), { recursive: true });
  writeFileSync(join(root, 'harmless.txt'), 'harmless\n');
  mkdirSync(dirname(join(root, directory)), { recursive: true });
  scene.toolLoop('e', 'builtin:echo');
  const { code, stderr } = await scene.cli(
    ['run', 'e', '--data', join(root, directory), '--input', JSON.stringify({ said: MARK })],
    {},
  );
  expect(code === 0, 'a run that makes the data directory', stderr);
  let place = join(root, directory);
  if (rename !== undefined) {
    renameSync(place, join(root, rename));
    place = join(root, rename);
  }
  writeFileSync(join(place, 'kept.txt'), `${KEPT}\n`);
  const host = await scene.host();
  return { root, directory: place, file: join(place, 'journal.db'), whole: true, host, roots: [root] };
}

/** @type {Record<string, (scene: any) => Promise<Layout>>} */
export const layouts = {
  own: (scene) => opened(scene, { directory: '.rondo', own: true, whole: true }),
  'own-shared': (scene) => opened(scene, { directory: 'db', own: true, whole: false }),
  'own-deep': (scene) => opened(scene, { directory: 'a/b/c/.rondo', own: true, whole: true }),
  others: (scene) => opened(scene, { directory: '.rondo', own: false, whole: true }),
  'others-shared': (scene) => opened(scene, { directory: 'sub/db', own: false, whole: false }),
  'killed-shared': (scene) => opened(scene, { directory: 'db', own: false, whole: false, close: true }),
  marked: (scene) => marked(scene, 'state'),
  'marked-deep': (scene) => marked(scene, 'a/b/my state'),
  'marked-hidden': (scene) => marked(scene, '.cache/.st'),
  'marked-odd': (scene) => marked(scene, "d\u00e4t\u00e4 '$HOME' \\ *"),
  renamed: (scene) => marked(scene, 'state', { rename: 'was state' }),
  modules: (scene) => marked(scene, 'node_modules/app/state'),
  'modules-rondo': (scene) => opened(scene, { directory: 'node_modules/app/.rondo', own: false, whole: true }),
  git: (scene) => marked(scene, '.git/state'),
  'git-rondo': (scene) => opened(scene, { directory: '.git/.rondo', own: false, whole: true }),
};

/** What the directory of a store is and holds. A live store may touch its shared memory. @param {Layout} layout */
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

/** Nothing of the store is in a text. */
export function assertUntold(text, { file }, secret = '', names = ['kept.txt']) {
  for (const mark of [MARK, KEPT, 'SQLite format', ...names, ...(secret === '' ? [] : [secret])]) {
    expect(!text.includes(mark), 'nothing of the data directory', `it has ${mark} in: ${around(text, mark)} (${file})`);
  }
}

function around(text, mark) {
  const at = text.indexOf(mark);
  return text.slice(Math.max(0, at - 80), at + 80);
}

/** Nothing of the store is in the rest of the root. @param {Layout} layout */
export function assertNotCopied({ root, directory, file }, known = []) {
  for (const entry of readdirSync(root, { withFileTypes: true, recursive: true })) {
    const path = join(entry.parentPath ?? entry.path, entry.name);
    if (!entry.isFile() || [directory, ...known].some((own) => path === own || path.startsWith(`${own}/`))) continue;
    const text = readFileSync(path, 'latin1');
    expect(!text.includes(MARK) && !text.includes(KEPT), 'no copy of the data directory', `${path} is one of ${file}`);
  }
}

/** The secret in the record of a live owner. */
export function secretOf({ file }) {
  try {
    return JSON.parse(readFileSync(`${file}.owner`, 'utf8')).secret ?? '';
  } catch {
    return '';
  }
}
