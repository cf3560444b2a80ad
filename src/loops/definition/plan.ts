/**
 * Checks the shape of a plan: its members, and that the names they refer to exist. Texts, paths and conditions are
 * checked when the plan is compiled.
 */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { checkBackendRef } from './bodies.js';
import { checkLoopId } from './loop-identity.js';
import { checkStates, stateSchema } from './plan-states.js';
import { checkLlm, NO_UPPER_BOUND, stepList, strategies } from './plan-steps.js';
import {
  anyObject,
  appendPointer,
  type DefinitionCheck,
  type DefinitionIssues,
  integerBetween,
  nonBlankText,
  objectOf,
  quoteText,
  withSchema,
} from './shape.js';

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

/** Checks that each verb has the id of a loop. */
const checkVerbs = withSchema(
  () => ({ type: 'object', additionalProperties: checkLoopId.schema() }),
  (value, at, issues) => {
    anyObject(value, at, issues);
    if (isObject(value))
      for (const [verb, loop] of Object.entries(value)) checkLoopId(loop, appendPointer(at, verb), issues);
  },
);

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
    verbs: checkVerbs,
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
