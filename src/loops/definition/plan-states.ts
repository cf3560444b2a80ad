/** Checks the states of a plan, and that the states they refer to exist. */
import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { checkLoopId, checkVersion } from './loop-identity.js';
import { mappingShape } from './mapping-shape.js';
import { anySchema, callBase, checkConditionText, checkPlugin, KINDS, refusedOnSteps } from './plan-steps.js';
import {
  anyText,
  appendPointer,
  checkThat,
  type DefinitionCheck,
  type DefinitionIssues,
  didYouMean,
  nonBlankText,
  nonEmptyListOf,
  objectOf,
  quoteText,
} from './shape.js';

const checkTransition = objectOf({ required: { next: nonBlankText }, optional: { condition: checkConditionText } });
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
  if (!isObject(value)) {
    issues.add(at, 'must be a table: a state');
    return;
  }
  if (Object.hasOwn(value, 'plugin')) {
    if (!Object.hasOwn(value, 'name')) issues.add(appendPointer(at, 'name'), 'is required');
    checkPlugin(value, at, issues, stateMembers);
    return;
  }
  const found = KINDS.filter((kind) => Object.hasOwn(value, kind));
  if (found.length > 1) {
    issues.add(at, `has ${found.join(' and ')}; a state has at most one action`);
    return;
  }
  stateShape(found[0])(value, at, issues);
}

/** Returns the JSON Schema of a state. */
export const stateSchema = (): JsonObject => ({ type: 'object', required: ['name'] });

/** Checks all states of a plan. */
export function checkStates(states: readonly Json[], at: string, issues: DefinitionIssues): void {
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
