// Who got how much when many hosted loops are due at once: start delays, concurrency, and the order of the turns.

import { quantile } from '../campaign-log.mjs';
import { turnIdOf } from './check-loop.mjs';

/**
 * How many turns run in each process at once, at most: from the start of an effect to its end. What a kill interrupted
 * ends with it.
 * @param {readonly { pid: number, from: number, to: number }[]} spans
 */
export function peakConcurrency(spans) {
  /** @type {Map<number, number>} */
  const peaks = new Map();
  for (const pid of new Set(spans.map((span) => span.pid))) {
    const own = spans.filter((span) => span.pid === pid);
    const steps = own
      .flatMap(({ from, to }) => [
        [from, 1],
        [to, -1],
      ])
      .sort(([a = 0, c = 0], [b = 0, d = 0]) => a - b || c - d);
    let running = 0;
    for (const [, change = 0] of steps) {
      running += change;
      peaks.set(pid, Math.max(peaks.get(pid) ?? 0, running));
    }
  }
  return Math.max(0, ...peaks.values());
}

/**
 * The fairness of a run: the delays of the first turns and of all, the largest share of a loop, and whether a loop had its
 * next turn before another one that was due earlier had its own.
 * @param {readonly import('./read-loop.mjs').StoredLoop[]} loops @param {readonly import('./hosted-host.mjs').SunkEffect[]} effects
 */
export function fairnessOf(loops, effects) {
  /** @type {Map<string, number>} */
  const startedAt = new Map();
  for (const { key, at } of effects) {
    const turnId = turnIdOf(key);
    startedAt.set(turnId, Math.min(at, startedAt.get(turnId) ?? at));
  }
  const turns = loops.flatMap(({ turns: own }) => own);
  const delayOf = (/** @type {import('./read-loop.mjs').Turn} */ { request, ends }) =>
    (startedAt.get(ends[0]?.turnId) ?? 0) - request.dueAt;
  const first = turns.filter(({ request }) => request.turn === 1);
  const delays = first.map(delayOf);
  const firstStarts = first.map(({ ends }) => startedAt.get(ends[0]?.turnId) ?? 0);
  const lastFirst = Math.max(...firstStarts);
  const secondsBefore = turns.filter(
    ({ request, ends }) => request.turn > 1 && (startedAt.get(ends[0]?.turnId) ?? 0) < lastFirst,
  ).length;
  const counts = loops.map(({ turns: own }) => own.length);
  const [most, all] = [Math.max(...counts), counts.reduce((sum, count) => sum + count, 0)];
  return {
    firstTurnDelayMs: summaryOf(delays),
    allTurnsDelayMs: summaryOf(turns.map(delayOf)),
    secondTurnsBeforeLastFirst: secondsBefore,
    turnsPerLoop: { fewest: Math.min(...counts), most },
    largestShare: Number((most / all).toFixed(5)),
    meanShare: Number((1 / counts.length).toFixed(5)),
  };
}

/** @param {readonly number[]} values */
function summaryOf(values) {
  return {
    p50: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    p99: quantile(values, 0.99),
    max: quantile(values, 1),
  };
}
