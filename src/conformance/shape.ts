/** Whether something is a driver: every member that the interface names, of its kind, and no other. */
import { isObject } from '../base/own-property.js';
import type { LsemDriver } from './driver.js';
import { isText, show } from './failure.js';

type Fits = (value: unknown) => string | undefined;

const given: Fits = (value) => (value === undefined ? 'is missing' : undefined);
const text: Fits = (value) => (isText(value) ? undefined : `is ${show(value)}, not a text`);
const method: Fits = (value) => (typeof value === 'function' ? undefined : `is ${show(value)}, not a function`);
const optional =
  (fits: Fits): Fits =>
  (value) =>
    value === undefined ? undefined : fits(value);

/** The members of an object; those on its prototype count too, since a driver may be of a class. */
function members(fits: { readonly [member: string]: Fits }): Fits {
  return (value) => {
    if (!isObject(value)) return `is ${show(value)}, not an object`;
    for (const [member, check] of Object.entries(fits)) {
      const flaw = check(value[member]);
      if (flaw !== undefined) return flaw.startsWith('.') ? `.${member}${flaw}` : `.${member} ${flaw}`;
    }
    const unknown = Object.keys(value).find((member) => !Object.hasOwn(fits, member));
    return unknown === undefined ? undefined : `.${unknown} is no member: it has ${Object.keys(fits).join(', ')}`;
  };
}

const reasons: Fits = (value) => {
  if (!isObject(value)) return `is ${show(value)}, not an object of reasons by check`;
  const [id] = Object.entries(value).find(([, reason]) => !isText(reason)) ?? [];
  return id === undefined ? undefined : `.${id} gives no reason`;
};

const driver = members({
  name: text,
  open: method,
  knownFailures: optional(reasons),
  profile: members({
    prompt: method,
    systemPrompt: optional(method),
    code: optional(method),
    agent: optional(method),
    backend: members({
      answering: members({ ref: given, id: text, model: text }),
      failing: given,
      unknown: given,
    }),
    tool: members({ echo: given, failing: given, unknown: given, custom: optional(method) }),
    path: members({ input: text, binding: method }),
  }),
});

/** What is wrong with a driver, as in `driver.profile.tool.echo is missing`; undefined if nothing is. */
export function driverFlaw(value: unknown): string | undefined {
  const flaw = driver(value);
  return flaw === undefined ? undefined : `driver${flaw.startsWith('.') ? flaw : ` ${flaw}`}`;
}

/** The driver that a module exports, as `default` or as `driver`; a TypeError says what is wrong. */
export function driverIn(module: { readonly [name: string]: unknown }): LsemDriver {
  const exported = module.default ?? module.driver;
  if (exported === undefined) {
    throw new TypeError(`it exports no driver: write "export default driver" or "export const driver"`);
  }
  const flaw = driverFlaw(exported);
  if (flaw !== undefined) throw new TypeError(`what it exports is not a driver: ${flaw}`);
  return exported as LsemDriver;
}
