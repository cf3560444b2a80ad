/**
 * Checks the shape of a plan: the members of its steps and states, and that the names they refer to exist. Texts, paths
 * and conditions are checked when the plan is compiled.
 */
import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { checkBackendRef } from './bodies.js';
import { checkLoopId, checkVersion } from './loop-identity.js';
import { mappingShape } from './mapping-shape.js';
import {
  anyObject,
  anyText,
  anyValue,
  appendPointer,
  checkThat,
  type DefinitionCheck,
  type DefinitionIssues,
  didYouMean,
  eitherOf,
  integerBetween,
  nonBlankText,
  nonEmptyListOf,
  numberBetween,
  objectOf,
  oneOf,
  quoteText,
  textMatching,
  withSchema,
} from './shape.js';

const MAX_STEPS = 10_000;
const MAX_DELAY_MS = 365 * 86_400_000;
const NO_UPPER_BOUND = Number.MAX_SAFE_INTEGER;
const delay = integerBetween(0, MAX_DELAY_MS);

/** The names that a plan gives to values itself. */
const RESERVED_NAMES = ['input', 'result', 'item', 'index', 'iteration', 'context', 'steps', '__proto__'];

const checkCapture = withSchema(
  () => ({ type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]*$', not: { enum: RESERVED_NAMES } }),
  (value, path, issues) => {
    if (typeof value !== 'string' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(value))
      issues.add(path, 'must be a name: a letter or "_", then letters, digits or "_"');
    else if (RESERVED_NAMES.includes(value)) issues.add(path, `may not be ${quoteText(value)}, which is reserved`);
  },
);

const checkFallback = eitherOf(
  'skip, escalate, { value } or { loop, input }',
  oneOf(['skip', 'escalate']),
  objectOf({ optional: { value: anyValue, loop: checkLoopId, input: mappingShape } }),
);

const checkRetry = objectOf({
  required: { strategy: oneOf(['fixed', 'exponential', 'immediate', 'none']) },
  optional: { max_attempts: integerBetween(1, 1000), delay_ms: delay, max_delay_ms: delay, fallback: checkFallback },
});

const checkOnError = eitherOf(
  'fail, skip, { goto } or { value }',
  oneOf(['fail', 'skip']),
  objectOf({ optional: { goto: nonBlankText, value: anyValue } }),
);

const strategies = {
  context: objectOf({ required: { strategy: oneOf(['flat', 'task_list', 'task_tree', 'none']) } }),
  cache: objectOf({
    required: { strategy: oneOf(['ephemeral', 'in_memory', 'persistent', 'none']) },
    optional: { preview_length: integerBetween(1, NO_UPPER_BOUND) },
  }),
  retry: checkRetry,
};

const checkLlm = objectOf({
  required: { strategy: oneOf(['simple', 'none']) },
  optional: {
    provider: nonBlankText,
    model: nonBlankText,
    system_prompt: anyText,
    thinking: checkThat('true or false', { type: 'boolean' }, (value) => typeof value === 'boolean'),
    max_actions: integerBetween(1, 1000),
    parallel: checkThat('true or false', { type: 'boolean' }, (value) => typeof value === 'boolean'),
  },
});

const base = { name: nonBlankText, condition: nonBlankText, capture: checkCapture, on_error: checkOnError };
const callBase = { ...base, retry: checkRetry, timeout_ms: integerBetween(1, MAX_DELAY_MS) };
const FOR_EACH_REASON =
  'is not a key: use plugin = "for-each" with source = "LOOP" or items = "$.PATH", or type = "each"';

/** The JSON Schema of a step refers to itself. */
const stepReference = (): JsonObject => ({ $ref: '#/$defs/planStep' });
const checkStep: DefinitionCheck = withSchema(stepReference, (value, path, issues) =>
  checkStepShape(value, path, issues),
);
const stepList = nonEmptyListOf(checkStep, MAX_STEPS);

const duration = checkThat(
  'milliseconds, or a text such as "90s"',
  { type: ['integer', 'string'] },
  (value) => Number.isSafeInteger(value) || (typeof value === 'string' && value.trim() !== ''),
);
const path = textMatching('a path that starts with $', /^\$/);
const anySchema = checkThat(
  'a JSON Schema',
  { type: ['object', 'boolean'] },
  (value) => typeof value === 'boolean' || isObject(value),
);

/** Returns a check with a further condition on an object; `reason` is the issue if it does not hold. */
function andThat(check: DefinitionCheck, reason: string, holds: (value: JsonObject) => boolean): DefinitionCheck {
  return withSchema(check.schema, (value, at, issues) => {
    check(value, at, issues);
    if (isObject(value) && !holds(value)) issues.add(at, reason);
  });
}

const count = (value: JsonObject, names: readonly string[]): number =>
  names.filter((name) => Object.hasOwn(value, name)).length;

/** True if something can end a repetition. */
function isBounded({ until, while: condition, max }: JsonObject): boolean {
  const ends = until !== undefined && until !== 'false';
  return max !== undefined || ends || (condition !== undefined && condition !== 'true');
}

/** The table of each type of step. */
const tables: { readonly [type: string]: DefinitionCheck } = {
  sequence: objectOf({ required: { steps: stepList } }),
  repeat: andThat(
    objectOf({
      required: { steps: stepList },
      optional: { until: nonBlankText, while: nonBlankText, max: integerBetween(1, NO_UPPER_BOUND) },
    }),
    'is unbounded: nothing ends it; add max, until or while',
    isBounded,
  ),
  branch: objectOf({
    required: {
      cases: nonEmptyListOf(objectOf({ required: { condition: nonBlankText, steps: stepList } }), MAX_STEPS),
    },
    optional: { else: stepList },
  }),
  each: objectOf({
    required: { items: path, steps: stepList },
    optional: { collect: checkThat('true or false', { type: 'boolean' }, (value) => typeof value === 'boolean') },
  }),
  fanout: andThat(
    objectOf({
      optional: {
        items: path,
        steps: stepList,
        branches: nonEmptyListOf(objectOf({ required: { steps: stepList }, optional: { name: nonBlankText } }), 1000),
        limit: integerBetween(1, 1000),
        join: eitherOf(
          'all, any or { quorum }',
          oneOf(['all', 'any']),
          objectOf({ required: { quorum: integerBetween(1, 100_000) } }),
        ),
        gates: nonEmptyListOf(
          objectOf({
            required: { path },
            optional: {
              threshold: numberBetween(-NO_UPPER_BOUND, NO_UPPER_BOUND),
              conflict: checkThat('true', { const: true }, (value) => value === true),
            },
          }),
          10,
        ),
      },
    }),
    'needs either items and steps, or branches',
    (value) =>
      value.branches === undefined ? count(value, ['items', 'steps']) === 2 : count(value, ['items', 'steps']) === 0,
  ),
  scope: objectOf({ required: { steps: stepList } }),
  wait: andThat(
    objectOf({
      optional: { for: duration, until: nonBlankText, signal: nonBlankText, timeout: duration, schema: anySchema },
    }),
    'needs exactly one of for, until and signal',
    (value) => count(value, ['for', 'until', 'signal']) === 1,
  ),
};

const refusedOnSteps = { for_each: FOR_EACH_REASON, steps: 'needs a type, such as type = "sequence", and its table' };

const callShapes: { readonly [kind: string]: DefinitionCheck } = {
  action: objectOf({ required: { action: nonBlankText }, optional: callBase, refused: refusedOnSteps }),
  loop: objectOf({
    required: { loop: checkLoopId },
    optional: { ...callBase, version: checkVersion, input: mappingShape },
    refused: refusedOnSteps,
  }),
  prompt: objectOf({
    required: { prompt: nonBlankText },
    optional: { ...callBase, system: anyText, schema: anySchema },
    refused: refusedOnSteps,
  }),
  workflow: objectOf({
    required: { workflow: nonBlankText },
    optional: { ...callBase, input: mappingShape },
    refused: refusedOnSteps,
  }),
};

/** The parameters of the built-in plugins. Any other plugin is a loop, which checks its input itself. */
const pluginShapes: { readonly [plugin: string]: readonly string[] } = {
  'for-each': ['source', 'items', 'action', 'loop', 'version', 'input', 'prompt', 'system', 'schema', 'workflow'],
  fanout: ['source', 'items', 'limit', 'action', 'loop', 'version', 'input', 'prompt', 'system', 'schema', 'workflow'],
  condition: ['test'],
  capture: ['value'],
  transform: ['value', 'path', 'format'],
  'llm-decide': ['prompt', 'system'],
};

const typedShape = (type: string): DefinitionCheck =>
  objectOf({
    required: { type: oneOf([type]), [type]: tables[type] as DefinitionCheck },
    optional: { ...base, ...(type === 'scope' && strategies) },
    refused: {
      ...refusedOnSteps,
      retry: 'is for steps that are calls; put it on the steps inside, or on a scope',
      timeout_ms: 'is for steps that are calls; put it on the steps inside',
    },
  });
const typedShapes = new Map(Object.keys(tables).map((type) => [type, typedShape(type)]));

const KINDS = ['action', 'loop', 'prompt', 'workflow'];

/** Returns the JSON Schema of a step. */
export function planStepSchema(): JsonObject {
  const calls = Object.values(callShapes).map((shape) => shape.schema());
  const typed = [...typedShapes.values()].map((shape) => shape.schema());
  return { anyOf: [...calls, { type: 'object', required: ['plugin'] }, ...typed] };
}

function checkStepShape(value: Json, at: string, issues: DefinitionIssues): void {
  if (!isObject(value)) return issues.add(at, 'must be a table: a step');
  const found = stepKindsOf(value);
  const [kind] = found;
  if (kind === undefined || found.length > 1) return issues.add(at, kindReason(found));
  if (kind === 'plugin') checkPlugin(value, at, issues, {});
  else if (kind === 'type') checkTyped(value, at, issues);
  else callShapes[kind]?.(value, at, issues);
}

/** Returns the members that say what a step does. The parameters of a plugin do not count. */
function stepKindsOf(value: JsonObject): readonly string[] {
  if (Object.hasOwn(value, 'plugin')) return Object.hasOwn(value, 'type') ? ['plugin', 'type'] : ['plugin'];
  return [...KINDS, 'type'].filter((kind) => Object.hasOwn(value, kind));
}

function kindReason(found: readonly string[]): string {
  const kinds = 'action, loop, prompt, plugin, workflow and type';
  return found.length === 0
    ? `needs one of ${kinds}`
    : `has ${found.join(' and ')}; a step has exactly one of ${kinds}`;
}

function checkTyped(value: JsonObject, at: string, issues: DefinitionIssues): void {
  const { type } = value;
  const shape = typeof type === 'string' ? typedShapes.get(type) : undefined;
  if (shape !== undefined) shape(value, at, issues);
  else oneOf([...typedShapes.keys()])(type ?? null, appendPointer(at, 'type'), issues);
}

function checkPlugin(
  value: JsonObject,
  at: string,
  issues: DefinitionIssues,
  more: { readonly [name: string]: DefinitionCheck },
): void {
  nonBlankText(value.plugin ?? null, appendPointer(at, 'plugin'), issues);
  const parameters = typeof value.plugin === 'string' ? pluginShapes[value.plugin] : undefined;
  const known: { readonly [name: string]: DefinitionCheck } = { plugin: nonBlankText, ...callBase, ...more };
  const names = [...Object.keys(known), ...(parameters ?? [])];
  for (const [key, member] of Object.entries(value)) {
    const check = known[key];
    if (check !== undefined) check(member, appendPointer(at, key), issues);
    else if (parameters !== undefined && !parameters.includes(key))
      issues.add(
        appendPointer(at, key),
        `is not a known key; known here: ${names.join(', ')}${didYouMean(nearestWord(key, names))}`,
      );
  }
}

const checkTransition = objectOf({ required: { next: nonBlankText }, optional: { condition: nonBlankText } });
const stateMembers = {
  name: nonBlankText,
  transitions: nonEmptyListOf(checkTransition, 1000),
  on_entry: nonBlankText,
  on_exit: nonBlankText,
  terminal: checkThat('true or false', { type: 'boolean' }, (value) => typeof value === 'boolean'),
};
const parallelMembers = { parallel: nonEmptyListOf(nonBlankText, 100), join: nonBlankText };
const stateShape = (kind: string | undefined): DefinitionCheck =>
  objectOf({
    required: { name: nonBlankText, ...(kind !== undefined && kindMembers[kind]?.required) },
    optional: {
      ...callBase,
      ...stateMembers,
      ...(kind === undefined ? parallelMembers : kindMembers[kind]?.optional),
    },
    refused: {
      ...refusedOnSteps,
      type: 'is for steps; a state has an action of its own',
      condition: 'is for steps; put it on the transitions to the state',
      ...(kind !== undefined && { parallel: `cannot be combined with ${kind}`, join: 'is for states with "parallel"' }),
    },
  });
const kindMembers: {
  readonly [kind: string]: {
    readonly required: { readonly [name: string]: DefinitionCheck };
    readonly optional: { readonly [name: string]: DefinitionCheck };
  };
} = {
  action: { required: { action: nonBlankText }, optional: {} },
  loop: { required: { loop: checkLoopId }, optional: { version: checkVersion, input: mappingShape } },
  prompt: { required: { prompt: nonBlankText }, optional: { system: anyText, schema: anySchema } },
  workflow: { required: { workflow: nonBlankText }, optional: { input: mappingShape } },
};

function checkState(value: Json, at: string, issues: DefinitionIssues): void {
  if (!isObject(value)) return issues.add(at, 'must be a table: a state');
  if (Object.hasOwn(value, 'plugin')) {
    if (!Object.hasOwn(value, 'name')) issues.add(appendPointer(at, 'name'), 'is required');
    return checkPlugin(value, at, issues, stateMembers);
  }
  const found = KINDS.filter((kind) => Object.hasOwn(value, kind));
  if (found.length > 1) return issues.add(at, `has ${found.join(' and ')}; a state has at most one action`);
  stateShape(found[0])(value, at, issues);
}

const stateSchema = (): JsonObject => ({ type: 'object', required: ['name'] });

function checkStates(states: readonly Json[], at: string, issues: DefinitionIssues): void {
  const names = new Set<string>();
  for (const [index, state] of states.entries()) {
    const name = isObject(state) ? state.name : undefined;
    if (typeof name !== 'string') continue;
    if (names.has(name))
      issues.add(`${appendPointer(at, index)}/name`, `is ${quoteText(name)}, which an earlier state has`);
    names.add(name);
  }
  for (const [index, state] of states.entries()) {
    const statePath = appendPointer(at, index);
    checkState(state, statePath, issues);
    if (isObject(state)) checkStateReferences(state, statePath, names, issues);
  }
}

function checkStateReferences(
  state: JsonObject,
  at: string,
  names: ReadonlySet<string>,
  issues: DefinitionIssues,
): void {
  const known = [...names, 'done', 'failed'];
  const check = (name: Json | undefined, where: string): void => {
    if (typeof name !== 'string' || known.includes(name)) return;
    issues.add(
      where,
      `is ${quoteText(name)}, which is no state; there are ${[...new Set(known)].join(', ')}${didYouMean(nearestWord(name, known))}`,
    );
  };
  const { transitions, parallel, join } = state;
  if (Array.isArray(transitions))
    for (const [index, transition] of transitions.entries())
      if (isObject(transition)) check(transition.next as Json | undefined, `${at}/transitions/${index}/next`);
  if (Array.isArray(parallel))
    for (const [index, name] of parallel.entries()) check(name as Json, `${at}/parallel/${index}`);
  check(join, `${at}/join`);
}

/** Adds an issue for each step name that is used twice in one list, because `goto` must be unambiguous. */
function checkStepNames(steps: readonly Json[], at: string, issues: DefinitionIssues): void {
  const names = new Set<string>();
  for (const [index, step] of steps.entries()) {
    const name = isObject(step) ? step.name : undefined;
    if (typeof name !== 'string') continue;
    if (names.has(name))
      issues.add(`${appendPointer(at, index)}/name`, `is ${quoteText(name)}, which an earlier step has`);
    names.add(name);
  }
}

const checkPlanShape = objectOf({
  optional: {
    steps: stepList,
    states: withSchema(
      () => ({ type: 'array', items: stateSchema(), minItems: 1 }),
      (value, at, issues) => {
        if (!Array.isArray(value) || value.length === 0) return issues.add(at, 'must be a list of at least one state');
        checkStates(value, at, issues);
      },
    ),
    initial_state: nonBlankText,
    ...strategies,
    llm: checkLlm,
    limits: objectOf({
      optional: {
        max_transitions: integerBetween(1, NO_UPPER_BOUND),
        max_turns: integerBetween(1, NO_UPPER_BOUND),
        max_identical_actions: integerBetween(1, NO_UPPER_BOUND),
      },
    }),
    verbs: anyObject,
    backend: checkBackendRef,
  },
});

/** Checks a plan. */
export const checkPlan: DefinitionCheck = withSchema(checkPlanShape.schema, (value, at, issues) => {
  checkPlanShape(value, at, issues);
  if (!isObject(value)) return;
  const { steps, states, llm, initial_state: initial } = value;
  if (steps !== undefined && states !== undefined) issues.add(at, 'has steps and states; a plan has one of them');
  if (steps === undefined && states === undefined && llm === undefined)
    issues.add(at, 'needs steps, states, or llm for a plan whose steps a model chooses');
  if (Array.isArray(steps)) checkStepNames(steps, appendPointer(at, 'steps'), issues);
  if (initial === undefined) return;
  const names = Array.isArray(states) ? states.flatMap((state) => (isObject(state) ? [state.name ?? null] : [])) : [];
  if (!names.includes(initial))
    issues.add(
      appendPointer(at, 'initial_state'),
      `is ${quoteText(String(initial))}, which is no state; there are ${names.join(', ')}`,
    );
});
