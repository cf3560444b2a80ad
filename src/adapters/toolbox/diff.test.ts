/** Diffs are complete, minimal and bounded in time and size. */
import { array, assert, constantFrom, property, string } from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { unifiedDiff } from './diff.js';

/** Applies a unified diff. Throws if it does not fit. */
function applyDiff(before: string, diff: string): string {
  const lines = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const result: string[] = [];
  let index = 0;
  const [, , ...body] = diff.split('\n');
  for (let i = 0; i < body.length; i++) {
    const line = body[i] ?? '';
    const hunk = /^@@ -(\d+),(\d+) \+\d+,\d+ @@$/.exec(line);
    if (hunk !== null) {
      const start = Number(hunk[1]) - (hunk[2] === '0' ? 0 : 1);
      while (index < start) result.push(lines[index++] ?? '');
      continue;
    }
    if (line.startsWith('\\')) continue;
    const text = line.slice(1) + (body[i + 1]?.startsWith('\\ No newline') ? '' : '\n');
    if (line[0] !== '+' && lines[index] !== text) throw new Error(`line ${index + 1} is not ${JSON.stringify(text)}`);
    if (line[0] !== '+') index += 1;
    if (line[0] !== '-') result.push(text);
  }
  return [...result, ...lines.slice(index)].join('');
}

verifies('toolbox.edit', 'applying a diff gives the new text', async () => {
  const line = constantFrom('a\n', 'b\n', 'c\n', 'a\r\n', '\n', '-x\n', '+y\n', '@@ -1,1 +1,1 @@\n', '\\ z\n');
  const text = array(line, { maxLength: 30 }).map((lines) => lines.join(''));
  let changeCount = 0;
  const isComplete = property(text, text, string(), (one, two, end) => {
    const [before, after] = [one + end.replaceAll('\n', ''), two];
    const diff = unifiedDiff('f', before, after);
    if (before === after) return diff === '(no change)';
    changeCount += 1;
    return applyDiff(before, diff) === after;
  });
  await assert(isComplete, { numRuns: 3000, seed: 7 });
  expect(changeCount).toBeGreaterThan(2000);
});

verifies('toolbox.edit', 'a diff shows unchanged lines as context only', () => {
  const before = Array.from({ length: 40 }, (_, i) => `line ${i + 1}\n`);
  const after = before.with(9, 'ten\n').toSpliced(30, 1).concat('last');
  expect(unifiedDiff('src/f', before.join(''), after.join(''))).toBe(
    [
      '--- src/f',
      '+++ src/f',
      '@@ -7,7 +7,7 @@',
      ' line 7',
      ' line 8',
      ' line 9',
      '-line 10',
      '+ten',
      ' line 11',
      ' line 12',
      ' line 13',
      '@@ -28,7 +28,6 @@',
      ' line 28',
      ' line 29',
      ' line 30',
      '-line 31',
      ' line 32',
      ' line 33',
      ' line 34',
      '@@ -38,3 +37,4 @@',
      ' line 38',
      ' line 39',
      ' line 40',
      '+last',
      '\\ No newline at end of file',
    ].join('\n'),
  );
  expect(unifiedDiff('n', undefined, 'a\nb\n')).toBe('--- (new file)\n+++ n\n@@ -0,0 +1,2 @@\n+a\n+b');
});

verifies('toolbox.edit', 'the diff of a large change is bounded in time and size', () => {
  const start = performance.now();
  const one = Array.from({ length: 9000 }, (_, i) => `${(i * 7919) % 9001}\n`).join('');
  const two = Array.from({ length: 9000 }, (_, i) => `${(i * 104729) % 9001}\n`).join('');
  const shuffled = unifiedDiff('f', one, two);
  const huge = unifiedDiff('f', 'x\n'.repeat(2_000_000), 'y\n'.repeat(2_000_000));
  const long = unifiedDiff('f', 'x'.repeat(4_000_000), 'y'.repeat(4_000_000));
  const alike = unifiedDiff('f', `${'x'.repeat(4000)}\n`.repeat(1000), `y\n${`${'x'.repeat(4000)}\n`.repeat(999)}y`);
  const late = (end: string) => Array.from({ length: 200 }, (_, i) => `${'x'.repeat(20_000)}${i}${end}\n`).join('');
  const similar = unifiedDiff('f', late('a'), late('b'));
  const file = Array.from({ length: 400_000 }, (_, i) => `${i}\n`);
  const small = unifiedDiff('f', file.join(''), file.with(300_000, 'changed\n').join(''));
  expect(performance.now() - start).toBeLessThan(10_000);
  for (const diff of [shuffled, huge, long, alike, similar]) expect(diff.length).toBeLessThan(26_000);
  expect(huge).toBe('--- f\n+++ f\n… too long to show: 2000000 lines are replaced by 2000000 others.');
  expect(shuffled).toMatch(/… too long to show completely: \d+ more lines are removed and \d+ more are added\.$/);
  expect(small).toContain('@@ -299998,7 +299998,7 @@\n 299997\n 299998\n 299999\n-300000\n+changed\n 300001');
  expect(long).toContain('… (3999600 more characters)');
});
