/**
 * The shape of a composite, and what each mapping may read: the input, earlier steps and earlier bindings. Only the
 * first segments of a path are looked at, and only where they are plain; whether a path is well-formed is not asked.
 */

import { nearest } from '../../base/nearest.js';
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import { agent } from './agent.js';
import { loopId, version } from './identity.js';
import { type Check, type Fields, type Flaws, fields, pointer, quote, suggest } from './shape.js';

const STEPS = 10_000;
const BINDING = /^[A-Za-z_][A-Za-z0-9_-]*$/;
const reserved = new Set(['input', 'steps', '__proto__']);

const OPTIONAL = 'optional:';
const NO_PATH = 'must be a path that starts with $, optional: and a path, or literal: and a text';

/** `$.name` or `$['name']`: the name, and what follows it. */
const FIRST =
  /^\$[ \t\r\n]*(?:\.([A-Za-z_\u0080-\u{10ffff}][0-9A-Za-z_\u0080-\u{10ffff}]*)|\[[ \t\r\n]*(?:'([^'\\]*)'|"([^"\\]*)")[ \t\r\n]*\])/u;
const INDEX = /^[ \t\r\n]*\[[ \t\r\n]*(-?\d+)[ \t\r\n]*\]/;

/** What is there when a mapping is read: so many steps, and their bindings. */
interface Readable {
  readonly steps: number;
  readonly bindings: ReadonlySet<string>;
}

function unreadable(path: string, readable: Readable): string | undefined {
  const found = FIRST.exec(path);
  if (found === null) return undefined;
  const name = found[1] ?? found[2] ?? found[3] ?? '';
  const rest = path.slice(found[0].length);
  if (found[1] !== undefined && rest.startsWith('-'))
    return `has a dash after ${quote(`$.${name}`)}; write $['…'] instead`;
  if (name === 'steps') return unreadableStep(rest, readable.steps);
  if (name === 'input' || readable.bindings.has(name)) return undefined;
  const names = ['input', 'steps', ...[...readable.bindings].slice(0, 20)];
  return `reads ${quote(name)}, which is not there yet; readable here: ${names.join(', ')}${suggest(nearest(name, names))}`;
}

function unreadableStep(rest: string, steps: number): string | undefined {
  const index = INDEX.exec(rest)?.[1];
  if (index === undefined) return undefined;
  const place = index.startsWith('-') ? steps + Number(index) : Number(index);
  if (place >= 0 && place < steps) return undefined;
  const there = steps === 0 ? 'no step has run here' : `readable here: steps[0] to steps[${steps - 1}]`;
  return `reads steps[${quote(index).slice(1, -1)}], which is not there yet; ${there}`;
}

function checkPath(value: Json, path: string, flaws: Flaws, readable: Readable): void {
  const written = typeof value === 'string' ? value : '';
  if (written.startsWith('literal:')) return;
  const read = written.startsWith(OPTIONAL) ? written.slice(OPTIONAL.length) : written;
  const reason = read.startsWith('$') ? unreadable(read, readable) : NO_PATH;
  if (reason !== undefined) flaws.add(path, reason);
}

function mapping(readable: Readable): Check {
  return (value, path, flaws) => {
    if (!isObject(value)) return checkPath(value, path, flaws, readable);
    for (const [member, part] of Object.entries(value)) {
      if (!flaws.full) checkPath(part, pointer(path, member), flaws, readable);
    }
  };
}

function binding(taken: ReadonlySet<string>): Check {
  return (value, path, flaws) => {
    if (typeof value !== 'string' || !BINDING.test(value)) {
      flaws.add(path, 'must be a name: a letter or "_", then letters, digits, "_" or "-"');
    } else if (reserved.has(value)) flaws.add(path, `may not be ${quote(value)}, which has a meaning of its own`);
    else if (taken.has(value)) flaws.add(path, `is ${quote(value)}, which an earlier step has taken`);
  };
}

function checkSteps(steps: readonly Json[], path: string, flaws: Flaws): ReadonlySet<string> {
  const bindings = new Set<string>();
  for (const [index, step] of steps.entries()) {
    const check = fields({
      required: { loopId, inputMapping: mapping({ steps: index, bindings }) },
      optional: { loopVersion: version, outputBinding: binding(bindings) },
      refused: { policy: 'is not for steps; put it on the loop that the step calls, or on the whole composite' },
    });
    check(step, pointer(path, index), flaws);
    if (isObject(step) && typeof step.outputBinding === 'string') bindings.add(step.outputBinding);
  }
  return bindings;
}

function checkParts({ steps, outputMapping }: Fields, path: string, flaws: Flaws): void {
  const place = pointer(path, 'steps');
  if (steps === undefined) return;
  if (!Array.isArray(steps) || steps.length === 0 || steps.length > STEPS) {
    flaws.add(place, `must be a list of 1 to ${STEPS} steps`);
    return;
  }
  const bindings = checkSteps(steps, place, flaws);
  if (outputMapping === undefined) return;
  mapping({ steps: steps.length, bindings })(outputMapping, pointer(path, 'outputMapping'), flaws);
}

const anything: Check = () => undefined;

const stepsShape = fields({
  required: { steps: anything },
  optional: { outputMapping: anything },
  refused: { plan: 'is not known in this version; write the plan as "steps"' },
});

const agentShape = fields({
  required: { agent },
  refused: { steps: 'may not stand beside "agent"', outputMapping: 'is for "steps"; an agent has an output schema' },
});

export const composite: Check = (value, path, flaws) => {
  if (isObject(value) && Object.hasOwn(value, 'agent')) return agentShape(value, path, flaws);
  stepsShape(value, path, flaws);
  if (isObject(value)) checkParts(value, path, flaws);
};
