/** `list_files`, `view_file` and `search_files`: order, line numbers, limits and error messages. */
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, failure, SECRET, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { toolbox } from './index.js';

afterAll(cleanUp);

const project = {
  'README.md': '# Project\n\nHello.\n',
  'src/b.ts': 'export const b = 2;\n',
  'src/a.ts': 'export const a = 1;\r\nconst hidden = a;\r\n',
  'src/deep/c.ts': 'import { a } from "../a";\n',
  '.env': 'KEY=1\n',
  'node_modules/x/index.js': 'export const a = 0;\n',
};

verifies('toolbox.files', 'a listing is complete and sorted', async () => {
  const { root, outside } = createWorkspace(project);
  symlinkSync(outside, join(root, 'link'));
  const { list_files } = toolbox({ roots: [root] });
  expect(await use(list_files, {})).toEqual({
    path: '.',
    entries: ['README.md', 'link@', 'node_modules/', 'src/'],
  });
  expect(await use(list_files, { depth: 3, hidden: true })).toEqual({
    path: '.',
    entries: [
      '.env',
      'README.md',
      'link@',
      'node_modules/',
      'src/',
      'src/a.ts',
      'src/b.ts',
      'src/deep/',
      'src/deep/c.ts',
    ],
    note: 'node_modules is only walked if it is the path itself.',
  });
  expect(await use(list_files, { path: 'node_modules', depth: 2 })).toMatchObject({
    entries: ['node_modules/x/', 'node_modules/x/index.js'],
  });
});

verifies('toolbox.files', 'the size of a listing is bounded', async () => {
  const files = Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`f${String(i).padStart(5, '0')}`, '']));
  const { list_files } = toolbox({ roots: [createWorkspace(files).root] });
  const listing = await use(list_files, {});
  expect(listing.entries).toHaveLength(500);
  expect(listing.note).toMatch(/more than these 500 entries; use a subdirectory/);
  const few = await use(list_files, { limit: 2 });
  expect(few.entries).toEqual(['f00000', 'f00001']);
  const long = createWorkspace(
    Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`${i}${'x'.repeat(200)}`, ''])),
  );
  const bounded = await use(toolbox({ roots: [long.root] }).list_files, {});
  expect(JSON.stringify(bounded).length).toBeLessThan(70_000);
  expect(bounded.note).toMatch(/There are more/);
});

