/**
 * Checks the body of a composite: its steps, and that each mapping reads only the input, earlier steps and earlier
 * bindings. Only the first segments of a path are examined, and only if they are plain names or indexes. The syntax of
 * paths is checked when they are compiled.
 */

import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { checkAgent } from './agent.js';
import { checkLoopId, checkVersion } from './loop-identity.js';
import { INVALID_PATH_REASON, mappingSchema } from './mapping-shape.js';
import { checkPlan } from './plan.js';
import {
  appendPointer,
  conditionalSchema,
  type DefinitionCheck,
  type DefinitionIssues,
  didYouMean,
  objectOf,
  quoteText,
  withSchema,
} from './shape.js';

const MAX_STEPS = 10_000;
const BINDING_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const RESERVED_BINDINGS = new Set(['input', 'steps', '__proto__']);

const OPTIONAL_PREFIX = 'optional:';

/** Matches `$.name` or `$['name']` at the start of a path. */
const FIRST_SEGMENT =
  /^\$[ \t\r\n]*(?:\.([A-Za-z_\u0080-\u{10ffff}][0-9A-Za-z_\u0080-\u{10ffff}]*)|\[[ \t\r\n]*(?:'([^'\\]*)'|"([^"\\]*)")[ \t\r\n]*\])/u;
const LEADING_INDEX = /^[ \t\r\n]*\[[ \t\r\n]*(-?\d+)[ \t\r\n]*\]/;

/** The results that a mapping may read. */
interface ReadableResults {
  readonly stepCount: number;
  readonly bindings: ReadonlySet<string>;
}

function unreadableReason(path: string, readable: ReadableResults): string | undefined {
  const match = FIRST_SEGMENT.exec(path);
  if (match === null) return undefined;
  const name = match[1] ?? match[2] ?? match[3] ?? '';
  const rest = path.slice(match[0].length);
  if (match[1] !== undefined && rest.startsWith('-'))
    return `has a dash after ${quoteText(`$.${name}`)}; write $['…'] instead`;
  if (name === 'steps') return unreadableStepReason(rest, readable.stepCount);
  if (name === 'input' || readable.bindings.has(name)) return undefined;
  const names = ['input', 'steps', ...[...readable.bindings].slice(0, 20)];
  return `reads ${quoteText(name)}, which is not available yet; readable here: ${names.join(', ')}${didYouMean(nearestWord(name, names))}`;
}

function unreadableStepReason(rest: string, stepCount: number): string | undefined {
  const index = LEADING_INDEX.exec(rest)?.[1];
  if (index === undefined) return undefined;
  const position = index.startsWith('-') ? stepCount + Number(index) : Number(index);
  if (position >= 0 && position < stepCount) return undefined;
  const available = stepCount === 0 ? 'no step has run here' : `readable here: steps[0] to steps[${stepCount - 1}]`;
  return `reads steps[${quoteText(index).slice(1, -1)}], which is not available yet; ${available}`;
}

function checkMappingPath(value: Json, path: string, issues: DefinitionIssues, readable: ReadableResults): void {
  const mapping = typeof value === 'string' ? value : '';
  if (mapping.startsWith('literal:')) return;
  const query = mapping.startsWith(OPTIONAL_PREFIX) ? mapping.slice(OPTIONAL_PREFIX.length) : mapping;
  const reason = query.startsWith('$') ? unreadableReason(query, readable) : INVALID_PATH_REASON;
  if (reason !== undefined) issues.add(path, reason);
}

function mappingCheck(readable: ReadableResults): DefinitionCheck {
  return withSchema(mappingSchema, (value, path, issues) => {
    if (!isObject(value)) return checkMappingPath(value, path, issues, readable);
    for (const [member, part] of Object.entries(value)) {
      if (!issues.isFull) checkMappingPath(part, appendPointer(path, member), issues, readable);
    }
  });
}

function bindingCheck(earlier: ReadonlySet<string>): DefinitionCheck {
  const names = { type: 'string', pattern: BINDING_NAME.source, not: { enum: [...RESERVED_BINDINGS] } };
  return withSchema(
    () => names,
    (value, path, issues) => {
      if (typeof value !== 'string' || !BINDING_NAME.test(value)) {
        issues.add(path, 'must be a name: a letter or "_", then letters, digits, "_" or "-"');
      } else if (RESERVED_BINDINGS.has(value)) issues.add(path, `may not be ${quoteText(value)}, which is reserved`);
      else if (earlier.has(value)) issues.add(path, `is ${quoteText(value)}, which an earlier step already uses`);
    },
  );
}

/** Returns the check of a step that can read these results. */
function stepCheck(readable: ReadableResults): DefinitionCheck {
  return objectOf({
    required: { loopId: checkLoopId, inputMapping: mappingCheck(readable) },
    optional: { loopVersion: checkVersion, outputBinding: bindingCheck(readable.bindings) },
    refused: { policy: 'is not for steps; put it on the loop that the step calls, or on the whole composite' },
  });
}

function checkSteps(steps: readonly Json[], path: string, issues: DefinitionIssues): ReadonlySet<string> {
  const bindings = new Set<string>();
  for (const [index, step] of steps.entries()) {
    stepCheck({ stepCount: index, bindings })(step, appendPointer(path, index), issues);
    if (isObject(step) && typeof step.outputBinding === 'string') bindings.add(step.outputBinding);
  }
  return bindings;
}

function checkStepsBody({ steps, outputMapping }: JsonObject, path: string, issues: DefinitionIssues): void {
  const stepsPath = appendPointer(path, 'steps');
  if (steps === undefined) return;
  if (!Array.isArray(steps) || steps.length === 0 || steps.length > MAX_STEPS) {
    issues.add(stepsPath, `must be a list of 1 to ${MAX_STEPS} steps`);
    return;
  }
  const bindings = checkSteps(steps, stepsPath, issues);
  if (outputMapping === undefined) return;
  mappingCheck({ stepCount: steps.length, bindings })(outputMapping, appendPointer(path, 'outputMapping'), issues);
}

/** Returns a check that accepts everything, for members that `checkStepsBody` checks. */
const checkedLater = (schema: () => JsonObject): DefinitionCheck => withSchema(schema, () => undefined);
const stepsSchema = (): JsonObject => ({
  type: 'array',
  items: stepCheck({ stepCount: 0, bindings: new Set() }).schema(),
  minItems: 1,
  maxItems: MAX_STEPS,
});

const checkStepsShape = objectOf({
  required: { steps: checkedLater(stepsSchema) },
  optional: { outputMapping: checkedLater(mappingSchema) },
});

const checkPlanBodyShape = objectOf({
  required: { plan: checkPlan },
  refused: { steps: 'cannot be combined with "plan"', agent: 'cannot be combined with "plan"' },
});

const checkAgentBodyShape = objectOf({
  required: { agent: checkAgent },
  refused: { steps: 'cannot be combined with "agent"', outputMapping: 'is for "steps"; an agent has an output schema' },
});

/** Checks the body of a composite: its steps, its plan or its agent. */
export const checkComposite: DefinitionCheck = withSchema(
  () => ({
    type: 'object',
    ...conditionalSchema(
      { required: ['agent'] },
      checkAgentBodyShape.schema(),
      conditionalSchema({ required: ['plan'] }, checkPlanBodyShape.schema(), checkStepsShape.schema()),
    ),
  }),
  (value, path, issues) => {
    if (isObject(value) && Object.hasOwn(value, 'plan')) return checkPlanBodyShape(value, path, issues);
    if (isObject(value) && Object.hasOwn(value, 'agent')) return checkAgentBodyShape(value, path, issues);
    checkStepsShape(value, path, issues);
    if (isObject(value)) checkStepsBody(value, path, issues);
  },
);
