import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { verifies } from '../spec/verifies.js';
import { type CaseTimes, guardTable, isSlower } from './guard.js';
import { buildFault, CaseFailure } from './guard-builds.js';

/** The times of a case whose base is 1, 2 and 4 us in three rounds. */
const timesAt = (ratio: number): CaseTimes => ({ current: [ratio, 2 * ratio, 4 * ratio], base: [1, 2, 4] });

verifies('house.guard-benchmark', 'a case is slower if its median ratio is more than 10 % above 1', () => {
  expect(isSlower(timesAt(1.11)), 'a regression was merged').toBe(true);
  expect(isSlower(timesAt(1.09)), 'noise was reported as a regression').toBe(false);
  expect(isSlower(timesAt(0.5)), 'an improvement was reported as a regression').toBe(false);
});

verifies('house.guard-benchmark', 'a minority of disturbed rounds does not decide', () => {
  expect(isSlower({ current: [1, 30, 1, 1, 9], base: [1, 1, 1, 1, 1] })).toBe(false);
  expect(isSlower({ current: [1.2, 1.2, 1.2, 1, 1], base: [1, 1, 1, 1, 30] }), 'a regression was merged').toBe(true);
});

verifies('house.guard-benchmark', 'the table shows the figures of each case and names the slow one', () => {
  const [head, ...rows] = guardTable({ 'ten calls': timesAt(1.02), 'rondo list': timesAt(1.2) });
  expect(head).toMatch(/case +current +base +ratio$/);
  expect(rows).toHaveLength(2);
  expect(rows[0]).toMatch(/ten calls +2\.04 us +2\.00 us +1\.020 x$/);
  expect(rows[1]).toMatch(/rondo list +2\.40 us +2\.00 us +1\.200 x {2}SLOWER$/);
});

verifies(
  'house.guard-benchmark',
  'without another build the table shows the figures alone, and nothing is slower',
  () => {
    const alone: CaseTimes = { current: [1500, 1600, 1700], base: [] };
    expect(isSlower(alone)).toBe(false);
    expect(guardTable({ 'ten calls': alone }).map((line) => line.trim().split(/ {2,}/))).toEqual([
      ['case', 'current'],
      ['ten calls', '1.6 ms'],
    ]);
  },
);

verifies('house.guard-benchmark', 'a checkout that is not built is refused with the commands that build it', () => {
  const empty = mkdtempSync(join(tmpdir(), 'rondo-base-'));
  onTestFinished(() => rmSync(empty, { recursive: true }));
  expect(buildFault(empty), 'nothing was compared').toContain('it has no lib/index.js');
  expect(buildFault(join(empty, 'missing'))).toContain('npm ci && npm run build');
});

verifies('house.guard-benchmark', 'a build without an export that a case uses is refused with its name', () => {
  const output = `file:///guard-case.js:1\nSyntaxError: The requested module '../src/host-entry.js' does not provide an export named 'Host'\n  at x`;
  const { message } = new CaseFailure({ checkout: '/base', program: '' }, 'agent round', output);
  expect(message).toBe(
    `"agent round" cannot be measured with /base: SyntaxError: The requested module 'lib/host-entry.js' does not provide an export named 'Host'`,
  );
});
