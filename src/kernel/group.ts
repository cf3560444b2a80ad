/**
 * Branches side by side. Each has a scope of its own, so its keys do not depend on who is faster. `all` waits for every
 * branch and reports by place; `race` records who ended first, so a replay takes the same winner and never runs the rest.
 */
import type { Json } from '../protocol/json.js';
import { LoopError, outcomeOf } from './errors.js';
import { Lifetime } from './lifetime.js';
import type { Trodden } from './past.js';
import type { Run } from './run.js';

const LOT = 32;

/** A branch that is ready to start, within a lifetime. */
export type Start<O> = (life: Lifetime) => Promise<O>;

async function openGroup(
  run: Run,
  life: Lifetime,
  key: string,
  seen: Trodden | undefined,
  name: 'all' | 'race',
  count: number,
): Promise<void> {
  if (seen !== undefined) return run.expect(key, seen, { type: 'group.opened', name, value: count });
  life.check();
  run.writer.propose({ seq: 0, at: 0, type: 'group.opened', key, name, value: count });
  if (run.writer.crowded) await run.writer.barrier();
}

export async function joinAll<O>(
  run: Run,
  life: Lifetime,
  key: string,
  seen: Trodden | undefined,
  branches: readonly Start<O>[],
): Promise<O[]> {
  await openGroup(run, life, key, seen, 'all', branches.length);
  if (branches.length === 0) return [];
  const results: O[] = new Array(branches.length);
  let left = branches.length;
  let failed = left;
  let failure: unknown;
  run.attempt.fork(left);
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      left -= 1;
      if (left === 0) resolve();
      else run.attempt.leave();
    };
    const fail = (index: number, error: unknown): void => {
      if (index < failed) {
        failed = index;
        failure = error;
      }
      settle();
    };
    const begin = (start: Start<O>, index: number): void => {
      const keep = (value: O): void => {
        results[index] = value;
        settle();
      };
      start(life).then(keep, (error: unknown) => fail(index, error));
    };
    void beginAll(branches, begin);
  });
  if (failed < branches.length) throw failure;
  return results;
}

/** Starts in small lots with a breath between them, so that short branches end before the last ones exist at all. */
async function beginAll<O>(
  branches: readonly Start<O>[],
  begin: (start: Start<O>, index: number) => void,
): Promise<void> {
  for (const [index, start] of branches.entries()) {
    begin(start, index);
    if (index % LOT === LOT - 1) await undefined;
  }
}

export async function raceFirst<O>(
  run: Run,
  life: Lifetime,
  key: string,
  seen: Trodden | undefined,
  branches: readonly Start<O>[],
): Promise<unknown> {
  if (branches.length === 0) throw new LoopError('VALUE_INVALID', `The race at ${key} has no branches.`, { key });
  await openGroup(run, life, key, seen, 'race', branches.length);
  if (seen?.close !== undefined) return run.recall(seen.close);
  const lives = branches.map(() => new Lifetime(life));
  run.attempt.fork(branches.length);
  return new Promise((resolve, reject) => {
    let decided = false;
    const decide = (winner: number, value: unknown, error: LoopError | undefined): void => {
      if (decided) return run.attempt.leave();
      decided = true;
      const outcome = life.reason ?? recordWinner(run, key, winner, value, error);
      const lost = new LoopError('CANCELLED', `Branch ${winner} of the race at ${key} ended first.`);
      for (const [index, branch] of lives.entries()) {
        if (index === winner) branch.detach();
        else branch.end(lost, true);
      }
      if (outcome === undefined) resolve(value);
      else reject(outcome);
    };
    for (const [index, start] of branches.entries()) {
      start(lives[index] ?? life).then(
        (value) => decide(index, value, undefined),
        (thrown: unknown) => decide(index, undefined, outcomeOf(thrown)),
      );
    }
  });
}

/** Writes who won; a winner whose value cannot be recorded has failed. */
function recordWinner(
  run: Run,
  key: string,
  winner: number,
  value: unknown,
  error: LoopError | undefined,
): LoopError | undefined {
  const entry = { seq: 0, at: 0, type: 'race.won', key, winner };
  try {
    if (error === undefined) {
      run.writer.push({ ...entry, value: value as Json });
      return undefined;
    }
  } catch (thrown) {
    return recordWinner(run, key, winner, undefined, outcomeOf(thrown));
  }
  run.writer.push({ ...entry, error: error.record() });
  return error;
}
