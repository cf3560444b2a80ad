/** `edit_file` and `write_file`: unambiguous edits, atomic writes, and messages about what does not fit. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, failure, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { toolbox } from './index.js';

afterAll(cleanUp);

const code = 'function add(a, b) {\n  return a - b;\n}\n\nfunction sub(a, b) {\n  return a - b;\n}\n';

verifies('toolbox.edit', 'an edit changes the only occurrence, or all of them if asked to', async () => {
  const { root } = createWorkspace({ 'math.js': code });
  const { edit_file } = toolbox({ roots: [root] });
  const old = 'add(a, b) {\n  return a - b;';
  const edit = { path: 'math.js', old, new: 'add(a, b) {\n  return a + b;' };
  const result = await use(edit_file, edit);
  expect(result.path).toBe('math.js');
  expect(result.diff).toContain('-  return a - b;\n+  return a + b;');
  expect(readFileSync(join(root, 'math.js'), 'utf8')).toBe(code.replace('a - b', 'a + b'));
  expect(await failure(use(edit_file, { path: 'math.js', old: 'a, b', new: 'x' }))).toBe(
    'old occurs in "math.js" 2 times (lines 1, 5). Include more of the surrounding lines, or set all to true.',
  );
  await use(edit_file, { path: 'math.js', old: 'a, b', new: '$&, $1', all: true });
  expect(readFileSync(join(root, 'math.js'), 'utf8')).toContain('function sub($&, $1) {');
  expect(await failure(use(edit_file, edit))).toMatch(/^old does not occur in "math.js"\. /);
});

verifies('toolbox.edit', 'the error for an edit that does not fit states the reason', async () => {
  const { root } = createWorkspace({ 'math.js': code, twice: 'aaa' });
  writeFileSync(join(root, 'latin'), Buffer.from([0x63, 0xe9]));
  const { edit_file } = toolbox({ roots: [root] });
  expect(await failure(use(edit_file, { path: 'math.js', old: 'function sub(a, b) {\n    return', new: 'x' }))).toBe(
    'old does not occur in "math.js". It must match exactly, including whitespace. The nearest lines are:\n' +
      '3\t}\n4\t\n5\tfunction sub(a, b) {\n6\t  return a - b;\n7\t}',
  );
  expect(await failure(use(edit_file, { path: 'math.js', old: 'multiply', new: 'x' }))).toMatch(
    /No line is similar to it/,
  );
  expect(await failure(use(edit_file, { path: 'twice', old: 'aa', new: 'x' }))).toMatch(/2 times/);
  expect(await failure(use(edit_file, { path: 'twice', old: 'a', new: 'a' }))).toMatch(/^old and new are the same/);
  expect(await failure(use(edit_file, { path: 'latin', old: 'c', new: 'x' }))).toMatch(/is not UTF-8 text/);
  expect(await failure(use(edit_file, { path: 'no/such', old: 'c', new: 'x' }))).toMatch(/^"no\/such" does not exist/);
  expect(readdirSync(root).sort()).toEqual(['latin', 'math.js', 'twice']);
});

verifies('toolbox.edit', 'an edit preserves line endings and the byte order mark', async () => {
  const { root } = createWorkspace({ dos: '\ufeffone\r\ntwo\r\nthree\r\n' });
  const { edit_file } = toolbox({ roots: [root] });
  await use(edit_file, { path: 'dos', old: 'one\ntwo', new: 'eins\nzwei\ndrei' });
  expect(readFileSync(join(root, 'dos'), 'utf8')).toBe('\ufeffeins\r\nzwei\r\ndrei\r\nthree\r\n');
});

verifies('toolbox.edit', 'concurrent edits of one file are all applied', async () => {
  const { root } = createWorkspace({ list: Array.from({ length: 50 }, (_, i) => `item ${i}.\n`).join('') });
  const box = toolbox({ roots: [root] });
  const otherBox = toolbox({ roots: [root] });
  const edits = Array.from({ length: 50 }, (_, i) =>
    use((i % 2 === 0 ? box : otherBox).edit_file, { path: 'list', old: `item ${i}.`, new: `done ${i}.` }),
  );
  await Promise.all(edits);
  const text = readFileSync(join(root, 'list'), 'utf8');
  expect(text).toBe(Array.from({ length: 50 }, (_, i) => `done ${i}.\n`).join(''));
  expect(readdirSync(root)).toEqual(['list']);
});

verifies('toolbox.edit', 'a write is atomic and keeps the permissions of the file', async () => {
  const [one, two] = ['1'.repeat(300_000), '2'.repeat(300_000)];
  const { root } = createWorkspace({ script: one });
  chmodSync(join(root, 'script'), 0o750);
  const { write_file } = toolbox({ roots: [root] });
  let partialReads = 0;
  let reads = 0;
  const reader = setInterval(() => {
    const text = readFileSync(join(root, 'script'), 'utf8');
    reads += 1;
    if (text !== one && text !== two) partialReads += 1;
  }, 0);
  for (let i = 0; i < 30; i++) await use(write_file, { path: 'script', content: i % 2 === 0 ? two : one });
  clearInterval(reader);
  expect(reads).toBeGreaterThan(10);
  expect(partialReads).toBe(0);
  expect(statSync(join(root, 'script')).mode & 0o777).toBe(0o750);
  expect(readdirSync(root)).toEqual(['script']);
});

verifies('toolbox.edit', 'expect refuses to replace any other content', async () => {
  const { root } = createWorkspace({ a: 'one\n' });
  const { write_file, view_file } = toolbox({ roots: [root] });
  const { digest } = await use(view_file, { path: 'a' });
  expect(await failure(use(write_file, { path: 'a', content: 'x', expect: 'none' }))).toMatch(
    /^"a" was not written: .*digest/,
  );
  expect(await use(write_file, { path: 'a', content: 'two\n', expect: digest })).toEqual({
    path: 'a',
    diff: '--- a\n+++ a\n@@ -1,1 +1,1 @@\n-one\n+two',
  });
  expect(await failure(use(write_file, { path: 'a', content: 'x', expect: digest }))).toMatch(/does not match expect/);
  expect(await failure(use(write_file, { path: 'new/b', content: 'x', expect: digest }))).toMatch(/no such file/);
  expect(readdirSync(root)).toEqual(['a']);
  expect(await use(write_file, { path: 'new/dir/b', content: 'x', expect: 'none' })).toMatchObject({
    path: 'new/dir/b',
  });
  expect(readFileSync(join(root, 'new/dir/b'), 'utf8')).toBe('x');
});

verifies('toolbox.edit', 'a write follows a link inside of the root only, and refuses a directory', async () => {
  const { root } = createWorkspace({ 'real.txt': 'one\n' });
  mkdirSync(join(root, 'dir'));
  symlinkSync('real.txt', join(root, 'inner'));
  symlinkSync('nowhere', join(root, 'dangling'));
  const { write_file } = toolbox({ roots: [root] });
  expect(await use(write_file, { path: 'inner', content: 'two\n' })).toMatchObject({ path: 'real.txt' });
  expect(readFileSync(join(root, 'real.txt'), 'utf8')).toBe('two\n');
  expect(await failure(use(write_file, { path: 'dangling', content: 'x' }))).toMatch(/link that is not followed/);
  expect(await failure(use(write_file, { path: 'dir', content: 'x' }))).toMatch(/is a directory/);
  expect(await failure(use(write_file, { path: '.', content: 'x' }))).toMatch(/is a directory/);
  expect(readdirSync(root).sort()).toEqual(['dangling', 'dir', 'inner', 'real.txt']);
});

verifies('toolbox.edit', 'an edit takes linear time for every text', async () => {
  const { root } = createWorkspace({ hard: 'a'.repeat(4_000_000) });
  const { edit_file } = toolbox({ roots: [root] });
  const half = 'a'.repeat(100_000);
  const start = performance.now();
  expect(await failure(use(edit_file, { path: 'hard', old: `${half}b${half}`, new: 'x' }))).toMatch(/does not occur/);
  expect(await failure(use(edit_file, { path: 'hard', old: 'a', new: 'bb', all: true }))).toMatch(
    /would become longer/,
  );
  expect(performance.now() - start).toBeLessThan(5000);
});

verifies('toolbox.edit', 'a file that is too large is refused and not changed', async () => {
  const { root } = createWorkspace();
  writeFileSync(join(root, 'large'), Buffer.alloc(5 * 1024 * 1024, 'x'));
  const { edit_file, write_file } = toolbox({ roots: [root] });
  expect(await failure(use(edit_file, { path: 'large', old: 'x', new: 'y' }))).toMatch(/^"large" is larger than/);
  expect(await failure(use(write_file, { path: 'large', content: 'y' }))).toMatch(/^"large" is larger than/);
  expect(statSync(join(root, 'large')).size).toBe(5 * 1024 * 1024);
});
