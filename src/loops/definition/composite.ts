/**
 * The shape of a composite, and what each mapping may read: the input, earlier steps and earlier bindings. Only the
 * first segments of a path are looked at, and only where they are plain; whether a path is well-formed is not asked.
 */

import { nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { checkAgent } from './agent.js';
import { checkLoopId, checkVersion } from './loop-identity.js';
import {
  appendPointer,
  type DefinitionCheck,
  type DefinitionIssues,
  didYouMean,
  type JsonObject,
  objectOf,
  quoteText,
} from './shape.js';

const MAX_STEPS = 10_000;
const BINDING_NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const RESERVED_BINDINGS = new Set(['input', 'steps', '__proto__']);

const OPTIONAL_PREFIX = 'optional:';
const INVALID_PATH_REASON = 'must be a path that starts with $, optional: and a path, or literal: and a text';

/** `$.name` or `$['name']`: the name, and what follows it. */
const FIRST_SEGMENT =
  /^\$[ \t\r\n]*(?:\.([A-Za-z_\u0080-\u{10ffff}][0-9A-Za-z_\u0080-\u{10ffff}]*)|\[[ \t\r\n]*(?:'([^'\\]*)'|"([^"\\]*)")[ \t\r\n]*\])/u;
const LEADING_INDEX = /^[ \t\r\n]*\[[ \t\r\n]*(-?\d+)[ \t\r\n]*\]/;

/** What is there when a mapping is read: so many steps, and their bindings. */
interface ReadableResults {
  readonly stepCount: number;
  readonly bindings: ReadonlySet<string>;
}

function unreadableReason(path: string, readable: ReadableResults): string | undefined {
  const found = FIRST_SEGMENT.exec(path);
  if (found === null) return undefined;
  const name = found[1] ?? found[2] ?? found[3] ?? '';
  const rest = path.slice(found[0].length);
  if (found[1] !== undefined && rest.startsWith('-'))
    return `has a dash after ${quoteText(`$.${name}`)}; write $['…'] instead`;
  if (name === 'steps') return unreadableStepReason(rest, readable.stepCount);
  if (name === 'input' || readable.bindings.has(name)) return undefined;
  const names = ['input', 'steps', ...[...readable.bindings].slice(0, 20)];
  return `reads ${quoteText(name)}, which is not there yet; readable here: ${names.join(', ')}${didYouMean(nearestWord(name, names))}`;
}

function unreadableStepReason(rest: string, steps: number): string | undefined {
  const index = LEADING_INDEX.exec(rest)?.[1];
  if (index === undefined) return undefined;
  const place = index.startsWith('-') ? steps + Number(index) : Number(index);
  if (place >= 0 && place < steps) return undefined;
  const there = steps === 0 ? 'no step has run here' : `readable here: steps[0] to steps[${steps - 1}]`;
  return `reads steps[${quoteText(index).slice(1, -1)}], which is not there yet; ${there}`;
}

function checkMappingPath(value: Json, path: string, flaws: DefinitionIssues, readable: ReadableResults): void {
  const written = typeof value === 'string' ? value : '';
  if (written.startsWith('literal:')) return;
  const read = written.startsWith(OPTIONAL_PREFIX) ? written.slice(OPTIONAL_PREFIX.length) : written;
  const reason = read.startsWith('$') ? unreadableReason(read, readable) : INVALID_PATH_REASON;
  if (reason !== undefined) flaws.add(path, reason);
}

function mappingCheck(readable: ReadableResults): DefinitionCheck {
  return (value, path, flaws) => {
    if (!isObject(value)) return checkMappingPath(value, path, flaws, readable);
    for (const [member, part] of Object.entries(value)) {
      if (!flaws.isFull) checkMappingPath(part, appendPointer(path, member), flaws, readable);
    }
  };
}

function bindingCheck(taken: ReadonlySet<string>): DefinitionCheck {
  return (value, path, flaws) => {
    if (typeof value !== 'string' || !BINDING_NAME.test(value)) {
      flaws.add(path, 'must be a name: a letter or "_", then letters, digits, "_" or "-"');
    } else if (RESERVED_BINDINGS.has(value))
      flaws.add(path, `may not be ${quoteText(value)}, which has a meaning of its own`);
    else if (taken.has(value)) flaws.add(path, `is ${quoteText(value)}, which an earlier step has taken`);
  };
}

function checkSteps(steps: readonly Json[], path: string, flaws: DefinitionIssues): ReadonlySet<string> {
  const bindings = new Set<string>();
  for (const [index, step] of steps.entries()) {
    const check = objectOf({
      required: { loopId: checkLoopId, inputMapping: mappingCheck({ stepCount: index, bindings }) },
      optional: { loopVersion: checkVersion, outputBinding: bindingCheck(bindings) },
      refused: { policy: 'is not for steps; put it on the loop that the step calls, or on the whole composite' },
    });
    check(step, appendPointer(path, index), flaws);
    if (isObject(step) && typeof step.outputBinding === 'string') bindings.add(step.outputBinding);
  }
  return bindings;
}

function checkStepsBody({ steps, outputMapping }: JsonObject, path: string, flaws: DefinitionIssues): void {
  const place = appendPointer(path, 'steps');
  if (steps === undefined) return;
  if (!Array.isArray(steps) || steps.length === 0 || steps.length > MAX_STEPS) {
    flaws.add(place, `must be a list of 1 to ${MAX_STEPS} steps`);
    return;
  }
  const bindings = checkSteps(steps, place, flaws);
  if (outputMapping === undefined) return;
  mappingCheck({ stepCount: steps.length, bindings })(outputMapping, appendPointer(path, 'outputMapping'), flaws);
}

const acceptAnything: DefinitionCheck = () => undefined;

const checkStepsShape = objectOf({
  required: { steps: acceptAnything },
  optional: { outputMapping: acceptAnything },
  refused: { plan: 'is not known in this version; write the plan as "steps"' },
});

const checkAgentBodyShape = objectOf({
  required: { agent: checkAgent },
  refused: { steps: 'may not stand beside "agent"', outputMapping: 'is for "steps"; an agent has an output schema' },
});

export const checkComposite: DefinitionCheck = (value, path, flaws) => {
  if (isObject(value) && Object.hasOwn(value, 'agent')) return checkAgentBodyShape(value, path, flaws);
  checkStepsShape(value, path, flaws);
  if (isObject(value)) checkStepsBody(value, path, flaws);
};
