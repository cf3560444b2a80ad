import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { afterEach, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { documentParser } from '../../loops/plan/workflow-document.js';
import { type LoadedDefinitions, loadDefinitionFile, loadDefinitions } from './load.js';

const directories: string[] = [];

afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true });
});

async function directoryOf(files: { readonly [name: string]: string | Buffer }): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'rondo-load-')));
  directories.push(directory);
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  return directory;
}

const document = (id: string): object => ({
  id,
  name: id,
  version: '1.0.0',
  inputSchema: true,
  outputSchema: true,
  kind: 'tool',
  tool: { implementation: 'builtin:echo' },
});
const json = (id: string, change: object = {}): string => JSON.stringify({ ...document(id), ...change });

const trustingOptions = { trusted: () => true, parser: documentParser };
const untrustedOptions = { trusted: () => false, parser: documentParser };

const idsOf = (loaded: LoadedDefinitions): unknown[] =>
  loaded.definitions.map((item) => ('definition' in item ? item.definition.id : (item.code as { id: unknown }).id));
const badIn = (loaded: LoadedDefinitions, directory: string): string[] =>
  loaded.badFiles.map(({ file, reason }) => `${file.replace(`${directory}/`, '')}: ${reason}`);

const workflow = `
id = "flow"
name = "Flow"
version = "1.0.0"
kind = "composite"
inputSchema = true
[outputSchema]
type = "object"
[[composite.steps]]
loopId = "b"
outputBinding = "first"
[composite.steps.inputMapping]
text = "$.input.text"
[[composite.steps]]
loopId = "c"
inputMapping = "$.first.output"
[policy]
timeoutMs = 3000
`;

verifies('definition.load', 'an invalid file is reported and the others load', async () => {
  const directory = await directoryOf({
    'b.json': `\ufeff${json('b')}`,
    'a.toml': workflow,
    'c.json': json('c'),
    'broken.json': '{\n  "id": "x",\n  oops\n}',
    'twice.json': '{"id": "x",\n "id": "y"}',
    'flawed.json': '{\n "id": "x",\n "name": "x",\n "version": "1"\n}',
    'list.json': '[]',
    'date.toml': 'id = 2020-01-01',
    'bytes.json': Buffer.from([0x22, 0xff, 0x22]),
    'large.json': Buffer.alloc(4 * 1024 * 1024 + 1, 0x20),
  });
  const loaded = await loadDefinitions(directory, untrustedOptions);
  expect(idsOf(loaded)).toEqual(['flow', 'b', 'c']);
  expect(loaded.definitions[1]).toMatchObject({
    file: join(directory, 'b.json'),
    origin: { directory, file: join(directory, 'b.json'), trusted: false },
  });
  expect(loaded.badFiles.filter(({ file }) => file.endsWith('flawed.json'))).toEqual([
    {
      file: join(directory, 'flawed.json'),
      path: '/version',
      line: 4,
      column: 2,
      reason: expect.stringContaining('semantic'),
      loopId: 'x',
    },
    ...['/inputSchema', '/outputSchema', '/kind'].map((path) => ({
      file: join(directory, 'flawed.json'),
      path,
      line: 1,
      column: 1,
      reason: 'is required',
      loopId: 'x',
    })),
  ]);
  expect(badIn(loaded, directory).filter((problem) => !problem.startsWith('flawed'))).toEqual(
    [
      'broken.json: expected a key in double quotes, but found "o"',
      'bytes.json: it is not UTF-8 text',
      'date.toml: is a date, which JSON does not support; write it as text, in quotes',
      'large.json: it has 4194305 bytes; the limit is 4194304',
      'list.json: it is an array, not a definition; name a script file *.script.json',
      'twice.json: duplicate key "id"',
    ].sort(),
  );
  expect(loaded.badFiles.find(({ file }) => file.endsWith('broken.json'))).toMatchObject({ line: 3, column: 3 });
});

verifies('definition.load', 'files that are not definitions are ignored', async () => {
  const directory = await directoryOf({
    '.hidden.json': '{',
    'package.json': '{}',
    'rondo.toml': 'data = "d"',
    'answers.script.json': '[{"text": "a"}]',
    'a.test.mjs': 'throw new Error("imported")',
    'types.d.ts': 'export type A = 1;',
    'notes.md': '# notes',
    'run.mjs': '#!/usr/bin/env node\nthrow new Error("imported")',
  });
  await mkdir(join(directory, 'sub.json'));
  const reason = 'it is a program, with a shebang line';
  expect(await loadDefinitions(directory, trustingOptions)).toEqual({
    definitions: [],
    badFiles: [],
    hosted: [],
    skipped: [{ file: join(directory, 'run.mjs'), reason }],
  });
  expect(await readdir(directory)).toHaveLength(9);
});

verifies('definition.load', 'a symbolic link to a file outside of the directory is not followed', async () => {
  const outside = await directoryOf({ 'secret.json': json('secret') });
  const directory = await directoryOf({ 'a.json': json('a') });
  await symlink(join(outside, 'secret.json'), join(directory, 'b.json'));
  await symlink(join(directory, 'nowhere'), join(directory, 'c.json'));
  await symlink(join(directory, 'a.json'), join(directory, 'd.json'));
  await symlink('e.json', join(directory, 'e.json'));
  const loaded = await loadDefinitions(directory, untrustedOptions);
  expect(idsOf(loaded)).toEqual(['a', 'a']);
  expect(badIn(loaded, directory)).toEqual([
    'b.json: it is a symbolic link to a file outside of the directory, which is not followed',
    'c.json: it does not exist',
    'e.json: it is a symbolic link loop',
  ]);
});

