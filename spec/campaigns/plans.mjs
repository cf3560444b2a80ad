// What the turns of a campaign do: a plan of steps, drawn at random, and the loops that carry it out.

import { defineLoop } from 'rondo';
import { effectValue } from './sink.mjs';

/** @typedef {'once' | 'keyed' | 'idempotent' | 'pure' | 'sleep' | 'ask'} Op */
/** @typedef {{ readonly op: Op, readonly step: string, readonly ms: number }} Step */
/** @typedef {{ readonly turn: string, readonly parallel: boolean, readonly steps: readonly Step[] }} Plan */

/** The loop of each kind, and what its steps are drawn from. @type {Readonly<Record<string, readonly Op[]>>} */
const KINDS = {
  'once-steps': ['once'],
  'keyed-steps': ['keyed'],
  'idempotent-steps': ['idempotent'],
  'pure-steps': ['pure', 'pure', 'once'],
  'sleep-steps': ['sleep', 'once'],
  'approval-steps': ['ask', 'once'],
  'mixed-steps': ['once', 'keyed', 'idempotent', 'pure', 'sleep', 'ask'],
  'parallel-steps': ['once', 'keyed', 'idempotent'],
};

const anything = /** @type {const} */ ({});

/** @param {() => number} random @param {string} turn @returns {{ loop: string, plan: Plan }} */
export function randomPlan(random, turn) {
  const names = Object.keys(KINDS);
  const loop = names[Math.floor(random() * names.length)] ?? 'once-steps';
  const ops = KINDS[loop] ?? ['once'];
  const steps = Array.from({ length: 1 + Math.floor(random() * 6) }, (_, i) => {
    const op = ops[i === 0 ? 0 : Math.floor(random() * ops.length)] ?? 'once';
    return { op, step: `${i}-${op}`, ms: Math.floor(random() * 200) };
  });
  return { loop, plan: { turn, parallel: loop === 'parallel-steps', steps } };
}

/** What a plan returns when all its steps are done. @param {Plan} plan */
export function outputOf({ turn, steps }) {
  return steps.map(({ op, step }) => (op === 'sleep' ? step : effectValue({ turn, step })));
}

/** Whether the sink sees a step. @param {Step} step */
export const isOutside = ({ op }) => op !== 'pure' && op !== 'sleep';

/** The loops of all kinds. @param {import('./sink-client.mjs').Perform} perform */
export function loopsOf(perform) {
  const ask = defineLoop({
    id: 'ask',
    input: anything,
    output: anything,
    policy: { approval: 'ask' },
    safety: 'once',
    tool: (input, { idempotencyKey: key }) => {
      const { turn, step } = /** @type {import('./sink.mjs').Place} */ (input);
      return perform({ turn, step, safety: 'once', key });
    },
  });
  /** @param {Step} item @param {string} turn @param {import('rondo').Scope} scope @returns {Promise<unknown>} */
  const carryOut = async ({ op, step, ms }, turn, scope) => {
    const place = { turn, step };
    if (op === 'ask') return scope.call(ask, place);
    if (op === 'sleep') return scope.sleep(ms).then(() => step);
    return scope.effect({
      kind: 'campaign',
      name: step,
      input: place,
      safety: op,
      perform: (_, { idempotencyKey: key }) =>
        op === 'pure' ? effectValue(place) : perform({ ...place, safety: op, key }),
    });
  };
  /** @param {unknown} input @param {import('rondo').Scope} scope @returns {Promise<unknown>} */
  const body = async (input, scope) => {
    const { turn, parallel, steps } = /** @type {Plan} */ (input);
    if (parallel) return scope.all(steps.map((item) => (/** @type {typeof scope} */ own) => carryOut(item, turn, own)));
    const done = [];
    for (const item of steps) done.push(await carryOut(item, turn, scope));
    return done;
  };
  const plans = Object.keys(KINDS).map((id) => defineLoop({ id, input: anything, output: anything, body }));
  return [ask, ...plans];
}
