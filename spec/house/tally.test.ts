// What the last lines of a CI run say, from reports and exit codes of its lanes.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import { verifies } from '../verifies.js';
import { absolute } from './tree.js';

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'tally-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Writes the report of a lane with one passed test and these files, and returns what the tally prints. */
function tally(exitCode: number, ...testResults: readonly object[]): readonly string[] {
  const report = join(directory, 'report.json');
  writeFileSync(report, JSON.stringify({ numPassedTests: 1, numPendingTests: 0, numTodoTests: 0, testResults }));
  const args = [absolute('scripts/tally.mjs'), `verify=${exitCode}=${report}`];
  const { stdout, status } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  expect(status, 'the exit code of the tally').toBe(exitCode);
  return stdout.trimEnd().split('\n');
}

const passed = { name: absolute('a.test.ts'), status: 'passed', assertionResults: [{ status: 'passed' }] };

verifies('house.tally', 'a lane that passes counts no failure', () => {
  expect(tally(0, passed)).toEqual(['1 passed, 0 failed, 0 skipped']);
});

verifies('house.tally', 'a lane that fails outside of its tests counts as one failure', () => {
  expect(tally(1, passed)).toEqual(['failed in verify: outside the tests', '1 passed, 1 failed, 0 skipped']);
});

verifies('house.tally', 'each failed test is named with its file and the start of its message', () => {
  const failureMessages = [Array.from({ length: 40 }, (_, line) => `line ${line}`).join('\n')];
  const assertionResults = [{ status: 'failed', fullName: 'it works', failureMessages }, { status: 'passed' }];
  const lines = tally(1, { ...passed, status: 'failed', assertionResults });
  expect(lines[0]).toBe('failed in verify: a.test.ts: it works');
  expect(lines[1]).toBe('    line 0');
  expect(lines).toHaveLength(14);
  expect(lines.at(-1)).toBe('1 passed, 1 failed, 0 skipped');
});

verifies('house.tally', 'a file that cannot be loaded counts as one failure, with its message', () => {
  const broken = { ...passed, status: 'failed', message: 'SyntaxError: unexpected token', assertionResults: [] };
  expect(tally(1, broken)).toEqual([
    'failed in verify: a.test.ts',
    '    SyntaxError: unexpected token',
    '1 passed, 1 failed, 0 skipped',
  ]);
});
