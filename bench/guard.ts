// `npm run bench -- guard [BASE]`: compares the speed of this build with that of another built checkout, and returns exit
// code 1 if a case is more than 10 % slower. In a round, a process of each build runs short passes in alternating order, so
// that other work of the machine affects both alike, and the best pass counts. A case that looks slower gets more rounds.

import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join, resolve } from 'node:path';
import { type Build, buildFault, CaseFailure, MeasuredProcess, ownCheckout, prepareBuild } from './guard-builds.js';
import { type GuardCaseName, guardCases } from './guard-cases.js';
import { median, ratio } from './measure.js';

const ROUNDS = 7;
/** The additional rounds of a case that looks slower. */
const MORE_ROUNDS = 14;
/** How long the passes of a case take in a round, with both builds. */
const ROUND_MS = 2_000;
/** No round of all cases starts later than this, and no additional round later than `LIMIT_MS`. */
const FIRST_LIMIT_MS = 210_000;
const LIMIT_MS = 290_000;
const MAX_RATIO = 1.1;
const USAGE_ERROR = 64;

/** The microseconds per step of a case, one number per round. */
export interface CaseTimes {
  readonly current: readonly number[];
  /** Empty if there is no other build. */
  readonly base: readonly number[];
}

type GuardTimes = Record<GuardCaseName, { readonly current: number[]; readonly base: number[] }>;

/** True if the median over the rounds of the ratio within a round is more than 10 % above 1. */
export function isSlower({ current, base }: CaseTimes): boolean {
  return ratio(current, base) > MAX_RATIO;
}

function duration(times: readonly number[]): string {
  const us = median(times);
  return us < 1000 ? `${us.toFixed(2)} us` : `${(us / 1000).toFixed(1)} ms`;
}

/** Returns the lines of the table: the medians of each case and, if there is another build, the ratio and the verdict. */
export function guardTable(times: Readonly<Record<string, CaseTimes>>): string[] {
  const line = (name: string, cells: readonly string[]): string =>
    `  ${name.padEnd(52)}${cells.map((cell) => cell.padStart(12)).join('')}`;
  const hasBase = Object.values(times).some(({ base }) => base.length > 0);
  const rows = Object.entries(times).map(([name, { current, base }]) => {
    if (!hasBase) return line(name, [duration(current)]);
    const cells = [duration(current), duration(base), `${ratio(current, base).toFixed(3)} x`];
    return line(name, cells) + (isSlower({ current, base }) ? '  SLOWER' : '');
  });
  return [line('case', hasBase ? ['current', 'base', 'ratio'] : ['current']), ...rows];
}

/** Runs one round of a case. Returns the best pass of each build: other work can only make a pass slower. */
async function measureRound(name: GuardCaseName, builds: readonly Build[]): Promise<number[]> {
  const processes = builds.map((build) => new MeasuredProcess(build, name));
  try {
    await Promise.all(processes.map((each) => each.load()));
    const best = builds.map(() => Number.POSITIVE_INFINITY);
    const order = [...processes.keys()];
    for (const end = Date.now() + ROUND_MS; Date.now() < end; order.reverse())
      for (const index of order)
        best[index] = Math.min(best[index] ?? Number.NaN, (await processes[index]?.pass()) ?? Number.NaN);
    return best;
  } finally {
    await Promise.all(processes.map((each) => each.end()));
  }
}

/** Runs rounds of cases until the limit, a time, and adds their figures. */
async function measureRounds(
  rounds: number,
  names: readonly GuardCaseName[],
  builds: readonly Build[],
  times: GuardTimes,
  limit: number,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      if (Date.now() > limit) return;
      const [current, base] = await measureRound(name, builds);
      times[name].current.push(current ?? Number.NaN);
      if (base !== undefined) times[name].base.push(base);
    }
  }
}

async function measureBuilds(builds: readonly Build[], start: number): Promise<GuardTimes> {
  const names = Object.keys(guardCases) as GuardCaseName[];
  const times = Object.fromEntries(names.map((name) => [name, { current: [], base: [] }])) as unknown as GuardTimes;
  await measureRounds(ROUNDS, names, builds, times, start + FIRST_LIMIT_MS);
  const slower = names.filter((name) => isSlower(times[name]));
  for (const name of slower)
    console.log(`  "${name}" looks slower (${ratio(times[name].current, times[name].base).toFixed(3)} x): more rounds`);
  await measureRounds(MORE_ROUNDS, slower, builds, times, start + LIMIT_MS);
  return times;
}

function report(times: GuardTimes, seconds: number): number {
  console.log(guardTable(times).join('\n'));
  const slower = (Object.keys(times) as GuardCaseName[]).filter((name) => isSlower(times[name]));
  if (slower.length > 0) console.log(`\nMore than 10 % slower: ${slower.join(', ')}.`);
  console.log(`\n${seconds.toFixed(0)} s, load ${loadavg()[0]?.toFixed(1)}`);
  return slower.length === 0 ? 0 : 1;
}

/** Measures this build and compares it with another built checkout, if there is one. Returns the exit code. */
export async function benchGuard(base: string | undefined): Promise<number> {
  const start = Date.now();
  const checkouts = base === undefined ? [ownCheckout] : [ownCheckout, resolve(base)];
  const fault = checkouts.map(buildFault).find((text) => text !== undefined);
  if (fault !== undefined) {
    console.error(fault);
    return USAGE_ERROR;
  }
  const folder = mkdtempSync(join(ownCheckout, 'dist-bench/guard-'));
  try {
    const builds = checkouts.map((checkout, index) =>
      prepareBuild(checkout, join(folder, index === 0 ? 'current' : 'base')),
    );
    const times = await measureBuilds(builds, start);
    return report(times, (Date.now() - start) / 1000);
  } catch (failure) {
    if (!(failure instanceof CaseFailure) || failure.build.checkout === ownCheckout) throw failure;
    console.error(failure.message);
    return USAGE_ERROR;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
