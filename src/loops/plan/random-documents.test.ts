/** Thousands of malformed plans: registering one throws DEFINITION_INVALID or nothing. RONDO_SEED repeats a run. */
import { expect } from 'vitest';
import { codeOnlyValue, define, keys, randomFrom, randomObject } from '../../../spec/fuzz/broken-definitions.js';
import { planDefinition } from '../../../spec/support/plan-fixture.js';
import { type Fields, randomPlan } from '../../../spec/support/random-plans.js';
import { repetitions } from '../../../spec/support/repetitions.js';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import { Registry } from '../registry.js';

const SEED = Number(process.env.RONDO_SEED ?? 1);
const DOCUMENTS = repetitions(20_000, 500);

const MEMBERS = [
  ...['name', 'condition', 'capture', 'on_error', 'retry', 'timeout_ms', 'action', 'loop', 'input', 'prompt', 'schema'],
  ...[
    'plugin',
    'workflow',
    'type',
    'sequence',
    'repeat',
    'branch',
    'each',
    'fanout',
    'scope',
    'wait',
    'steps',
    'states',
  ],
  ...['cases', 'else', 'items', 'collect', 'branches', 'limit', 'join', 'gates', 'path', 'threshold', 'conflict'],
  ...['for', 'until', 'while', 'max', 'signal', 'timeout', 'transitions', 'next', 'on_entry', 'on_exit', 'parallel'],
  ...['terminal', 'initial_state', 'llm', 'limits', 'verbs', 'backend', 'context', 'cache', 'fallback', 'strategy'],
  ...['source', 'format', 'test', 'value', 'goto', 'quorum', 'system', 'version', 'max_attempts', 'delay_ms'],
];
const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, '', ' ', 'x', '$.a', '$', '$[', '{', '{x', '{n}', "view 'x", 'literal:x'],
  ...[
    'python:len(x)',
    'a &&',
    'contains:',
    'file_exists:{',
    '1 +',
    'toString',
    'constructor',
    '__proto__',
    'llm-decide',
  ],
  ...['for-each', 'fanout', 'transform', 'capture', 'condition', 'sequence', 'wait', 'done', 'skip', 'escalate', '90s'],
  ...[[], {}, [[]], [{}], [null], { steps: [] }, { loop: 'x' }, { value: 1 }, { goto: 's1' }, { strategy: 'fixed' }],
];

/** Changes a plan in up to four places. */
function malformed(seed: number): { readonly [name: string]: unknown } {
  const random = randomFrom(seed * 7919 + 1);
  const plan = structuredClone(randomPlan(seed).main);
  for (let changes = 1 + random.below(4); changes > 0; changes--) {
    const target = randomObject(plan, random);
    const present = Object.keys(target);
    const added = random.next() < 0.1 ? random.pick(keys) : random.pick(MEMBERS);
    const key = present.length === 0 || random.next() < 0.4 ? added : random.pick(present);
    const kind = random.below(12);
    if (kind === 0) delete target[key];
    else if (kind === 1) define(target, key, structuredClone(randomObject(randomPlan(seed + 1).main, random)));
    else define(target, key, structuredClone(random.pick(VALUES)));
  }
  if (random.next() < 0.1) define(randomObject(plan, random), random.pick(MEMBERS), codeOnlyValue(random));
  return plan;
}

/** Returns what registering a plan throws: nothing, an error code, or something else. */
function thrownBy(plan: Fields | { readonly [name: string]: unknown }): unknown {
  try {
    new Registry().add(planDefinition('main', plan));
    return undefined;
  } catch (thrown) {
    return thrown instanceof LoopError ? thrown.code : thrown;
  }
}

verifies(
  'plan.compile',
  `a malformed plan is accepted or refused with DEFINITION_INVALID (${DOCUMENTS} plans)`,
  () => {
    let accepted = 0;
    for (let seed = SEED; seed < SEED + DOCUMENTS; seed++) {
      const thrown = thrownBy(malformed(seed));
      if (thrown === undefined) accepted += 1;
      else if (thrown !== 'DEFINITION_INVALID') throw new Error(`RONDO_SEED=${seed}`, { cause: thrown });
    }
    expect(accepted, 'too few plans are valid').toBeGreaterThan(DOCUMENTS / 50);
    expect(accepted, 'too few plans are malformed').toBeLessThan(DOCUMENTS / 2);
  },
  300_000,
);

verifies('plan.compile', 'every random plan is accepted before it is changed', () => {
  for (let seed = 1; seed <= DOCUMENTS / 20; seed++)
    expect(thrownBy(randomPlan(seed).main), `seed ${seed}`).toBe(undefined);
});

for (const [promise, step, path] of [
  ['items of a plugin that are no path', { plugin: 'for-each', items: 5, loop: 'x' }, '/items'],
  ['a limit of a plugin that is no number', { plugin: 'fanout', items: '$.input', loop: 'x', limit: 'x' }, '/limit'],
  [
    'a fallback with neither a value nor a loop',
    { loop: 'x', retry: { strategy: 'fixed', fallback: {} } },
    '/fallback',
  ],
  ['an on_error with neither goto nor a value', { loop: 'x', on_error: {} }, '/on_error'],
  ['an on_error with both goto and a value', { loop: 'x', on_error: { goto: '0', value: 1 } }, '/on_error'],
] as const) {
  verifies('plan.compile', `${promise} is refused with its path`, () => {
    expect(() => new Registry().add(planDefinition('main', { steps: [step as never] }))).toThrow(path);
  });
}

verifies('plan.compile', 'a plugin with the name of an inherited member is a loop like any other', () => {
  for (const plugin of ['constructor', 'toString']) expect(thrownBy({ steps: [{ plugin, value: 1 }] })).toBe(undefined);
});

verifies('plan.compile', 'a verb that is bound to something other than a loop is refused', () => {
  expect(thrownBy({ steps: [{ action: 'send x' }], verbs: { send: 5 } })).toBe('DEFINITION_INVALID');
});