verifies('toolbox.files', 'a view shows the requested lines with their numbers', async () => {
  const { root } = createWorkspace({
    ...project,
    many: Array.from({ length: 3000 }, (_, i) => `line ${i + 1}`).join('\n'),
    none: '',
  });
  const { view_file } = toolbox({ roots: [root] });
  expect(await use(view_file, { path: 'src/a.ts' })).toEqual({
    path: 'src/a.ts',
    text: '1\texport const a = 1;\n2\tconst hidden = a;',
    lines: 2,
    digest: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  const part = await use(view_file, { path: './src/../many', offset: 2999, limit: 1 });
  expect(part).toMatchObject({ path: 'many', text: '2999\tline 2999', note: 'Lines 3000 to 3000 follow; use offset.' });
  expect(await use(view_file, { path: 'many' })).toMatchObject({ note: 'Lines 1001 to 3000 follow; use offset.' });
  expect(await use(view_file, { path: 'none' })).toMatchObject({ text: '', lines: 0 });
  expect(await failure(use(view_file, { path: 'many', offset: 3001 }))).toBe(
    '"many" has 3000 lines, so there is no line 3001.',
  );
});

verifies('toolbox.files', 'the size of a view is bounded', async () => {
  const { root } = createWorkspace({ line: 'x'.repeat(500_000), wide: `${'y'.repeat(900)}\n`.repeat(1000) });
  writeFileSync(join(root, 'large'), Buffer.alloc(17 * 1024 * 1024, 'z\n'));
  const { view_file } = toolbox({ roots: [root] });
  const line = await use(view_file, { path: 'line' });
  expect(String(line.text)).toHaveLength('1\t… (499000 more characters)'.length + 1000);
  for (const path of ['wide', 'large']) {
    expect(JSON.stringify(await use(view_file, { path, limit: 5000 })).length).toBeLessThan(70_000);
  }
  expect(await use(view_file, { path: 'large', limit: 1 })).toMatchObject({
    note: expect.stringContaining('Only the first'),
  });
});

verifies('toolbox.files', 'the error for a binary file, a directory or a missing file states the reason', async () => {
  const { root } = createWorkspace(project);
  writeFileSync(join(root, 'image.png'), Buffer.from([137, 80, 78, 71, 0, 1, 2]));
  writeFileSync(join(root, 'latin'), Buffer.from([0x63, 0x61, 0x66, 0xe9]));
  const { view_file, list_files } = toolbox({ roots: [root] });
  expect(await failure(use(view_file, { path: 'image.png' }))).toMatch(/^"image.png" is not text \(7 bytes\)/);
  expect(await use(view_file, { path: 'latin' })).toMatchObject({ text: '1\tcaf\ufffd' });
  expect(await failure(use(view_file, { path: 'src' }))).toBe('"src" is a directory; use list_files.');
  expect(await failure(use(view_file, { path: 'nowhere' }))).toBe('"nowhere" does not exist; check with list_files.');
  expect(await failure(use(view_file, { path: 'README.md/x' }))).toMatch(/contains a part that is not a directory/);
  expect(await failure(use(list_files, { path: 'README.md' }))).toMatch(/not a directory/);
});

verifies('toolbox.files', 'a search finds exactly the matching lines', async () => {
  const { root, outside } = createWorkspace(project);
  symlinkSync(outside, join(root, 'link'));
  symlinkSync(join(outside, 'secret.txt'), join(root, 'src/link.txt'));
  const { search_files } = toolbox({ roots: [root] });
  expect(await use(search_files, { query: 'const' })).toMatchObject({
    matches: ['src/a.ts:1: export const a = 1;', 'src/a.ts:2: const hidden = a;', 'src/b.ts:1: export const b = 2;'],
  });
  expect(await use(search_files, { query: '^export .* = \\d;', pattern: true, path: 'src' })).toMatchObject({
    matches: ['src/a.ts:1: export const a = 1;', 'src/b.ts:1: export const b = 2;'],
    files: 3,
  });
  expect(await use(search_files, { query: 'hello.', ignoreCase: true })).toMatchObject({
    matches: ['README.md:3: Hello.'],
  });
  expect(await use(search_files, { query: 'KEY' })).toMatchObject({ matches: [] });
  expect(await use(search_files, { query: 'KEY', hidden: true })).toMatchObject({ matches: ['.env:1: KEY=1'] });
  expect(await use(search_files, { query: 'a', path: 'src/b.ts' })).toMatchObject({ files: 1, matches: [] });
  expect(await use(search_files, { query: SECRET })).toMatchObject({ matches: [] });
});

verifies('toolbox.files', 'the size and time of a search are bounded', async () => {
  const { root } = createWorkspace({
    many: 'needle\n'.repeat(5000),
    wide: `${'x'.repeat(100_000)}needle${'x'.repeat(100_000)}\n`,
  });
  writeFileSync(join(root, 'large'), Buffer.alloc(1024 * 1024 + 1, 'needle\n'));
  const { search_files } = toolbox({ roots: [root] });
  const result = await use(search_files, { query: 'needle' });
  expect(result.matches).toHaveLength(100);
  expect(result.note).toMatch(/^It stopped after 100 lines in 1 files: narrow.*large is too large/s);
  const wide = await use(search_files, { query: 'needle', path: 'wide' });
  expect(String((wide.matches as string[])[0]).length).toBeLessThan(400);
  expect((wide.matches as string[])[0]).toContain('needle');
  writeFileSync(join(root, 'hard'), `${'a'.repeat(2000)}\n`.repeat(200));
  const start = performance.now();
  expect(await use(search_files, { query: '(a*)*(a|aa)+[bc]', pattern: true, path: 'hard' })).toMatchObject({
    matches: [],
  });
  const costly = use(search_files, { query: '(a|b|c|d|[e-z]| |.){1,900}[!?]', pattern: true, path: 'hard' });
  expect(await failure(costly)).toMatch(/would take too long/);
  expect(performance.now() - start).toBeLessThan(10_000);
});

verifies('toolbox.files', 'the error for an unsupported pattern or an invalid input states the reason', async () => {
  const { search_files, view_file } = toolbox({ roots: [createWorkspace(project).root] });
  expect(await failure(use(search_files, { query: '(?=a)', pattern: true }))).toMatch(
    /^The pattern cannot be used: .*does not support lookaround/,
  );
  expect(await failure(use(search_files, { query: '((a{900}){900}){900}', pattern: true }))).toMatch(/cannot be used/);
  expect(await failure(use(view_file, { file: 'x' }))).toBe(
    'The input of view_file is invalid: file: is not a parameter; available are path, offset, limit; path: is missing.',
  );
  expect(await failure(use(view_file, { path: 'x', offset: 0.5 }))).toMatch(/offset: must be a whole number/);
  expect(await failure(use(view_file, { path: '', limit: 0 }))).toMatch(
    /path: must have 1 to .*limit: must be 1 to 5000/,
  );
  expect(await failure(use(view_file, ['x']))).toMatch(/must be an object/);
});

verifies('toolbox.files', 'a search with an expensive pattern yields to the event loop', async () => {
  let seed = 1;
  const letters = Array.from({ length: 900_000 }, (_, i) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return i % 1500 === 0 ? '\n' : 'abcdefgh ij'.charAt(seed % 11);
  });
  const text = letters.join('');
  const { root } = createWorkspace(Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`hard-${n}`, text])));
  const controller = new AbortController();
  const reason = new Error('enough');
  let timerCalls = 0;
  const timer = setInterval(() => {
    timerCalls += 1;
    if (timerCalls === 3) controller.abort(reason);
  }, 5);
  const search = { query: '(a|b|c|d|[e-z]| |.){1,100}[!?]', pattern: true };
  const searching = use(toolbox({ roots: [root] }).search_files, search, { abortSignal: controller.signal });
  await expect(searching).rejects.toBe(reason);
  clearInterval(timer);
  expect(timerCalls).toBeLessThan(10);
});

verifies('toolbox.files', 'an aborted search rejects with the reason of the abort', async () => {
  const { root } = createWorkspace(project);
  const reason = new Error('cancelled');
  const { search_files } = toolbox({ roots: [root] });
  await expect(use(search_files, { query: 'a' }, { abortSignal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});
