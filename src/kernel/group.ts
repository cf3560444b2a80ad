/**
 * Groups of concurrent branches. Each branch has its own scope, so keys do not depend on timing. `all` waits for every
 * branch and throws the first error by position. `race` records the branch that ends first: a replay returns the
 * recorded result and runs no branch.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import { Lifetime } from '../base/lifetime.js';
import { depthError } from '../base/step-errors.js';
import type { NewEntry } from '../journal/new-entry.js';
import { continuedBranches } from '../journal/replay-tree.js';
import { cloneJson } from '../json/value.js';
import type { Branch } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Run, Step } from './run.js';
import type { KernelScope } from './scope.js';

/** How many branches start together before those that are short may end. */
const START_BATCH_SIZE = 32;

/** The branches of a group before they start. */
export interface Branches<O> {
  readonly bodies: readonly Branch<O>[];
  /** Creates the scope of a branch. Call it once for each branch. */
  openScope(index: number, lifetime: Lifetime): KernelScope;
}

type BranchFailure = { readonly error: unknown };

type OnBranchSettled<O> = (index: number, value: O | undefined, failure: BranchFailure | undefined) => void;

/** Writes or compares the opening entry of a group. Returns true if the end of the group is recorded. */
async function openGroup(step: Step, opening: NewEntry): Promise<boolean> {
  const { maxDepth } = step.run.deps;
  if (step.depth >= maxDepth) throw depthError(step.key, maxDepth);
  return step.run.openStep(step, opening);
}

/**
 * Runs one branch and calls `onSettled` at its end. A branch that lost the race before it started fails at once. After a
 * replay mismatch it is not called: the attempt has ended.
 */
export async function runBranch<O>(
  body: Branch<O> | undefined,
  scope: KernelScope,
  index: number,
  onSettled: OnBranchSettled<O>,
): Promise<void> {
  let value: O | undefined;
  let failure: BranchFailure | undefined;
  try {
    if (scope.lifetime.hasLostRace) scope.lifetime.throwIfEnded();
    value = await body?.(scope);
    if (scope.close() !== undefined) return;
  } catch (error) {
    failure = { error };
  }
  onSettled(index, value, failure);
}

/** Starts branches in small batches and yields between them, so that short branches end before the last ones start. */
async function startInBatches(run: Run, count: number, start: (index: number) => void): Promise<void> {
  for (let index = 0; index < count; index++) {
    start(index);
    if (index % START_BATCH_SIZE === START_BATCH_SIZE - 1)
      await (run.writer.isBacklogged ? run.writer.waitForBacklog() : undefined);
  }
}

/**
 * Runs all branches and returns their results by position. If some fail, throws the first error by position once all
 * have ended.
 */
export async function joinAll<O>(step: Step, branches: Branches<O>): Promise<O[]> {
  const { run, key, lifetime } = step;
  const count = branches.bodies.length;
  await openGroup(step, { seq: 0, at: 0, type: 'group.opened', key, name: 'all', value: count });
  if (count === 0) return [];
  const results: O[] = [];
  let runningCount = count;
  let firstFailure = { index: count, error: undefined as unknown };
  run.attempt.fork(count);
  await new Promise<void>((resolve) => {
    const onSettled: OnBranchSettled<O> = (index, value, failure) => {
      if (failure === undefined) results[index] = value as O;
      // guard: first-error-by-place
      else if (index < firstFailure.index) firstFailure = { index, error: failure.error };
      runningCount -= 1;
      if (runningCount === 0) resolve();
      else run.attempt.removeRunnable();
    };
    void startInBatches(run, count, (index) => {
      void runBranch(branches.bodies[index], branches.openScope(index, lifetime), index, onSettled);
    });
  });
  if (firstFailure.index < count) throw firstFailure.error;
  return results;
}

/**
 * Runs branches until one ends, cancels the others, and returns the result of the winner or throws its error. Throws
 * VALUE_INVALID if there is no branch.
 */
export async function raceFirst<O>(step: Step, branches: Branches<O>): Promise<unknown> {
  const { run, key, lifetime, recorded } = step;
  const count = branches.bodies.length;
  if (count === 0) throw new LoopError('VALUE_INVALID', `The race at ${key} has no branches.`, { key });
  const opening: NewEntry = { seq: 0, at: 0, type: 'group.opened', key, name: 'race', value: count };
  if ((await openGroup(step, opening)) && /* guard: recorded-winner-returned */ recorded?.closeEntry !== undefined)
    return run.recordedOutcome(recorded.closeEntry);
  const continued = continuedBranches(recorded, count);
  if (recorded === undefined || (continued?.length ?? 0) > 1) run.deps.sessionState.apply(opening);
  const lifetimes = Array.from({ length: count }, () => new Lifetime(lifetime));
  const started = continued?.length ?? count;
  run.attempt.fork(started);
  return new Promise((resolve, reject) => {
    let isDecided = false;
    let runningCount = started;
    const onSettled: OnBranchSettled<O> = (winner, value, failure) => {
      if (run.isOver) return;
      runningCount -= 1;
      // A race that is cancelled as a whole has no winner. It ends with its last branch.
      if (isDecided || (lifetime.reason !== undefined && runningCount > 0)) return run.attempt.removeRunnable();
      isDecided = true;
      const end = lifetime.reason ?? recordWinner(step, winner, value, failure && toLoopError(failure.error));
      const lost = new LoopError('CANCELLED', `Branch ${winner} of the race at ${key} ended first.`);
      for (const [index, branch] of lifetimes.entries()) {
        if (index === winner) branch.detach();
        // guard: losing-branch-ended
        else branch.end(lost, true);
      }
      run.redeliverSignals();
      if (end instanceof LoopError) reject(end);
      else resolve(cloneJson(end.value));
    };
    void startInBatches(run, started, (place) => {
      const index = continued?.[place] ?? place;
      const scope = branches.openScope(index, lifetimes[index] ?? lifetime);
      void runBranch(branches.bodies[index], scope, index, onSettled);
    });
  });
}

/** Records the winner of a race with its value or its error. A value that cannot be recorded becomes an error. */
function recordWinner(step: Step, winnerIndex: number, value: unknown, failure?: LoopError): Entry | LoopError {
  const { run, key, lifetime } = step;
  const won: NewEntry = { seq: 0, at: 0, type: 'race.won', key, winnerIndex };
  try {
    if (failure === undefined) won.value = value as Json;
    else won.error = failure.toErrorRecord();
    const entry = run.push(lifetime, won);
    run.deps.sessionState.apply(entry);
    return entry.error === undefined ? entry : LoopError.fromErrorRecord(entry.error, failure);
  } catch (thrown) {
    if (run.isOver) return toLoopError(thrown);
    return recordWinner(step, winnerIndex, undefined, toLoopError(thrown));
  }
}
