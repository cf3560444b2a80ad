// `npm run proof [-- PART...] [--seed N]`: everything that `npm test` and `.ci/run` leave out or shorten, at full length.
// Each step is recorded when it passes; a later run on the same commit, without changes and with the same seed, skips
// it. Each part has at most 30 minutes. A run in which every part passed writes docs/proof.md.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { formatMinutes } from './format-minutes.mjs';
import { newerNode } from './newer-node.mjs';
import { proofParts } from './proof-parts.mjs';
import { proofPage, proofTable } from './proof-table.mjs';

/** @typedef {import('./proof-parts.mjs').Step} Step */
/** @typedef {import('./proof-table.mjs').StepResult} StepResult */

const PART_MS = 30 * 60_000;
const root = fileURLToPath(new URL('..', import.meta.url));
const folder = join(root, '.ci', 'proof');
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');

const { values, positionals } = parseArgs({
  options: { seed: { type: 'string', default: '1' } },
  allowPositionals: true,
});
const parts = proofParts(Number(values.seed));
const unknown = positionals.filter((name) => !Object.hasOwn(parts, name));
if (unknown.length > 0 || !/^\d{1,9}$/.test(values.seed)) {
  console.error(`Usage: npm run proof -- [PART...] [--seed N]\nParts: ${Object.keys(parts).join(', ')}`);
  process.exit(64);
}

/** @param {...string} args */
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
const commit = git('rev-parse', 'HEAD');
const hasChanges = git('status', '--porcelain', '--', '.', ':!docs/proof.md') !== '';
const stateFile = join(folder, `${commit}-${values.seed}.json`);

/** Returns the steps that passed on this commit, by name. @returns {Record<string, StepResult>} */
function readState() {
  if (hasChanges) return {};
  try {
    return JSON.parse(readFileSync(stateFile, 'utf8'));
  } catch {
    return {};
  }
}

/** The name of a step: its command line. @param {Step} step */
const nameOf = ({ runner, command, newer }) =>
  [...(newer ? ['newer:'] : []), ...(runner === 'vitest' ? ['vitest run'] : ['node']), ...command].join(' ');

/** The executable, the arguments and the environment of a step. @param {Step} step */
function processOf({ runner, command, newer }) {
  const { node, env } = newer ? newerNode() : { node: process.execPath, env: process.env };
  const args = runner === 'vitest' ? [vitest, 'run', ...command] : command;
  return { node, args, env: { ...env, RONDO_PROOF: '1' } };
}

/** Runs a step, whose output goes to a log. @param {Step} step @param {string} log @param {number} limitMs */
async function runStep(step, log, limitMs) {
  const { node, args, env } = processOf(step);
  const output = openSync(log, 'w');
  const began = Date.now();
  const child = spawn(node, args, { cwd: root, env, stdio: ['ignore', output, output], detached: true });
  const stop = () => child.pid !== undefined && process.kill(-child.pid, 'SIGKILL');
  const timer = setTimeout(stop, limitMs);
  process.once('SIGINT', stop);
  const code = await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  process.off('SIGINT', stop);
  closeSync(output);
  return { ok: code === 0, ms: Date.now() - began, result: resultIn(readFileSync(log, 'utf8')) };
}

/** The result in the output of a step: the tests that vitest counted, or the last line. @param {string} text */
function resultIn(text) {
  const lines = stripVTControlCharacters(text).trimEnd().split('\n');
  const tests = lines.find((line) => /^\s*Tests\s+\d/.test(line));
  return (tests ?? lines.at(-1) ?? '').trim().replace(/^Tests\s+/, '');
}

const state = readState();
mkdirSync(folder, { recursive: true });
execFileSync('npm', ['run', '--silent', 'build'], { cwd: root, stdio: 'inherit' });
console.log(`Commit ${commit.slice(0, 10)}${hasChanges ? ' with changes' : ''}, seed ${values.seed}. Logs: .ci/proof`);

const selected = positionals.length > 0 ? positionals : Object.keys(parts);
/** @type {{ part: string, name: string, result: StepResult }[]} */
const rows = [];
for (const part of selected) {
  let leftMs = PART_MS;
  for (const [index, step] of (parts[part]?.steps ?? []).entries()) {
    const name = nameOf(step);
    const known = state[name];
    const result = known ?? (await runStep(step, join(folder, `${part}-${index + 1}.log`), leftMs));
    leftMs -= result.ms;
    if (result.ok && !hasChanges) {
      state[name] = result;
      writeFileSync(stateFile, JSON.stringify(state, null, 2));
    }
    rows.push({ part, name, result });
    const verdict = result.ok ? 'passed' : `FAILED, see .ci/proof/${part}-${index + 1}.log`;
    console.log(`${part}: ${name}: ${verdict} after ${formatMinutes(result.ms)}${known ? ' in an earlier run' : ''}`);
  }
}

const hasPassed = rows.every(({ result }) => result.ok);
const totalMs = rows.reduce((sum, { result }) => sum + result.ms, 0);
console.log(
  `\n${proofTable(rows)}\n\n${hasPassed ? 'Passed' : 'FAILED'} in ${formatMinutes(totalMs)}, seed ${values.seed}.`,
);
if (hasPassed && positionals.length === 0 && !hasChanges) {
  const facts = { commit, seed: values.seed, totalMs, cores: availableParallelism(), node: process.version };
  writeFileSync(join(root, 'docs', 'proof.md'), proofPage(rows, facts));
  console.log('docs/proof.md has the table.');
}
process.exitCode = hasPassed ? 0 : 1;
