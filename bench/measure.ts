// Measures cases. Every case runs once per round in a new process, so that noise affects all cases alike and no case
// profits from the compiled code or the heap of another. The result is the median over the rounds. Garbage collection is
// never forced: between two passes no session is alive, so V8 would drop hidden classes and the code compiled for them.

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A case: a run of a known number of steps. */
export interface Case {
  /** The number of steps of one run. */
  readonly steps: number;
  run(): Promise<unknown>;
}

const STEPS = 100_000;

/** Returns the median. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

async function microsecondsPerStep({ steps, run }: Case): Promise<number> {
  const runs = Math.max(1, Math.ceil(STEPS / steps));
  const start = process.hrtime.bigint();
  for (let i = 0; i < runs; i++) await run();
  return Number(process.hrtime.bigint() - start) / 1000 / (runs * steps);
}

/** Returns the microseconds that a clock shows. */
export type Clock = () => number;

/** Shows the time that has passed. */
export const wallClock: Clock = () => performance.now() * 1000;

/** Shows the processor time of all threads of this process, which other work of the machine affects least. */
export const processorClock: Clock = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** Runs a case, at least once, for some seconds of a clock. Returns its microseconds per step. */
export async function pass({ steps, run }: Case, seconds: number, clock: Clock): Promise<number> {
  const start = clock();
  let runs = 0;
  let used = 0;
  do {
    await run();
    runs += 1;
    used = clock() - start;
  } while (used < seconds * 1_000_000);
  return used / (runs * steps);
}

/** Measures a case in this process: one pass to warm up, then the best of three, which has the least noise. */
export async function measureHere(measured: Case): Promise<number> {
  await microsecondsPerStep(measured);
  const times = [await microsecondsPerStep(measured), await microsecondsPerStep(measured)];
  return Math.min(...times, await microsecondsPerStep(measured));
}

const program = fileURLToPath(new URL('case.js', import.meta.url));

/** Measures the microseconds per step of each case, one number per round. */
export function measure<Name extends string>(
  names: readonly Name[],
  rounds: number,
  flagsOf: (name: Name) => readonly string[],
): Record<Name, number[]> {
  const times = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const printed = execFileSync(process.execPath, [...flagsOf(name), program, name], {
        encoding: 'utf8',
      });
      times[name].push(Number(printed));
    }
  }
  return times;
}

/** Returns the median over the rounds of the ratio of two cases in the same round. */
export function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((time, round) => time / (to[round] ?? Number.NaN)));
}
