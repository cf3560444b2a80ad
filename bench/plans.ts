// Plans: the cost of the driver per step, long repetitions in time and memory, and loading workflow files.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadDefinitions } from '../src/adapters/files/index.js';
import { Registry } from '../src/host-entry.js';
import { defineLoop, type Loop } from '../src/index.js';
import { linkLoop } from '../src/loops/link.js';
import { documentParser } from '../src/loops/plan/workflow-document.js';
import type { Json } from '../src/protocol/index.js';
import { flagsOf, planCases } from './cases.js';
import { eachPlan, itemsInput, repeatPlan } from './loops.js';
import { measure, median, ratio } from './measure.js';
import { atMost, note, section } from './table.js';
import * as work from './work.js';

const ROUNDS = 5;
const FILES = 1_000;

/** Measures plans. */
export async function benchPlans(): Promise<void> {
  section('Plans, each turn on a new host and store, all entries kept for its trace');
  const times = measure(Object.keys(planCases) as (keyof typeof planCases)[], ROUNDS, flagsOf);
  const code = times['code of 1,000, trace kept'];
  const overCode = (of: readonly number[]): number =>
    median(of.map((time, round) => time - (code[round] ?? Number.NaN)));
  const composite = times['composite of 1,000, trace kept'];
  const plan = times['plan of 1,000, trace kept'];
  const repeat = times['repeat of 1,000, trace kept'];
  atMost('a step of a composite over a call in code', overCode(composite), 0.5, 'us');
  atMost('a loop step of a plan over a call in code', overCode(plan), 0.5, 'us');
  const longRepeat = ratio(times['repeat of 10,000, trace kept'], repeat);
  atMost('10,000 repetitions against 1,000, per step', longRepeat, 1.3, 'x');
  const longEach = ratio(times['each of 10,000, trace kept'], times['each of 1,000, trace kept']);
  atMost('10,000 items against 1,000, per step', longEach, 1.3, 'x');
  note(`a call in code ${median(code).toFixed(2)} us, a step of a plan ${median(plan).toFixed(2)} us`);
  note(`a repetition ${median(repeat).toFixed(2)} us, over a call in code ${overCode(repeat).toFixed(2)} us`);
  await benchHeapOfPlans();
  await benchFiles();
}

/** Measures the heap while the last step of a plan runs, in a store that keeps nothing. */
async function heapAtEnd(plan: Json, input: Json, steps: number): Promise<number> {
  let live = 0;
  const probe = defineLoop({
    id: 'probe',
    input: true,
    output: true,
    run: async (value) => {
      if ((value as work.Count).n < steps - 1) return value;
      globalThis.gc?.();
      live = process.memoryUsage().heapUsed;
      return value;
    },
  });
  const registry = new Registry();
  registry.add(probe);
  const { loop } = linkLoop(registry, registry.add(plan));
  await work.runOnce(loop as Loop<never, never>, input as never, work.discardingStore());
  return live;
}

async function benchHeapOfPlans(): Promise<void> {
  const growthOf = async (plan: (steps: number) => Json): Promise<number> => {
    const heap = (steps: number): Promise<number> => heapAtEnd(plan(steps), itemsInput(steps), steps);
    await heap(10_000);
    const growth: number[] = [];
    for (let before = await heap(1_000); growth.length < 5; ) {
      const long = await heap(10_000);
      const after = await heap(1_000);
      growth.push((long - (before + after) / 2) / 1024);
      before = after;
    }
    return median(growth);
  };
  // The input has 9,000 more items.
  const repeated = await growthOf((steps) => repeatPlan(steps, 'probe'));
  atMost('heap in repetition 10,000 against 1,000', repeated, 256, 'KiB more');
  const items = await growthOf(() => eachPlan('probe'));
  atMost('heap at item 10,000 against 1,000', items, 256, 'KiB more');
}

/** Measures how long it takes to load and register workflow files. */
async function benchFiles(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-bench-'));
  for (let i = 0; i < FILES; i++) writeFileSync(join(directory, `workflow-${i}.toml`), workflowText(i));
  const elapsed: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.hrtime.bigint();
    const { definitions, badFiles } = await loadDefinitions(directory, {
      trusted: () => false,
      parser: documentParser,
    });
    const registry = new Registry();
    for (const found of definitions) if ('definition' in found) registry.add(found.definition, found.origin);
    elapsed.push(Number(process.hrtime.bigint() - start) / 1e6);
    if (badFiles.length > 0 || registry.list().length !== FILES) throw new Error(JSON.stringify(badFiles.slice(0, 3)));
  }
  rmSync(directory, { recursive: true });
  atMost('loading 1,000 workflow files', median(elapsed), 2000, 'ms');
}

function workflowText(index: number): string {
  return `[workflow]
name = "workflow-${index}"

[[states]]
name = "edit"
action = "edit {file} 'change ${index}'"
on_entry = "view {file}"
transitions = [{ condition = "has_errors", next = "failed" }, { condition = "result.ok", next = "check" }]

[[states]]
name = "check"
action = "analyze {file}"
retry = { strategy = "exponential", max_attempts = 3 }
transitions = [{ condition = "contains:error", next = "edit" }, { next = "done" }]
`;
}
