// The turns of a campaign: random plans of steps, and the loops that run a plan.

import { defineLoop } from 'rondo';
import { effectValue } from './sink.mjs';

/** @typedef {'once' | 'keyed' | 'idempotent' | 'pure' | 'sleep' | 'ask'} Op */
/** @typedef {{ readonly op: Op, readonly step: string, readonly ms: number }} Step */
/** @typedef {{ readonly turn: string, readonly parallel: boolean, readonly steps: readonly Step[] }} Plan */

/**
 * The loops, and the kinds of steps from which each plan is chosen at random.
 * @type {Readonly<Record<string, readonly Op[]>>}
 */
const STEP_KINDS = {
  'once-steps': ['once'],
  'keyed-steps': ['keyed'],
  'idempotent-steps': ['idempotent'],
  'pure-steps': ['pure', 'pure', 'once'],
  'sleep-steps': ['sleep', 'once'],
  'approval-steps': ['ask', 'once'],
  'mixed-steps': ['once', 'keyed', 'idempotent', 'pure', 'sleep', 'ask'],
  'parallel-steps': ['once', 'keyed', 'idempotent'],
};

/** A schema without restrictions. */
const anySchema = /** @type {const} */ ({});

/**
 * Returns a random loop and plan.
 * @param {() => number} random @param {string} turn @returns {{ loop: string, plan: Plan }}
 */
export function randomPlan(random, turn) {
  const names = Object.keys(STEP_KINDS);
  const loop = names[Math.floor(random() * names.length)] ?? 'once-steps';
  const ops = STEP_KINDS[loop] ?? ['once'];
  const steps = Array.from({ length: 1 + Math.floor(random() * 6) }, (_, i) => {
    const op = ops[i === 0 ? 0 : Math.floor(random() * ops.length)] ?? 'once';
    return { op, step: `${i}-${op}`, ms: Math.floor(random() * 200) };
  });
  return { loop, plan: { turn, parallel: loop === 'parallel-steps', steps } };
}

/** Returns the output of a plan whose steps are all done. @param {Plan} plan */
export function outputOf({ turn, steps }) {
  return steps.map(({ op, step }) => (op === 'sleep' ? step : effectValue({ turn, step })));
}

/** True if a step performs an effect in the sink. @param {Step} step */
export const isExternal = ({ op }) => op !== 'pure' && op !== 'sleep';

/** Returns the loops of all kinds. @param {import('./sink-client.mjs').Perform} perform */
export function loopsOf(perform) {
  const ask = defineLoop({
    id: 'ask',
    input: anySchema,
    output: anySchema,
    policy: { approval: 'ask' },
    safety: 'once',
    tool: (input, { idempotencyKey: key }) => {
      const { turn, step } = /** @type {import('./sink.mjs').StepId} */ (input);
      return perform({ turn, step, safety: 'once', key });
    },
  });
  /**
   * Runs one step.
   * @param {Step} item @param {string} turn @param {import('rondo').Scope} scope @returns {Promise<unknown>}
   */
  const runStep = async ({ op, step, ms }, turn, scope) => {
    const stepId = { turn, step };
    if (op === 'ask') return scope.call(ask, stepId);
    if (op === 'sleep') return scope.sleep(ms).then(() => step);
    return scope.effect({
      kind: 'campaign',
      name: step,
      input: stepId,
      safety: op,
      perform: (_, { idempotencyKey: key }) =>
        op === 'pure' ? effectValue(stepId) : perform({ ...stepId, safety: op, key }),
    });
  };
  /** @param {unknown} input @param {import('rondo').Scope} scope @returns {Promise<unknown>} */
  const body = async (input, scope) => {
    const { turn, parallel, steps } = /** @type {Plan} */ (input);
    if (parallel)
      return scope.all(steps.map((item) => (/** @type {typeof scope} */ branch) => runStep(item, turn, branch)));
    const results = [];
    for (const item of steps) results.push(await runStep(item, turn, scope));
    return results;
  };
  const plans = Object.keys(STEP_KINDS).map((id) => defineLoop({ id, input: anySchema, output: anySchema, run: body }));
  return [ask, ...plans];
}
