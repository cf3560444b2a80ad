/**
 * Validates the shape of a conformance driver. Functions and texts must have their type, other required members must
 * only be present, and an object must have no own members that the interface does not define.
 */
import { isObject } from '../base/own-property.js';
import { describeValue, isNonEmptyString } from './assertions.js';
import type { LsemDriver } from './driver.js';

/** Returns the problem of a value; undefined if it is valid. The problem of a member begins with its path: `.tool`. */
type ShapeCheck = (value: unknown) => string | undefined;

const requireValue: ShapeCheck = (value) => (value === undefined ? 'is missing' : undefined);
const requireText: ShapeCheck = (value) =>
  isNonEmptyString(value) ? undefined : `is ${describeValue(value)}, not a non-empty string`;
const requireFunction: ShapeCheck = (value) =>
  typeof value === 'function' ? undefined : `is ${describeValue(value)}, not a function`;
const optional =
  (check: ShapeCheck): ShapeCheck =>
  (value) =>
    value === undefined ? undefined : check(value);

/**
 * Returns a check that requires the members of an object and refuses other own members. A required member may be
 * inherited, because a driver may be an instance of a class.
 */
function requireMembers(checks: { readonly [member: string]: ShapeCheck }): ShapeCheck {
  return (value) => {
    if (!isObject(value)) return `is ${describeValue(value)}, not an object`;
    for (const [member, check] of Object.entries(checks)) {
      const problem = check(value[member]);
      if (problem !== undefined) return problem.startsWith('.') ? `.${member}${problem}` : `.${member} ${problem}`;
    }
    const unknown = Object.keys(value).find((member) => !Object.hasOwn(checks, member));
    if (unknown === undefined) return undefined;
    return `.${unknown} is not a member; the members are ${Object.keys(checks).join(', ')}`;
  };
}

const requireReasons: ShapeCheck = (value) => {
  if (!isObject(value)) return `is ${describeValue(value)}, not an object of reasons by check`;
  const [id] = Object.entries(value).find(([, reason]) => !isNonEmptyString(reason)) ?? [];
  return id === undefined ? undefined : `.${id} has no reason`;
};

const requireDriver = requireMembers({
  name: requireText,
  open: requireFunction,
  knownFailures: optional(requireReasons),
  profile: requireMembers({
    prompt: requireFunction,
    systemPrompt: optional(requireFunction),
    code: optional(requireFunction),
    agent: optional(requireFunction),
    plan: optional(requireFunction),
    backend: requireMembers({
      answering: requireMembers({ ref: requireValue, id: requireText, model: requireText }),
      failing: requireValue,
      unknown: requireValue,
    }),
    tool: requireMembers({
      echo: requireValue,
      failing: requireValue,
      unknown: requireValue,
      custom: optional(requireFunction),
    }),
    path: requireMembers({ input: requireText, binding: requireFunction }),
  }),
});

/** Returns the first problem of a driver, such as `driver.profile.tool.echo is missing`; undefined if it is valid. */
export function findDriverProblem(value: unknown): string | undefined {
  const problem = requireDriver(value);
  return problem === undefined ? undefined : `driver${problem.startsWith('.') ? problem : ` ${problem}`}`;
}

/** Returns the driver that a module exports as `default` or `driver`. Throws a TypeError if there is no valid one. */
export function driverFromModule(module: { readonly [name: string]: unknown }): LsemDriver {
  const exported = module.default ?? module.driver;
  if (exported === undefined) {
    throw new TypeError(`it exports no driver: write "export default driver" or "export const driver"`);
  }
  const problem = findDriverProblem(exported);
  if (problem !== undefined) throw new TypeError(`its export is not a driver: ${problem}`);
  return exported as LsemDriver;
}
