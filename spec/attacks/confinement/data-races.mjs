// A name in the root leads to a harmless place at one moment and to a data directory at the next, thousands of times, while tools
// work on it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from '../../support/store-attack.mjs';
import { assertUntold, fingerprint, layouts, secretOf } from './layouts.mjs';

const swapper = fileURLToPath(new URL('swapper.py', import.meta.url));

/** What is exchanged: each makes two names and tells the path that tools are asked for. */
const swaps = {
  directory: ({ root, directory }) => {
    mkdirSync(join(root, 'd'));
    writeFileSync(join(root, 'd/kept.txt'), 'harmless\n');
    symlinkSync(directory, join(root, 'e'));
    return ['d', 'e', 'd/kept.txt'];
  },
  file: ({ root, directory }) => {
    writeFileSync(join(root, 'd'), 'harmless\n');
    symlinkSync(join(directory, 'kept.txt'), join(root, 'e'));
    return ['d', 'e', 'd'];
  },
  parent: ({ root, directory }) => {
    mkdirSync(join(root, 'up/d/x'), { recursive: true });
    mkdirSync(join(root, 'up/e'), { recursive: true });
    writeFileSync(join(root, 'up/d/x/kept.txt'), 'harmless\n');
    symlinkSync(directory, join(root, 'up/e/x'));
    return ['up/d', 'up/e', 'up/d/x/kept.txt'];
  },
  owner: ({ root, file }) => {
    writeFileSync(join(root, 'd'), 'harmless\n');
    linkSync(`${file}.owner`, join(root, 'e'));
    return ['d', 'e', 'd'];
  },
};

/** The uses of a path by each tool. */
const uses = {
  view: (path) => ['view_file', { path }],
  search: (path) => ['search_files', { path: path.replace(/\/[^/]*$/, ''), query: 'K', hidden: true }],
  list: (path) => ['list_files', { path: path.replace(/\/[^/]*$/, ''), hidden: true, depth: 2 }],
  write: (path, n) => ['write_file', { path, content: `harmless ${n}\n` }],
  'write-new': (path, n) => [
    'write_file',
    { path: path.replace(/kept\.txt$/, `n${n % 7}/new.txt`), content: 'harmless\n' },
  ],
  edit: (path) => ['edit_file', { path, old: 'e', new: 'harmless', all: true }],
};

async function race(scene, layout, swap, use, rounds) {
  const scenery = await layouts[layout](scene);
  const { host, root } = scenery;
  const [one, other, path] = swaps[swap](scenery);
  const before = fingerprint(scenery);
  const secret = secretOf(scenery);
  const child = spawn('python3', [swapper, join(root, one), join(root, other)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  scene.atEnd(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const tally = { done: 0, refused: 0 };
  for (let n = 0; n < rounds; n++) {
    const [name, input] = use(path, n);
    const answer = await host.tool(name, input, scenery);
    expect(!('gone' in answer), 'an answer', answer);
    assertUntold(JSON.stringify(answer.ok ?? {}), scenery, secret, []);
    tally[answer.ok === undefined ? 'refused' : 'done'] += 1;
  }
  expect(child.exitCode === null, 'a race to the end', child.exitCode);
  expect(tally.refused > 0, 'a race that is met', tally);
  const sameFiles = fingerprint(scenery).replace(/journal\.db\.owner \d+ \d+/, '');
  expect(
    sameFiles === before.replace(/journal\.db\.owner \d+ \d+/, ''),
    'the data directory as before',
    fingerprint(scenery),
  );
}

/** Commands whose directory, or a directory of the root, is swapped meanwhile. */
async function commands(scene, layout) {
  const scenery = await layouts[layout](scene);
  const { host, root } = scenery;
  const [one, other] = swaps.directory(scenery);
  const before = fingerprint(scenery);
  const child = spawn('python3', [swapper, join(root, one), join(root, other)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  scene.atEnd(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  for (let n = 0; n < 15; n++) {
    const line = `cat kept.txt journal.db* ../d/kept.txt ../e/kept.txt ${root}/e/*; echo planted > planted.txt; ls -la`;
    const answer = await host.tool('run_command', { command: line, directory: n % 2 === 0 ? 'd' : '.' }, scenery);
    assertUntold(JSON.stringify(answer.ok?.output ?? {}), scenery, secretOf(scenery), []);
  }
  expect(fingerprint(scenery) === before, 'the data directory as before', fingerprint(scenery));
}

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `data.race.${id}`, run });
  for (const layout of ['own', 'marked']) {
    for (const swap of ['directory', 'file', 'parent']) {
      for (const [name, use] of Object.entries(uses)) {
        if (swap === 'file' && /list|search|new/.test(name)) continue;
        add(`${layout}.${swap}.${name}`, (scene) => race(scene, layout, swap, use, 120));
      }
    }
    add(`${layout}.commands`, (scene) => commands(scene, layout));
  }
  add('own.owner.view', (scene) => race(scene, 'own', 'owner', uses.view, 200));
  return all;
}
