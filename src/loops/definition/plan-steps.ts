/** Checks the shape of the steps of a plan. Texts, paths and conditions are checked when the plan is compiled. */
import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { embeddedCodeReason } from '../plan/embedded-code.js';
import { checkLoopId, checkVersion } from './loop-identity.js';
import { mappingShape } from './mapping-shape.js';
import {
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
/** The largest integer. */
export const NO_UPPER_BOUND = Number.MAX_SAFE_INTEGER;
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
  andThat(
    objectOf({ optional: { value: anyValue, loop: checkLoopId, input: mappingShape } }),
    'needs either value or loop',
    (value) => count(value, ['value', 'loop']) === 1,
  ),
);

const checkRetry = objectOf({
  required: { strategy: oneOf(['fixed', 'exponential', 'immediate', 'none']) },
  optional: { max_attempts: integerBetween(1, 1000), delay_ms: delay, max_delay_ms: delay, fallback: checkFallback },
});

const checkOnError = eitherOf(
  'fail, skip, { goto } or { value }',
  oneOf(['fail', 'skip']),
  andThat(
    objectOf({ optional: { goto: nonBlankText, value: anyValue } }),
    'needs either goto or value',
    (value) => count(value, ['goto', 'value']) === 1,
  ),
);

/** The strategies of a plan or a scope. */
export const strategies = {
  context: objectOf({ required: { strategy: oneOf(['flat', 'task_list', 'task_tree', 'none']) } }),
  cache: objectOf({
    required: { strategy: oneOf(['ephemeral', 'in_memory', 'persistent', 'none']) },
    optional: { preview_length: integerBetween(1, NO_UPPER_BOUND) },
  }),
  retry: checkRetry,
};

/** Checks the strategy by which a model chooses the steps. */
export const checkLlm = objectOf({
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

/** Checks the form of a condition. It refuses code of other languages here, beside everything else that is wrong. */
export const checkConditionText: DefinitionCheck = withSchema(nonBlankText.schema, (value, at, issues) => {
  const codeReason = typeof value === 'string' ? embeddedCodeReason(value) : undefined;
  if (codeReason === undefined) nonBlankText(value, at, issues);
  else issues.add(at, codeReason);
});

const base = { name: nonBlankText, condition: checkConditionText, capture: checkCapture, on_error: checkOnError };
/** The members of every call. */
export const callBase = { ...base, retry: checkRetry, timeout_ms: integerBetween(1, MAX_DELAY_MS) };
const FOR_EACH_REASON =
  'is not a key: use plugin = "for-each" with source = "LOOP" or items = "$.PATH", or type = "each"';

/** The JSON Schema of a step refers to itself. */
const stepReference = (): JsonObject => ({ $ref: '#/$defs/planStep' });
const checkStep: DefinitionCheck = withSchema(stepReference, (value, path, issues) =>
  checkStepShape(value, path, issues),
);
/** Checks a list of steps. */
export const stepList = nonEmptyListOf(checkStep, MAX_STEPS);

const duration = checkThat(
  'milliseconds, or a text such as "90s"',
  { type: ['integer', 'string'] },
  (value) => Number.isSafeInteger(value) || (typeof value === 'string' && value.trim() !== ''),
);
const path = textMatching('a path that starts with $', /^\$/);
/** Checks that a value can be a JSON Schema. */
export const anySchema = checkThat(
  'a JSON Schema',
  { type: ['object', 'boolean'] },
  (value) => typeof value === 'boolean' || isObject(value),
);

/** Returns a check with a further condition on an object without other issues; `reason` is the issue if it fails. */
function andThat(check: DefinitionCheck, reason: string, holds: (value: JsonObject) => boolean): DefinitionCheck {
  return withSchema(check.schema, (value, at, issues) => {
    const { count: issueCount } = issues;
    check(value, at, issues);
    if (issues.count === issueCount && isObject(value) && !holds(value)) issues.add(at, reason);
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
      optional: { until: checkConditionText, while: checkConditionText, max: integerBetween(1, NO_UPPER_BOUND) },
    }),
    'is unbounded: nothing ends it; add max, until or while',
    isBounded,
  ),
  branch: objectOf({
    required: {
      cases: nonEmptyListOf(objectOf({ required: { condition: checkConditionText, steps: stepList } }), MAX_STEPS),
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

/** Keys that are refused with a specific reason. */
export const refusedOnSteps = {
  for_each: FOR_EACH_REASON,
  steps: 'needs a type, such as type = "sequence", and its table',
};

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

/** The parameters of the plugins that call a loop for each item of a list. */
const itemParameters = {
  source: checkLoopId,
  items: path,
  action: nonBlankText,
  loop: checkLoopId,
  version: checkVersion,
  input: mappingShape,
  prompt: nonBlankText,
  system: anyText,
  schema: anySchema,
  workflow: nonBlankText,
};

/** The parameters of the built-in plugins. Any other plugin is a loop, which checks its input itself. */
const pluginParameters: ReadonlyMap<string, { readonly [name: string]: DefinitionCheck }> = new Map(
  Object.entries({
    'for-each': itemParameters,
    fanout: { ...itemParameters, limit: integerBetween(1, 1000) },
    condition: { test: nonBlankText },
    capture: { value: anyValue },
    transform: { value: anyValue, path, format: anyText },
    'llm-decide': { prompt: nonBlankText, system: anyText },
  }),
);

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

/** The members of a step or state that say what it calls, besides `plugin`. */
export const KINDS = ['action', 'loop', 'prompt', 'workflow'];

/** Returns the JSON Schema of a step. */
export function planStepSchema(): JsonObject {
  const calls = Object.values(callShapes).map((shape) => shape.schema());
  const typed = [...typedShapes.values()].map((shape) => shape.schema());
  return { anyOf: [...calls, { type: 'object', required: ['plugin'] }, ...typed] };
}

function checkStepShape(step: Json, at: string, issues: DefinitionIssues): void {
  if (!isObject(step)) {
    issues.add(at, 'must be a table: a step');
    return;
  }
  const { for_each: iterator, ...others } = step;
  const codeReason = typeof iterator === 'string' ? embeddedCodeReason(iterator) : undefined;
  if (codeReason !== undefined) issues.add(appendPointer(at, 'for_each'), codeReason);
  const value = codeReason === undefined ? step : others;
  const found = stepKindsOf(value);
  const [kind] = found;
  if (kind === undefined || found.length > 1) {
    issues.add(at, kindReason(found));
    return;
  }
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

/** Checks a step or state with a plugin. `more` are the members that only states have. */
export function checkPlugin(
  value: JsonObject,
  at: string,
  issues: DefinitionIssues,
  more: { readonly [name: string]: DefinitionCheck },
): void {
  nonBlankText(value.plugin ?? null, appendPointer(at, 'plugin'), issues);
  const parameters = typeof value.plugin === 'string' ? pluginParameters.get(value.plugin) : undefined;
  const known: { readonly [name: string]: DefinitionCheck } = {
    plugin: nonBlankText,
    ...callBase,
    ...parameters,
    ...more,
  };
  const names = Object.keys(known);
  for (const [key, member] of Object.entries(value)) {
    if (Object.hasOwn(known, key)) known[key]?.(member, appendPointer(at, key), issues);
    else if (parameters !== undefined)
      issues.add(
        appendPointer(at, key),
        `is not a known key; known here: ${names.join(', ')}${didYouMean(nearestWord(key, names))}`,
      );
  }
}
