// Builds what child processes of the tests use, runs one tier of the tests, and prints how long it took: `npm test`
// without an argument, or `process`. Further arguments go to vitest.

import { spawnSync } from 'node:child_process';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { formatMinutes } from './format-minutes.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The vitest projects of each tier. @type {Readonly<Record<string, readonly string[]>>} */
const TIERS = { test: ['in-process', 'twins', 'isolated', 'alone'], process: ['process'] };

const [first = '', ...rest] = process.argv.slice(2);
const [tier, args] = Object.hasOwn(TIERS, first) ? [first, rest] : ['test', process.argv.slice(2)];

/** @param {string} command @param {readonly string[]} commandArgs */
const run = (command, commandArgs) => spawnSync(command, commandArgs, { cwd: root, stdio: 'inherit' }).status ?? 1;

const start = performance.now();
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url));
const projects = (TIERS[tier] ?? []).flatMap((name) => ['--project', name]);
const status = run('npm', ['run', '--silent', 'build']) || run(process.execPath, [vitest, 'run', ...projects, ...args]);
console.log(`npm ${tier === 'test' ? 'test' : `run test:${tier}`} took ${formatMinutes(performance.now() - start)}.`);
process.exitCode = status;
