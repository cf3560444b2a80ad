// Symlink races: a process exchanges a harmless file or directory of the root with a link to a data directory,
// thousands of times, while tools use the path.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from '../../support/store-attack.mjs';
import { assertNotDisclosed, fingerprint, layouts, secretOf } from './layouts.mjs';

const exchangeProgram = fileURLToPath(new URL('exchange-names.py', import.meta.url));

/** Functions that create the two names to exchange. They return both, and the path that the tools use. */
const exchanges = {
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

/** Functions that return a tool call for a path. */
const toolCalls = {
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

/** Calls a tool repeatedly during the race. It discloses and changes nothing, and some calls are refused. */
async function checkToolRace(fixture, layoutName, exchange, callFor, rounds) {
  const layout = await layouts[layoutName](fixture);
  const { host, root } = layout;
  const [one, other, path] = exchanges[exchange](layout);
  const before = fingerprint(layout);
  const secret = secretOf(layout);
  const child = spawn('python3', [exchangeProgram, join(root, one), join(root, other)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  fixture.atEnd(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const counts = { done: 0, refused: 0 };
  for (let n = 0; n < rounds; n++) {
    const [name, input] = callFor(path, n);
    const response = await host.tool(name, input, layout);
    expect(!('exited' in response), `${name} to return`, response);
    assertNotDisclosed(JSON.stringify(response.ok ?? {}), layout, secret, []);
    counts[response.ok === undefined ? 'refused' : 'done'] += 1;
  }
  expect(child.exitCode === null, 'a running exchange process', child.exitCode);
  expect(counts.refused > 0, 'at least one refused call', counts);
  const sameFiles = fingerprint(layout).replace(/journal\.db\.owner \d+ \d+/, '');
  expect(
    sameFiles === before.replace(/journal\.db\.owner \d+ \d+/, ''),
    'an unchanged data directory',
    fingerprint(layout),
  );
}

/** Commands disclose and change nothing while their directory or a directory of the root is exchanged. */
async function checkCommandRace(fixture, layoutName) {
  const layout = await layouts[layoutName](fixture);
  const { host, root } = layout;
  const [one, other] = exchanges.directory(layout);
  const before = fingerprint(layout);
  const child = spawn('python3', [exchangeProgram, join(root, one), join(root, other)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  fixture.atEnd(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  for (let n = 0; n < 15; n++) {
    const line = `cat kept.txt journal.db* ../d/kept.txt ../e/kept.txt ${root}/e/*; echo planted > planted.txt; ls -la`;
    const response = await host.tool('run_command', { command: line, directory: n % 2 === 0 ? 'd' : '.' }, layout);
    assertNotDisclosed(JSON.stringify(response.ok?.output ?? {}), layout, secretOf(layout), []);
  }
  expect(fingerprint(layout) === before, 'an unchanged data directory', fingerprint(layout));
}

export function cases() {
  const list = [];
  const add = (id, run) => list.push({ id: `data.race.${id}`, run });
  for (const layout of ['own', 'marked']) {
    for (const exchange of ['directory', 'file', 'parent']) {
      for (const [name, callFor] of Object.entries(toolCalls)) {
        if (exchange === 'file' && /list|search|new/.test(name)) continue;
        add(`${layout}.${exchange}.${name}`, (fixture) => checkToolRace(fixture, layout, exchange, callFor, 120));
      }
    }
    add(`${layout}.commands`, (fixture) => checkCommandRace(fixture, layout));
  }
  add('own.owner.view', (fixture) => checkToolRace(fixture, 'own', 'owner', toolCalls.view, 200));
  return list;
}
