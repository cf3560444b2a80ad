import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect } from 'vitest';
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

const page = commandsIn(blocksIn(readFileSync(new URL('README.md', import.meta.url), 'utf8')));

const leftBehind = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('rondo-loops.'));

verifies(
  'example.runs',
  'hosted loops stop at their bounds, refusals, approvals, budgets and at tampering',
  () => {
    const before = leftBehind();
    const { status, stdout } = verifyExample('loop-orchestration');
    expect(status, stdout).toBe(0);
    expect(stdout.split('\n').filter((line) => /^[a-z]\. /.test(line))).toEqual(SECTIONS);
    expect(commandFaults(page, [stdout])).toEqual([]);
    expect(commandFaults(withWrongPromises(page), [stdout])).toHaveLength(1);
    expect(stdout).toContain('All assertions hold.');
    expect(stdout).not.toMatch(/^ {2}✗/m);
    expect(leftBehind().filter((name) => !before.includes(name))).toEqual([]);
  },
  600_000,
);

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
