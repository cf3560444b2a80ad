// `npm run bench`: measures the figures of docs/benchmarks.md and exits with 1 if one misses its target. Each section runs
// in a new process, so that none profits from the compiled code or the heap of another. `node --expose-gc
// dist-bench/bench/run.js hosted 10000` measures one section, hosted loops, with the full number of turns. `npm run bench
// -- guard [BASE]` compares this build with another one, see guard.ts.

import { spawnSync } from 'node:child_process';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { benchAgents } from './agents.js';
import { benchCalls } from './calls.js';
import { benchDurable, benchHeap } from './durable.js';
import { benchGoverned } from './governed.js';
import { benchGuard } from './guard.js';
import { benchHosted } from './hosted.js';
import { benchPlans } from './plans.js';
import { benchReplay } from './replay.js';
import { benchShared } from './shared.js';
import { benchStart } from './start.js';
import { failures } from './table.js';
import { benchTurns } from './turns.js';

const sections: { readonly [name: string]: () => Promise<void> } = {
  calls: benchCalls,
  turns: benchTurns,
  plans: benchPlans,
  agents: benchAgents,
  replay: benchReplay,
  durable: () => benchDurable(5),
  shared: () => benchShared(5),
  governed: benchGoverned,
  hosted: () => benchHosted(Number(process.argv[3] ?? 1000)),
  heap: benchHeap,
  start: async () => benchStart(7),
};

function runAll(): number {
  const load = loadavg()[0]?.toFixed(1);
  console.log(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model || process.arch}), load ${load}`);
  const program = fileURLToPath(import.meta.url);
  const missed = Object.keys(sections).filter(
    (name) => spawnSync(process.execPath, ['--expose-gc', program, name], { stdio: 'inherit' }).status !== 0,
  );
  console.log(missed.length === 0 ? '\nAll figures met.' : `\nFigures missed in: ${missed.join(', ')}.`);
  return missed.length === 0 ? 0 : 1;
}

const [name] = process.argv.slice(2);
if (name === undefined) process.exitCode = runAll();
else if (name === 'guard') process.exitCode = await benchGuard(process.argv[3]);
else if (sections[name] === undefined)
  throw new TypeError(`There is no section "${name}": ${[...Object.keys(sections), 'guard'].join(', ')}.`);
else {
  await sections[name]();
  process.exitCode = failures() === 0 ? 0 : 1;
}
