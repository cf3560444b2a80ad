/** Crashes random plans: the finished turn equals that of a run without a crash. RONDO_SEED=n starts at another plan. */
import { expect } from 'vitest';
import { PlanWorld, runCrashed, runIntact } from '../../../spec/support/plan-world.js';
import { type RandomPlan, randomPlan, shrinkPlan } from '../../../spec/support/random-plans.js';
import { repetitions } from '../../../spec/support/repetitions.js';
import { verifies } from '../../../spec/verifies.js';
import { seededRandom } from '../../adapters/system/seeded-ids.js';
import type { CrashPoint } from '../../testing/crashing-store.js';

const PLANS = repetitions(2000, 40);
const FIRST_SEED = Number(process.env.RONDO_SEED ?? 1);
/** A plan with more appends crashes at this many of them, chosen at random. */
const CRASHES_PER_PLAN = 6;

function crashPointsOf(appendCount: number, seed: number): readonly CrashPoint[] {
  const all = Array.from({ length: appendCount }, (_, index) =>
    (['before', 'after'] as const).map((when) => ({ appendNumber: index + 1, when })),
  ).flat();
  if (all.length <= CRASHES_PER_PLAN) return all;
  const random = seededRandom(seed);
  return Array.from({ length: CRASHES_PER_PLAN }, () => all[Math.floor(random() * all.length)] as CrashPoint);
}

/** Returns how a crashed run differs from one without a crash; undefined if it does not. */
async function differenceOf(
  plan: RandomPlan,
  seed: number,
  statuses?: Map<string, number>,
): Promise<string | undefined> {
  const intact = await runIntact(plan);
  statuses?.set(intact.status, (statuses.get(intact.status) ?? 0) + 1);
  for (const point of crashPointsOf(intact.appendCount, seed)) {
    const crashed = await runCrashed(plan, point);
    const found = crashed.differenceFrom(intact);
    if (found !== undefined) return `crash ${point.when} append ${point.appendNumber}: ${found}`;
  }
  return undefined;
}

const failsValidly = async (plan: RandomPlan, seed: number): Promise<boolean> =>
  PlanWorld.isValid(plan) && (await differenceOf(plan, seed).catch((error: unknown) => String(error))) !== undefined;

/** Throws an error with the smallest plan that fails. */
async function assertSameCourse(seed: number, statuses: Map<string, number>): Promise<void> {
  const plan = randomPlan(seed);
  const difference = await differenceOf(plan, seed, statuses).catch((error: unknown) => String(error));
  if (difference === undefined) return;
  const smallest = await shrinkPlan(plan, (smaller) => failsValidly(smaller, seed));
  const smallestDifference = await differenceOf(smallest, seed).catch((error: unknown) => String(error));
  throw new Error(`RONDO_SEED=${seed}: ${smallestDifference}\nin the plan ${JSON.stringify(smallest, null, 1)}`);
}

verifies(
  'plan.driver',
  `a crash at any append changes neither result, effects nor trace of a plan (${PLANS} plans)`,
  async () => {
    const statuses = new Map<string, number>();
    for (let seed = FIRST_SEED; seed < FIRST_SEED + PLANS; seed++) await assertSameCourse(seed, statuses);
    expect(statuses.get('ok') ?? 0, 'too few plans succeed').toBeGreaterThanOrEqual(Math.floor(PLANS / 4));
  },
  580_000,
);

verifies('plan.driver', 'a plan that fails is reported in its smallest form', async () => {
  const isFailing = (plan: RandomPlan): boolean => JSON.stringify(plan).includes('"sequence"');
  let seed = 1;
  while (!isFailing(randomPlan(seed))) seed += 1;
  const smallest = await shrinkPlan(randomPlan(seed), isFailing);
  expect(JSON.stringify(smallest).length).toBeLessThan(200);
  expect(isFailing(smallest)).toBe(true);
});