verifies('definition.load', 'a missing directory is reported as a bad file', async () => {
  const loaded = await loadDefinitions('/nowhere/at/all', untrustedOptions);
  expect(loaded).toEqual({
    definitions: [],
    badFiles: [{ file: '/nowhere/at/all', reason: 'the directory cannot be listed: it does not exist' }],
    skipped: [],
    hosted: [],
  });
});

verifies('definition.load', 'a thousand definitions load within a second', async () => {
  const names = Array.from({ length: 1000 }, (_, index) => `loop-${String(index).padStart(4, '0')}`);
  const directory = await directoryOf(Object.fromEntries(names.map((name) => [`${name}.json`, json(name)])));
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    const start = performance.now();
    expect(idsOf(await loadDefinitions(directory, untrustedOptions))).toEqual(names);
    times.push(performance.now() - start);
  }
  expect(Math.min(...times)).toBeLessThan(1000);
});

verifies('definition.load', 'a file named by the caller is loaded or reported as bad', async () => {
  const directory = await directoryOf({
    'a.json': json('a'),
    'b.yaml': '',
    'c.mjs': 'export const x = 1;',
    'd.script.json': '[]',
  });
  const load = (name: string): Promise<LoadedDefinitions> => loadDefinitionFile(join(directory, name), trustingOptions);
  expect(idsOf(await load('a.json'))).toEqual(['a']);
  expect(badIn(await load('b.yaml'), directory)).toEqual([
    'b.yaml: a definition is a file that ends in .json, .toml, .mjs, .js or .ts',
  ]);
  expect(badIn(await load('c.mjs'), directory)).toEqual(['c.mjs: it exports no loop']);
  expect(badIn(await load('d.script.json'), directory)[0]).toContain('it is an array');
  expect(badIn(await load('no.json'), directory)).toEqual(['no.json: it does not exist']);
});

const moduleText = `
globalThis.rondoImported = (globalThis.rondoImported ?? 0) + 1;
const loop = { id: 'b', version: '1.0.0', kind: 'prompt', run: () => 1 };
export default loop;
export const again = loop;
export const first = ${json('a')};
export const made = { name: 'c', body: () => 1, definition: ${json('c')} };
export const helper = () => 1;
export const half = { id: 'x', version: '1.0.0' };
`;
const importCount = (): number => (globalThis as { rondoImported?: number }).rondoImported ?? 0;

verifies('definition.code', 'no code runs from an untrusted directory', async () => {
  const directory = await directoryOf({ 'a.mjs': moduleText });
  const before = importCount();
  const loaded = await loadDefinitions(directory, untrustedOptions);
  expect(importCount(), 'a module of an untrusted directory was imported').toBe(before);
  expect(loaded.definitions).toEqual([]);
  expect(badIn(loaded, directory)).toEqual([
    expect.stringMatching(
      /^a\.mjs: it is code, and its directory is not trusted\. If you trust it, run: rondo trust .*--trust/,
    ),
  ]);
});

verifies('definition.code', 'every exported loop is loaded once, and other exports are ignored', async () => {
  const directory = await directoryOf({
    'a.mjs': moduleText,
    'b.loop.js': 'throw new Error("at once")',
    'c.mjs': 'import "./none.mjs"; export default defineLoop({})',
  });
  const checked: string[] = [];
  const loaded = await loadDefinitions(directory, { ...trustingOptions, trusted: (path) => checked.push(path) > 0 });
  expect(checked).toEqual([directory]);
  expect(loaded.definitions.map((item) => ('name' in item ? [item.name, item.origin.trusted] : []))).toEqual([
    ['again', true],
    ['first', true],
    ['made', true],
  ]);
  expect(idsOf(loaded)).toEqual(['b', 'a', undefined]);
  expect(badIn(loaded, directory)).toEqual([
    'b.loop.js: it could not be imported: at once',
    expect.stringContaining('c.mjs: it could not be imported'),
  ]);
});

verifies('definition.code', 'loading a directory does not run the programs of its exec tools', async () => {
  const tool = { implementation: 'exec:./pay.mjs' };
  const directory = await directoryOf({
    'pay.json': json('pay', { tool }),
    'pay.mjs': 'throw new Error("paid")',
    'flawed.json': json('flawed', { tool: { implementation: 'exec:./refund.mjs' }, polcy: {} }),
    'refund.mjs': 'throw new Error("refunded")',
  });
  const loaded = await loadDefinitions(directory, trustingOptions);
  expect(idsOf(loaded)).toEqual(['pay']);
  expect(badIn(loaded, directory)).toEqual(['flawed.json: is not a known key; did you mean "policy"?']);
});

verifies(
  'definition.typescript',
  'without a loader, the message says what to install or which Node to use',
  async () => {
    const directory = await directoryOf({ 'a.ts': `export const loop: object = ${json('typed')};` });
    const loaded = await loadDefinitions(directory, trustingOptions);
    const outcome = [...idsOf(loaded), ...badIn(loaded, directory)];
    expect(outcome).toHaveLength(1);
    expect(String(outcome[0])).toMatch(
      /^typed$|^a\.ts: Node .* cannot run TypeScript by itself; run "npm install --save-dev tsx" .* or use Node 22\.18/,
    );
  },
);
