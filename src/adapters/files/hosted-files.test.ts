import { mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'smol-toml';
import { afterEach, expect } from 'vitest';
import { fullHostedLoop, smallestHostedLoop } from '../../../spec/support/random-hosted-documents.js';
import { verifies } from '../../../spec/verifies.js';
import { parseHostedLoop } from '../../host/hosted/hosted-document.js';
import { documentParser } from '../../loops/plan/workflow-document.js';
import { isHostedLoopText, loadHostedFile, parseHostedLoopText } from './hosted-files.js';
import { loadDefinitionFile, loadDefinitions, loadHostedFiles } from './load.js';

const directories: string[] = [];

afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true });
});

async function directoryOf(files: { readonly [name: string]: string }): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'rondo-hosted-')));
  directories.push(directory);
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  return directory;
}

const json = (changes: object = {}): string => JSON.stringify({ ...smallestHostedLoop, ...changes });
const toml = (stop = 'maxTurns = 1'): string =>
  `id = "daily"\nloop = "triage"\n\n[grant]\nallowedTools = []\nlimits = {}\n\n[stop]\n${stop}\n`;
const parse = (file: string, text: string) => parseHostedLoopText(file, text, parseHostedLoop);
const options = { trusted: () => true, parser: documentParser, loadHostedParser: async () => parseHostedLoop };

verifies('hosted.document', 'a file in TOML has the same document as one in JSON', () => {
  // TOML has no null.
  const document = { ...fullHostedLoop, input: { since: 0 } };
  const fromToml = parse('a.toml', stringify(document));
  expect(fromToml.badFiles).toEqual([]);
  expect(fromToml.document).toEqual(document);
  expect(parse('a.json', JSON.stringify(document)).document).toEqual(document);
});

verifies('hosted.document', 'a date of TOML is the same as its text', () => {
  const withDate = parse('a.toml', toml('maxTurns = 1\ndeadline = 2030-01-31T12:00:00+01:00'));
  expect(withDate.document?.stop.deadline).toBe('2030-01-31T12:00:00.000+01:00');
  for (const local of ['2030-01-31', '2030-01-31T12:00:00', '12:00:00'])
    expect(parse('a.toml', toml(`maxTurns = 1\ndeadline = ${local}`)).badFiles).toMatchObject([
      { path: '/stop/deadline', line: 10, reason: expect.stringContaining('must be an ISO time that exists') },
    ]);
});

verifies('hosted.document', 'a date of TOML on a day that does not exist is refused', () => {
  for (const day of ['2030-02-30', '2031-02-29', '2030-04-31'])
    expect(
      parse('a.toml', toml(`maxTurns = 1\ndeadline = ${day}T12:00:00Z`)).badFiles.map(({ reason }) => reason),
    ).toEqual([expect.stringMatching(`${day}|Invalid|invalid`)]);
});

verifies('hosted.document', 'a problem of a file has its path and its line', () => {
  expect(parse('a.toml', toml('maxTurn = 1')).badFiles).toMatchObject([
    { file: 'a.toml', path: '/stop/maxTurn', line: 9, column: 1, loopId: 'daily' },
    { file: 'a.toml', path: '/stop/maxTurns', line: 8, loopId: 'daily' },
  ]);
  const text = JSON.stringify({ ...smallestHostedLoop, grant: { allowedTools: ['..'], limits: {} } }, null, 2);
  const [problem] = parse('a.json', text).badFiles;
  expect(problem).toMatchObject({ path: '/grant/allowedTools/0', line: 6 });
  expect(parse('a.toml', 'id = ').badFiles).toMatchObject([{ line: 1 }]);
});

verifies('hosted.document', 'a file may name its JSON Schema', () => {
  expect(parse('a.json', json({ $schema: '../schema.json' })).document).toEqual(smallestHostedLoop);
  expect(parse('a.json', json({ $schema: 5 })).badFiles).toMatchObject([{ path: '/$schema' }]);
});

verifies('hosted.document', 'a hosted loop is recognised by its members, also without a stop policy', () => {
  expect(isHostedLoopText('a.toml', toml())).toBe(true);
  expect(isHostedLoopText('a.json', json())).toBe(true);
  expect(isHostedLoopText('a.json', json({ stop: undefined }))).toBe(true);
  expect(isHostedLoopText('a.json', json({ grant: undefined }))).toBe(true);
  for (const other of [
    json({ kind: 'prompt' }),
    json({ steps: [] }),
    json({ loop: undefined }),
    '{"id": "loop", "stop": ',
    '["loop", "stop"]',
    '"loop stop"',
  ])
    expect(isHostedLoopText('a.json', other), other).toBe(false);
});

verifies('hosted.document', 'a hosted loop in a directory of definitions is no broken definition', async () => {
  const directory = await directoryOf({
    'daily.toml': toml(),
    'broken.toml': toml('').replace('daily', 'broken'),
    'flow.toml': '[workflow]\nname = "flow"\n\n[[steps]]\nloop = "triage"\n',
    'more.json': json(),
  });
  const loaded = await loadDefinitions(directory, options);
  expect(loaded.badFiles).toEqual([]);
  expect(loaded.definitions.map(({ file }) => file)).toEqual([join(directory, 'flow.toml')]);
  expect(loaded.hosted.map(({ document, badFiles }) => document?.id ?? badFiles[0]?.path)).toEqual([
    '/stop/maxTurns',
    'daily',
    'smallest',
  ]);
  expect(await loadHostedFiles(directory, parseHostedLoop)).toEqual(loaded.hosted);
  const named = await loadDefinitionFile(join(directory, 'daily.toml'), options);
  expect(named).toMatchObject({ definitions: [], badFiles: [], hosted: [{ document: { id: 'daily' } }] });
});

verifies('hosted.document', 'a link out of the directory is not followed, and a large file is not read', async () => {
  const outside = await directoryOf({ 'daily.toml': toml() });
  const directory = await directoryOf({ 'large.json': json({ input: 'x'.repeat(2 * 1024 * 1024) }) });
  await symlink(join(outside, 'daily.toml'), join(directory, 'daily.toml'));
  const found = await loadHostedFiles(directory, parseHostedLoop);
  expect(found.map(({ document }) => document)).toEqual([undefined]);
  const large = await loadHostedFile(join(directory, 'large.json'), parseHostedLoop);
  expect(large.badFiles).toMatchObject([{ reason: expect.stringContaining('the limit is 262144') }]);
  const text = json({ input: 'x'.repeat(300_000) });
  expect(parseHostedLoopText('large.json', text, parseHostedLoop).badFiles).toMatchObject([
    { reason: expect.stringContaining('the limit is 262144') },
  ]);
  const missing = await loadHostedFile(join(directory, 'none.toml'), parseHostedLoop);
  expect(missing.badFiles).toMatchObject([{ reason: 'it does not exist' }]);
  expect(await loadHostedFiles(join(directory, 'none'), parseHostedLoop)).toEqual([]);
});
