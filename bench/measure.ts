/**
 * Measuring. Every case runs once in every round, in a process of its own, so that a noisy minute hits all cases alike
 * and none is measured with what another taught the compiler or the collector. The median over the rounds counts.
 * Nothing is collected by force: between two passes no session is alive, V8 then drops the hidden classes of all its
 * objects and with them the compiled code, and every pass would be measured half warm.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Case {
  /** How many steps one run takes. */
  readonly steps: number;
  run(): Promise<unknown>;
}

const STEPS = 100_000;

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

/** In the case's own process: one pass to warm up, then the best of three, which is what neighbours disturb least. */
export async function measureHere(one: Case): Promise<number> {
  await microsecondsPerStep(one);
  return Math.min(await microsecondsPerStep(one), await microsecondsPerStep(one), await microsecondsPerStep(one));
}

const program = fileURLToPath(new URL('case.js', import.meta.url));

/** Microseconds per step of each case, one number a round. */
export function measure<Name extends string>(
  names: readonly Name[],
  rounds: number,
  flagsOf: (name: Name) => readonly string[],
): Record<Name, number[]> {
  const seen = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const printed = execFileSync(process.execPath, [...flagsOf(name), program, name], {
        encoding: 'utf8',
      });
      seen[name].push(Number(printed));
    }
  }
  return seen;
}

/** The median over rounds of one case's time in units of another's, both taken in the same round. */
export function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((time, round) => time / (to[round] ?? Number.NaN)));
}
