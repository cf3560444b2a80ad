import { mkdir, mkdtemp, readdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { afterEach, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { parseDefinition } from '../../loops/definition/definition.js';
import { type LoadedDefinitions, loadDefinitionFile, loadDefinitions } from './load.js';

const made: string[] = [];

afterEach(async () => {
  for (const directory of made.splice(0)) await rm(directory, { recursive: true });
});

async function directoryOf(files: { readonly [name: string]: string | Buffer }): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'rondo-load-')));
  made.push(directory);
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

const trusting = { trusted: () => true, parse: parseDefinition };
const wary = { trusted: () => false, parse: parseDefinition };

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

verifies('definition.load', 'one bad file keeps the good ones out, or goes unnoticed', async () => {
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
  const loaded = await loadDefinitions(directory, wary);
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
    },
    ...['/inputSchema', '/outputSchema', '/kind'].map((path) => ({
      file: join(directory, 'flawed.json'),
      path,
      line: 1,
      column: 1,
      reason: 'is required',
    })),
  ]);
  expect(badIn(loaded, directory).filter((told) => !told.startsWith('flawed'))).toEqual(
    [
      'broken.json: "o" stands where a key in double quotes should be',
      'bytes.json: it is not UTF-8 text',
      'date.toml: is a date, which JSON does not support; write it as text, in quotes',
      'large.json: it has 4194305 bytes; 4194304 is the most',
      'list.json: it is a list, not a definition; call a script *.script.json',
      'twice.json: the key "id" is there twice',
    ].sort(),
  );
  expect(loaded.badFiles.find(({ file }) => file.endsWith('broken.json'))).toMatchObject({ line: 3, column: 3 });
});

verifies('definition.load', 'a file that is no definition is reported as a broken one', async () => {
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
  expect(await loadDefinitions(directory, trusting)).toEqual({ definitions: [], badFiles: [] });
  expect(await readdir(directory)).toHaveLength(9);
});

verifies('definition.load', 'a link makes us read what its maker could not', async () => {
  const outside = await directoryOf({ 'secret.json': json('secret') });
  const directory = await directoryOf({ 'a.json': json('a') });
  await symlink(join(outside, 'secret.json'), join(directory, 'b.json'));
  await symlink(join(directory, 'nowhere'), join(directory, 'c.json'));
  await symlink(join(directory, 'a.json'), join(directory, 'd.json'));
  await symlink('e.json', join(directory, 'e.json'));
  const loaded = await loadDefinitions(directory, wary);
  expect(idsOf(loaded)).toEqual(['a', 'a']);
  expect(badIn(loaded, directory)).toEqual([
    'b.json: it is a link out of the directory, which is not followed',
    'c.json: it does not exist',
    'e.json: it is a link that leads in a circle',
  ]);
});

verifies('definition.load', 'a directory that is missing throws a stack at the user', async () => {
  const loaded = await loadDefinitions('/nowhere/at/all', wary);
  expect(loaded).toEqual({
    definitions: [],
    badFiles: [{ file: '/nowhere/at/all', reason: 'the directory cannot be listed: it does not exist' }],
  });
});

verifies('definition.load', 'a thousand definitions take longer than anyone waits', async () => {
  const names = Array.from({ length: 1000 }, (_, index) => `loop-${String(index).padStart(4, '0')}`);
  const directory = await directoryOf(Object.fromEntries(names.map((name) => [`${name}.json`, json(name)])));
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    const start = performance.now();
    expect(idsOf(await loadDefinitions(directory, wary))).toEqual(names);
    times.push(performance.now() - start);
  }
  expect(Math.min(...times)).toBeLessThan(1000);
});

