/**
 * Branches side by side. Each has a scope of its own, so its keys do not depend on who is faster. `all` waits for every
 * branch and reports by place; `race` records who ended first, so a replay takes the same winner and never runs the rest.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import type { NewEntry } from '../journal/new-entry.js';
import { cloneJson } from '../json/value.js';
import type { Branch } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Lifetime } from './lifetime.js';
import { depthError, type RunContext, type StepContext } from './run-context.js';
import type { KernelScope } from './scope.js';

/** How many branches start before the ones that are short get a chance to end. */
const START_BATCH_SIZE = 32;

/** Branches that are ready to start: each has a body, and a scope of its own within a lifetime. */
export interface Branches<O> {
  readonly bodies: readonly Branch<O>[];
  openScope(index: number, life: Lifetime): KernelScope;
}

type OnBranchSettled<O> = (
  index: number,
  value: O | undefined,
  failure: { readonly error: unknown } | undefined,
) => void;

async function openGroup(run: RunContext, site: StepContext, opening: NewEntry): Promise<boolean> {
  if (site.depth >= run.deps.maxDepth) throw depthError(site.key, run.deps.maxDepth);
  return run.openStep(site, opening);
}

/** Starts one branch, and tells when it ends; one that lost before it began ends at once. */
function runBranch<O>(branches: Branches<O>, index: number, life: Lifetime, settled: OnBranchSettled<O>): void {
  const scope = branches.openScope(index, life);
  const failed = (error: unknown): void => settled(index, undefined, { error });
  const ended = (value: O): void => {
    let over: Promise<never> | undefined;
    try {
      over = scope.close();
    } catch (error) {
      failed(error);
      return;
    }
    if (over === undefined) settled(index, value, undefined);
  };
  startBranch(branches, index, scope).then(ended, failed);
}

function startBranch<O>({ bodies }: Branches<O>, index: number, scope: KernelScope): Promise<O> {
  try {
    if (scope.lifetime.hasLostRace) scope.lifetime.throwIfEnded();
    return Promise.resolve(bodies[index]?.(scope) as O);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Starts in small lots with a breath between them, so that short branches end before the last ones exist at all. */
async function startBranches<O>(
  run: RunContext,
  branches: Branches<O>,
  lifeOf: (index: number) => Lifetime,
  settled: OnBranchSettled<O>,
): Promise<void> {
  for (let index = 0; index < branches.bodies.length; index++) {
    runBranch(branches, index, lifeOf(index), settled);
    if (index % START_BATCH_SIZE === START_BATCH_SIZE - 1)
      await (run.writer.isBacklogged ? run.writer.waitForBacklog() : undefined);
  }
}

export async function joinAll<O>(run: RunContext, site: StepContext, branches: Branches<O>): Promise<O[]> {
  const count = branches.bodies.length;
  await openGroup(run, site, { seq: 0, at: 0, type: 'group.opened', key: site.key, name: 'all', value: count });
  if (count === 0) return [];
  const results: O[] = [];
  let left = count;
  let first = { index: count, error: undefined as unknown };
  run.attempt.fork(count);
  await new Promise<void>((resolve) => {
    const settled: OnBranchSettled<O> = (index, value, failure) => {
      if (failure === undefined) results[index] = value as O;
      // guard: first-error-by-place
      else if (index < first.index) first = { index, error: failure.error };
      left -= 1;
      if (left === 0) resolve();
      else run.attempt.removeRunnable();
    };
    void startBranches(run, branches, () => site.lifetime, settled);
  });
  if (first.index < count) throw first.error;
  return results;
}

export async function raceFirst<O>(run: RunContext, site: StepContext, branches: Branches<O>): Promise<unknown> {
  const { key, lifetime, recorded } = site;
  const count = branches.bodies.length;
  if (count === 0) throw new LoopError('VALUE_INVALID', `The race at ${key} has no branches.`, { key });
  const opening: NewEntry = { seq: 0, at: 0, type: 'group.opened', key, name: 'race', value: count };
  if ((await openGroup(run, site, opening)) && /* guard: recorded-winner-returned */ recorded?.closeEntry !== undefined)
    return run.recordedOutcome(recorded.closeEntry);
  if (recorded === undefined) run.applyToState(opening);
  const lives = Array.from({ length: count }, () => new Lifetime(lifetime));
  run.attempt.fork(count);
  return new Promise((resolve, reject) => {
    let decided = false;
    let left = count;
    const settled: OnBranchSettled<O> = (winner, value, failure) => {
      if (run.isOver) return;
      left -= 1;
      // Once all of it is cancelled nobody wins, and it ends when the last branch has ended.
      if (decided || (lifetime.reason !== undefined && left > 0)) return run.attempt.removeRunnable();
      decided = true;
      const end = lifetime.reason ?? recordWinner(run, site, winner, value, failure && toLoopError(failure.error));
      const lost = new LoopError('CANCELLED', `Branch ${winner} of the race at ${key} ended first.`);
      for (const [index, branch] of lives.entries()) {
        if (index === winner) branch.detach();
        // guard: losing-branch-ended
        else branch.end(lost, true);
      }
      run.redeliverSignals();
      if (end instanceof LoopError) reject(end);
      else resolve(cloneJson(end.value));
    };
    void startBranches(run, branches, (index) => lives[index] ?? lifetime, settled);
  });
}

/** Writes who won; a winner whose value cannot be recorded has failed. */
function recordWinner(
  run: RunContext,
  site: StepContext,
  winner: number,
  value: unknown,
  failure?: LoopError,
): Entry | LoopError {
  const won: NewEntry = { seq: 0, at: 0, type: 'race.won', key: site.key, winnerIndex: winner };
  try {
    const entry = run.push(
      site.lifetime,
      failure === undefined ? { ...won, value: value as Json } : { ...won, error: failure.toErrorRecord() },
    );
    run.applyToState(entry);
    return entry.error === undefined ? entry : LoopError.fromErrorRecord(entry.error, failure);
  } catch (thrown) {
    if (run.isOver) return toLoopError(thrown);
    return recordWinner(run, site, winner, undefined, toLoopError(thrown));
  }
}
