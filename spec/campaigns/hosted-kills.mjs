// Hosted loops with schedules, signals, approvals, retries and handoffs are killed: at every write of a scenario, and at
// random as processes on one SQLite file. No turn is lost, duplicated or early. See README.md.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runWithCrash } from './hosted/every-write.mjs';
import { RandomKills } from './hosted/random-kills.mjs';

const { values } = parseArgs({
  options: {
    mode: { type: 'string', default: 'random' },
    kills: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    every: { type: 'string', default: '1' },
    control: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const MAX_VIOLATIONS = 30;
const [kills = 0, seed = 0, every = 1] = [values.kills, values.seed, values.every].map(Number);

/** Crashes at each append of the scenario, or at every n-th, before and after it is durable. */
async function crashAtEveryWrite() {
  /** @type {string[]} */
  const violations = [];
  const { appends, violations: without } = await runWithCrash(undefined);
  violations.push(...without);
  const sum = { kills: 0, appends, turns: 0, effects: 0, repeated: 0, resolved: 0 };
  for (let appendNumber = 1; appendNumber <= appends && violations.length < MAX_VIOLATIONS; appendNumber += every)
    for (const when of /** @type {const} */ (['before', 'after'])) {
      const result = await runWithCrash({ appendNumber, when });
      for (const text of result.violations) violations.push(`append ${appendNumber}, ${when}: ${text}`);
      if (!result.hasRestarted) continue;
      sum.kills += 1;
      for (const name of /** @type {const} */ (['turns', 'effects', 'repeated', 'resolved'])) sum[name] += result[name];
    }
  // The order of writes may differ a little from run to run, so the last crashes may not happen.
  if (sum.kills < (appends / every) * 1.8) violations.push(`only ${sum.kills} of the crashes happened`);
  if (sum.repeated === 0 || sum.resolved === 0) violations.push('the crashes interrupted no effect');
  return { figures: sum, violations };
}

/** What must be noticed: an effect that is lost, one that happened twice, one that is early, and one of another turn. */
const FALSIFICATIONS = [
  (/** @type {any[]} */ effects) => effects.splice(9, 1),
  (/** @type {any[]} */ effects) => effects.push({ ...effects[9], key: `${effects[9].key}/1` }),
  (/** @type {any[]} */ effects) => effects.splice(9, 1, { ...effects[9], at: effects[9].at - 1 }),
  (/** @type {any[]} */ effects) => effects.push({ ...effects[9], key: 'id:hosted:beat:99.k-1/0' }),
];

/** Runs the scenario without crashes, and falsifies what the sink received. */
async function falsifyEffects() {
  /** @type {string[]} */
  const violations = [];
  for (const falsify of FALSIFICATIONS) {
    const { violations: found } = await runWithCrash(undefined, falsify);
    violations.push(...found.slice(0, 1));
  }
  const undetected = FALSIFICATIONS.length - violations.length;
  // The campaign must fail, so one that notices too little ends well.
  return { figures: { undetected }, violations: undetected > 0 ? [] : violations };
}

async function killAtRandom() {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-hosted-'));
  const run = new RandomKills(folder, kills, seed);
  const figures = await run.run();
  const { violations } = run;
  if (violations.length === 0 && !values.keep) rmSync(folder, { recursive: true, force: true });
  else console.log(folder);
  return { figures, violations };
}

console.log(`seed ${seed}`);
const begun = Date.now();
const runs = { writes: values.control ? falsifyEffects : crashAtEveryWrite, random: killAtRandom };
const { figures, violations } = await runs[values.mode === 'writes' ? 'writes' : 'random']();
for (const text of violations.slice(0, MAX_VIOLATIONS)) console.log(text);
const summary = { seed, mode: values.mode, ...figures, ms: Date.now() - begun };
console.log(JSON.stringify({ ...summary, violations: violations.slice(0, MAX_VIOLATIONS) }));
process.exit(violations.length > 0 ? 1 : 0);
