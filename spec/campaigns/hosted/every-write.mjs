// The scenario in this process, on a manual clock and a store in memory that crashes at one append. Another host, on what
// that store has, continues.

import { memoryStore } from 'rondo/host';
import { crashingStore, ManualClock, seededIds, seededRandom } from 'rondo/testing';
import { checkStore } from './check-store.mjs';
import { hostedHost } from './hosted-host.mjs';
import { Scenario, START } from './scenario.mjs';

const HOUR_MS = 3_600_000;
/** Until 05:00 in Berlin, after the last due time of that night. */
const DURATION_MS = 5 * HOUR_MS;
/** A scenario that is not done after this many steps never is. */
const MAX_STEPS = 2000;
/** The errors of a host whose store has crashed. */
const CRASH_CODES = new Set(['STORE_FAILED', 'STALE_WRITER']);

/**
 * Runs the scenario with a crash at an append, and returns what was found. Without one it only counts appends. `falsify`
 * changes what the sink received, which must be noticed.
 * @param {import('rondo/testing').CrashPoint | undefined} point
 * @param {(effects: import('./hosted-host.mjs').SunkEffect[]) => void} [falsify]
 */
export async function runWithCrash(point, falsify) {
  const inner = memoryStore();
  const clock = new ManualClock(START);
  /** @type {import('./hosted-host.mjs').SunkEffect[]} */
  const effects = [];
  /** @type {string[]} */
  const violations = [];
  const random = seededRandom(7);
  const parts = { hours: 1, signals: 3, duration: DURATION_MS, effects: () => effects, random, now: () => clock.now() };
  const scenario = new Scenario(parts);
  const store = crashingStore(inner, point);
  const perform = (/** @type {import('./hosted-host.mjs').SunkEffect} */ effect) => effects.push(effect);
  let host = hostedHost({ store, clock, ids: seededIds(1), perform });
  let hasRestarted = false;
  for (let step = 0; ; step++) {
    if (step > MAX_STEPS) {
      violations.push('the scenario does not end');
      break;
    }
    const isDone = await actAndWork(scenario, host, violations, () => store.hasCrashed && !hasRestarted);
    if (store.hasCrashed && !hasRestarted) {
      hasRestarted = true;
      host = hostedHost({ store: inner, clock, ids: seededIds(2), perform });
      continue;
    }
    if (!isDone) continue;
    const nextAt = await nextTime(inner, scenario, clock.now());
    if (nextAt > START + DURATION_MS) break;
    await clock.advanceTo(nextAt);
  }
  await clock.advanceTo(START + DURATION_MS);
  falsify?.(effects);
  const report = (/** @type {string} */ text) => violations.push(text);
  const { expected, resolved } = scenario;
  const { turns } = await checkStore({ store: inner, clock, ids: seededIds(3), effects, expected, report });
  const keys = new Set(effects.map(({ key }) => key));
  violations.push(...scenario.earlyApprovals(effects));
  const repeated = effects.length - keys.size;
  return {
    turns: turns.length,
    appends: store.appendCount,
    effects: keys.size,
    repeated,
    resolved,
    hasRestarted,
    violations,
  };
}

/**
 * Does what is due, and returns true if nothing was.
 * @param {Scenario} scenario @param {import('rondo/host').Host} host @param {string[]} violations @param {() => boolean} hasCrashed
 */
async function actAndWork(scenario, host, violations, hasCrashed) {
  let worked = 0;
  const onProblem = (/** @type {{ code: string, message: string, turnId: string }} */ { code, message, turnId }) => {
    // Effects in doubt are resolved by the operator.
    if (code === 'EFFECT_IN_DOUBT' || (CRASH_CODES.has(code) && hasCrashed())) return;
    violations.push(`${turnId} cannot continue: ${code} ${message}`);
  };
  const onResult = () => {
    worked += 1;
  };
  try {
    await scenario.act(host);
    await host.work({ once: true, onResult, onProblem });
    await scenario.act(host);
  } catch (thrown) {
    if (!hasCrashed()) throw thrown;
  }
  return worked === 0;
}

/** @param {import('rondo/host').Store} store @param {Scenario} scenario @param {number} now */
async function nextTime(store, scenario, now) {
  const due = (await store.dueTurns.nextDueAt(now)) ?? Number.POSITIVE_INFINITY;
  return Math.min(due, scenario.nextAt ?? Number.POSITIVE_INFINITY);
}
