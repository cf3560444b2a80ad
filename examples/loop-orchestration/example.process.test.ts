import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, vi } from 'vitest';
import { blocksIn, commandFaults, commandsIn, withWrongPromises } from '../../spec/support/page-commands.js';
import { verifies } from '../../spec/verifies.js';
import { verifyExample, verifyTwin } from '../twin.js';

const SECTIONS = [
  'a. Bounded turns',
  'b. Context: a skill, and the receipt of the turn before',
  'c. Refusals',
  'd. An approval: pause, answer, resume',
  'e. A budget',
  'f. Pause and resume',
  'g. Signals',
  'h. Tampering',
  'i. The harness',
];

const here = fileURLToPath(new URL('.', import.meta.url));
const page = commandsIn(blocksIn(readFileSync(join(here, 'README.md'), 'utf8')));

const leftBehind = (directory: string): string[] =>
  readdirSync(directory).filter((name) => name.startsWith('rondo-loops.'));

verifies(
  'example.runs',
  'hosted loops stop at their bounds, refusals, approvals, budgets and at tampering',
  () => {
    const directory = mkdtempSync(join(tmpdir(), 'rondo-example-'));
    vi.stubEnv('TMPDIR', directory);
    onTestFinished(() => {
      vi.unstubAllEnvs();
      rmSync(directory, { recursive: true });
    });
    const { status, stdout } = verifyExample('loop-orchestration');
    expect(status, stdout).toBe(0);
    expect(stdout.split('\n').filter((line) => /^[a-z]\. /.test(line))).toEqual(SECTIONS);
    expect(commandFaults(page, [stdout])).toEqual([]);
    expect(commandFaults(withWrongPromises(page), [stdout])).toHaveLength(1);
    expect(stdout).toContain('All assertions hold.');
    expect(stdout).not.toMatch(/^ {2}✗/m);
    expect(leftBehind(directory)).toEqual([]);
  },
  600_000,
);

/** Runs a copy of the example in a directory of its own, with four turns in place of three. */
function runCopy(isInstalled: boolean): { readonly status: number | null; readonly output: string } {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-copy-')));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const copy = join(directory, 'loop-orchestration');
  cpSync(here, copy, { recursive: true });
  const file = join(copy, 'loops', 'sort-tickets.toml');
  writeFileSync(file, readFileSync(file, 'utf8').replace('maxTurns = 3', 'maxTurns = 4'));
  if (isInstalled) {
    const bin = join(directory, 'node_modules', '.bin');
    mkdirSync(bin, { recursive: true });
    const main = join(here, '../../lib/surfaces/cli/main.js');
    writeFileSync(join(bin, 'rondo'), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 });
  }
  const env = { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, HOME: directory };
  const { status, stdout, stderr } = spawnSync('sh', [join(copy, 'run.sh')], { encoding: 'utf8', env });
  return { status, output: `${stdout}${stderr}` };
}

verifies(
  'example.runs',
  'a copy of the hosted loops uses the installed package, and says which expression is false, with what it reads',
  () => {
    const { status, output } = runCopy(true);
    expect(status, output).toBe(1);
    const failure = output.slice(output.indexOf('✗')).split('\n');
    expect(output).toContain('false: it.turnList.map(({ key }) => key).join() === "sort-tickets#1');
    expect(output).toContain("{ key: 'sort-tickets#4' }");
    expect(failure.join('\n')).not.toContain('sha256:');
    expect(Math.max(...failure.map(({ length }) => length))).toBeLessThan(120);
  },
  60_000,
);

verifies('example.runs', 'a copy of the hosted loops without Rondo says how to get it', () => {
  expect(runCopy(false)).toEqual({ status: 1, output: expect.stringContaining('npm install rondo') });
});

/** One text of the definitions, another one in its place, and the assertion that then does not hold. */
const TWINS = [
  ['sort-tickets.toml', 'maxTurns = 3', 'maxTurns = 4', 'it has three turns, with the keys'],
  ['sort-tickets.toml', ', "receipt:previous"', '', 'the others see a summary of the receipt'],
  ['wide-turn.toml', 'allowedTools = []', 'allowedTools = ["refund"]', 'a turn with a wider grant'],
  ['pay-refunds.toml', 'refund = "ask"', 'refund = "always_allow"', 'the turn waits for a person'],
] as const;

for (const [file, text, replacement, assertion] of TWINS)
  verifies(
    'example.runs',
    `the script of the hosted loops detects "${replacement}" in place of "${text}" in ${file}`,
    () => {
      const { status, stdout } = verifyTwin('loop-orchestration', file, text, replacement);
      expect(status, stdout).toBe(1);
      expect(stdout).toContain(`✗ ${assertion}`);
      expect(stdout).not.toContain('All assertions hold.');
    },
    300_000,
  );