verifies('definition.load', 'a file that was named is silently not loaded', async () => {
  const directory = await directoryOf({
    'a.json': json('a'),
    'b.yaml': '',
    'c.mjs': 'export const x = 1;',
    'd.script.json': '[]',
  });
  const load = (name: string): Promise<LoadedDefinitions> => loadDefinitionFile(join(directory, name), trusting);
  expect(idsOf(await load('a.json'))).toEqual(['a']);
  expect(badIn(await load('b.yaml'), directory)).toEqual([
    'b.yaml: a definition is a file that ends in .json, .toml, .mjs, .js or .ts',
  ]);
  expect(badIn(await load('c.mjs'), directory)).toEqual(['c.mjs: it exports no loop']);
  expect(badIn(await load('d.script.json'), directory)[0]).toContain('it is a list');
  expect(badIn(await load('no.json'), directory)).toEqual(['no.json: it does not exist']);
});

const module = `
globalThis.rondoImported = (globalThis.rondoImported ?? 0) + 1;
const loop = { id: 'b', version: '1.0.0', kind: 'prompt', run: () => 1 };
export default loop;
export const again = loop;
export const first = ${json('a')};
export const made = { name: 'c', body: () => 1, definition: ${json('c')} };
export const helper = () => 1;
export const half = { id: 'x', version: '1.0.0' };
`;
const imported = (): number => (globalThis as { rondoImported?: number }).rondoImported ?? 0;

verifies('definition.code', 'code runs from a directory that nobody trusts', async () => {
  const directory = await directoryOf({ 'a.mjs': module });
  const before = imported();
  const loaded = await loadDefinitions(directory, wary);
  expect(imported()).toBe(before);
  expect(loaded.definitions).toEqual([]);
  expect(badIn(loaded, directory)).toEqual([
    expect.stringMatching(
      /^a\.mjs: it is code, and its directory is not trusted\. If you trust it, run: rondo trust .*--trust/,
    ),
  ]);
});

verifies('definition.code', 'a loop that is exported is lost, or one that is no loop is found', async () => {
  const directory = await directoryOf({
    'a.mjs': module,
    'b.js': 'throw new Error("at once")',
    'c.mjs': 'import "./none.mjs"',
  });
  const asked: string[] = [];
  const loaded = await loadDefinitions(directory, { ...trusting, trusted: (place) => asked.push(place) > 0 });
  expect(asked).toEqual([directory]);
  expect(loaded.definitions.map((item) => ('name' in item ? [item.name, item.origin.trusted] : []))).toEqual([
    ['again', true],
    ['first', true],
    ['made', true],
  ]);
  expect(idsOf(loaded)).toEqual(['b', 'a', undefined]);
  expect(badIn(loaded, directory)).toEqual([
    'b.js: it could not be imported: at once',
    expect.stringContaining('c.mjs: it could not be imported'),
  ]);
});

verifies('definition.code', 'a program that a tool starts is run by listing the loops', async () => {
  const tool = { implementation: 'exec:./pay.mjs' };
  const directory = await directoryOf({
    'pay.json': json('pay', { tool }),
    'pay.mjs': 'throw new Error("paid")',
    'flawed.json': json('flawed', { tool: { implementation: 'exec:./refund.mjs' }, polcy: {} }),
    'refund.mjs': 'throw new Error("refunded")',
  });
  const loaded = await loadDefinitions(directory, trusting);
  expect(idsOf(loaded)).toEqual(['pay']);
  expect(badIn(loaded, directory)).toEqual(['flawed.json: is not a known key; did you mean "policy"?']);
});

verifies('definition.code', 'TypeScript fails with a message that helps nobody', async () => {
  const directory = await directoryOf({ 'a.ts': `export const loop: object = ${json('typed')};` });
  const loaded = await loadDefinitions(directory, trusting);
  const told = [...idsOf(loaded), ...badIn(loaded, directory)];
  expect(told).toHaveLength(1);
  expect(String(told[0])).toMatch(
    /^typed$|^a\.ts: Node .* cannot run TypeScript; use Node 22\.18 or newer, or compile it/,
  );
});
