// Random turns under random budgets, on hosts and processes that crash, restart, resume and fork. No limit is exceeded,
// and counts are reached exactly. See README.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runWithHosts } from './budgets/host-run.mjs';
import { runWithProcesses } from './budgets/process-run.mjs';

const MAX_VIOLATIONS = 30;
const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    processes: { type: 'string' },
    lanes: { type: 'string', default: '2' },
    verbose: { type: 'boolean', default: false },
  },
});
const [runs = 0, firstSeed = 0, lanes = 0] = [values.runs, values.seed, values.lanes].map(Number);
const processRuns = Math.min(runs, Number(values.processes ?? Math.ceil(runs / 6)));
const folder = mkdtempSync(join(tmpdir(), 'rondo-budgets-'));
/** @type {string[]} */
const violations = [];
const totals = {
  ...{ runs: 0, processRuns: 0, turns: 0, effects: 0, modelCalls: 0, stops: 0, exact: 0, lost: 0 },
  ...{ crashes: 0, processes: 0, kills: 0, interrupted: 0, forks: 0, raised: 0 },
};
/** The number of stops by reason. @type {Record<string, number>} */
const reasons = {};

/**
 * Performs one run and adds its results to the totals.
 * @param {number} seed @param {(seed: number, folder: string) => Promise<any>} perform
 */
async function addRun(seed, perform) {
  try {
    const { problems, reasons: stops, ...counts } = await perform(seed, folder);
    totals.runs += 1;
    totals.stops += stops.length;
    for (const reason of stops) reasons[reason] = (reasons[reason] ?? 0) + 1;
    for (const name of /** @type {(keyof typeof totals)[]} */ (Object.keys(counts))) totals[name] += counts[name];
    violations.push(...problems.map((/** @type {string} */ text) => `seed ${seed}: ${text}`));
    if (values.verbose) console.log(JSON.stringify({ seed, ...counts, stops }));
  } catch (thrown) {
    violations.push(`seed ${seed}: ${thrown instanceof Error ? thrown.stack : thrown}`);
  }
  if (totals.runs % 100 === 0) console.log(JSON.stringify(totals));
}

/** The seeds of `count` runs, until there are too many violations. @param {number} first @param {number} count */
function* seeds(first, count) {
  for (let seed = first; seed < first + count && violations.length < MAX_VIOLATIONS; seed++) yield seed;
}

console.log(`seed ${firstSeed}`);
const ofProcesses = seeds(firstSeed, processRuns);
const lane = async () => {
  for (const seed of ofProcesses) await addRun(seed, runWithProcesses);
};
await Promise.all(Array.from({ length: lanes }, lane));
totals.processRuns = totals.runs;
// One after the other, so that a run depends on nothing but its seed.
for (const seed of seeds(firstSeed + processRuns, runs - processRuns)) await addRun(seed, runWithHosts);
if (violations.length === 0) rmSync(folder, { recursive: true, force: true });
else console.log(`The stores of the runs with violations: ${folder}`);
for (const text of violations) console.log(text);
console.log(JSON.stringify({ seed: firstSeed, ...totals, reasons, violations }));
process.exit(violations.length > 0 ? 1 : 0);
