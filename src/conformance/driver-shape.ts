/** Whether something is a driver: every member that the interface names, of its kind, and no other. */
import { isObject } from '../base/own-property.js';
import { describeValue, isNonEmptyString } from './assertions.js';
import type { LsemDriver } from './driver.js';

type ShapeCheck = (value: unknown) => string | undefined;

const requireValue: ShapeCheck = (value) => (value === undefined ? 'is missing' : undefined);
const requireText: ShapeCheck = (value) =>
  isNonEmptyString(value) ? undefined : `is ${describeValue(value)}, not a text`;
const requireFunction: ShapeCheck = (value) =>
  typeof value === 'function' ? undefined : `is ${describeValue(value)}, not a function`;
const optional =
  (fits: ShapeCheck): ShapeCheck =>
  (value) =>
    value === undefined ? undefined : fits(value);

/** The members of an object; those on its prototype count too, since a driver may be of a class. */
function requireMembers(fits: { readonly [member: string]: ShapeCheck }): ShapeCheck {
  return (value) => {
    if (!isObject(value)) return `is ${describeValue(value)}, not an object`;
    for (const [member, check] of Object.entries(fits)) {
      const flaw = check(value[member]);
      if (flaw !== undefined) return flaw.startsWith('.') ? `.${member}${flaw}` : `.${member} ${flaw}`;
    }
    const unknown = Object.keys(value).find((member) => !Object.hasOwn(fits, member));
    return unknown === undefined ? undefined : `.${unknown} is no member: it has ${Object.keys(fits).join(', ')}`;
  };
}

const requireReasons: ShapeCheck = (value) => {
  if (!isObject(value)) return `is ${describeValue(value)}, not an object of reasons by check`;
  const [id] = Object.entries(value).find(([, reason]) => !isNonEmptyString(reason)) ?? [];
  return id === undefined ? undefined : `.${id} gives no reason`;
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

/** What is wrong with a driver, as in `driver.profile.tool.echo is missing`; undefined if nothing is. */
export function findDriverProblem(value: unknown): string | undefined {
  const flaw = requireDriver(value);
  return flaw === undefined ? undefined : `driver${flaw.startsWith('.') ? flaw : ` ${flaw}`}`;
}

/** The driver that a module exports, as `default` or as `driver`; a TypeError says what is wrong. */
export function driverFromModule(module: { readonly [name: string]: unknown }): LsemDriver {
  const exported = module.default ?? module.driver;
  if (exported === undefined) {
    throw new TypeError(`it exports no driver: write "export default driver" or "export const driver"`);
  }
  const flaw = findDriverProblem(exported);
  if (flaw !== undefined) throw new TypeError(`what it exports is not a driver: ${flaw}`);
  return exported as LsemDriver;
}
