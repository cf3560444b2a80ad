/**
 * Branches side by side. Each has a scope of its own, so its keys do not depend on who is faster. `all` waits for every
 * branch and reports by place; `race` records who ended first, so a replay takes the same winner and never runs the rest.
 */

import { LoopError, outcomeOf } from '../base/errors.js';
import type { Fresh } from '../journal/fresh.js';
import { copy } from '../json/value.js';
import type { Branch } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Lifetime } from './lifetime.js';
import { type Run, type Site, tooDeep } from './run.js';
import type { KernelScope } from './scope.js';

/** How many branches start before the ones that are short get a chance to end. */
const LOT = 32;

/** Branches that are ready to start: each has a body, and a scope of its own within a lifetime. */
export interface Branches<O> {
  readonly list: readonly Branch<O>[];
  scope(index: number, life: Lifetime): KernelScope;
}

type Settled<O> = (index: number, value: O | undefined, failure: { readonly error: unknown } | undefined) => void;

async function openGroup(run: Run, site: Site, opening: Fresh): Promise<boolean> {
  if (site.depth >= run.parts.maxDepth) throw tooDeep(site.key, run.parts.maxDepth);
  return run.enter(site, opening);
}

/** Starts one branch, and tells when it ends; one that lost before it began ends at once. */
function runBranch<O>(branches: Branches<O>, index: number, life: Lifetime, settled: Settled<O>): void {
  const scope = branches.scope(index, life);
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
  started(branches, index, scope).then(ended, failed);
}

function started<O>({ list }: Branches<O>, index: number, scope: KernelScope): Promise<O> {
  try {
    if (scope.life.lost) scope.life.check();
    return Promise.resolve(list[index]?.(scope) as O);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Starts in small lots with a breath between them, so that short branches end before the last ones exist at all. */
async function startAll<O>(
  run: Run,
  branches: Branches<O>,
  lifeOf: (index: number) => Lifetime,
  settled: Settled<O>,
): Promise<void> {
  for (let index = 0; index < branches.list.length; index++) {
    runBranch(branches, index, lifeOf(index), settled);
    if (index % LOT === LOT - 1) await (run.writer.crowded ? run.writer.eased() : undefined);
  }
}

export async function joinAll<O>(run: Run, site: Site, branches: Branches<O>): Promise<O[]> {
  const count = branches.list.length;
  await openGroup(run, site, { seq: 0, at: 0, type: 'group.opened', key: site.key, name: 'all', value: count });
  if (count === 0) return [];
  const results: O[] = [];
  let left = count;
  let first = { index: count, error: undefined as unknown };
  run.attempt.fork(count);
  await new Promise<void>((resolve) => {
    const settled: Settled<O> = (index, value, failure) => {
      if (failure === undefined) results[index] = value as O;
      // guard: first-error-by-place
      else if (index < first.index) first = { index, error: failure.error };
      left -= 1;
      if (left === 0) resolve();
      else run.attempt.leave();
    };
    void startAll(run, branches, () => site.life, settled);
  });
  if (first.index < count) throw first.error;
  return results;
}

export async function raceFirst<O>(run: Run, site: Site, branches: Branches<O>): Promise<unknown> {
  const { key, life, seen } = site;
  const count = branches.list.length;
  if (count === 0) throw new LoopError('VALUE_INVALID', `The race at ${key} has no branches.`, { key });
  const opening: Fresh = { seq: 0, at: 0, type: 'group.opened', key, name: 'race', value: count };
  if ((await openGroup(run, site, opening)) && /* guard: recorded-winner-returned */ seen?.close !== undefined)
    return run.recall(seen.close);
  if (seen === undefined) run.note(opening);
  const lives = Array.from({ length: count }, () => new Lifetime(life));
  run.attempt.fork(count);
  return new Promise((resolve, reject) => {
    let decided = false;
    let left = count;
    const settled: Settled<O> = (winner, value, failure) => {
      if (run.over) return;
      left -= 1;
      // Once all of it is cancelled nobody wins, and it ends when the last branch has ended.
      if (decided || (life.reason !== undefined && left > 0)) return run.attempt.leave();
      decided = true;
      const end = life.reason ?? recordWinner(run, site, winner, value, failure && outcomeOf(failure.error));
      const lost = new LoopError('CANCELLED', `Branch ${winner} of the race at ${key} ended first.`);
      for (const [index, branch] of lives.entries()) {
        if (index === winner) branch.detach();
        // guard: losing-branch-ended
        else branch.end(lost, true);
      }
      run.redeliver();
      if (end instanceof LoopError) reject(end);
      else resolve(copy(end.value));
    };
    void startAll(run, branches, (index) => lives[index] ?? life, settled);
  });
}

/** Writes who won; a winner whose value cannot be recorded has failed. */
function recordWinner(run: Run, site: Site, winner: number, value: unknown, failure?: LoopError): Entry | LoopError {
  const won = { seq: 0, at: 0, type: 'race.won', key: site.key, winner };
  try {
    const entry = run.push(
      site.life,
      failure === undefined ? { ...won, value: value as Json } : { ...won, error: failure.record() },
    );
    run.note(entry);
    return entry.error === undefined ? entry : LoopError.of(entry.error, failure);
  } catch (thrown) {
    if (run.over) return outcomeOf(thrown);
    return recordWinner(run, site, winner, undefined, outcomeOf(thrown));
  }
}
