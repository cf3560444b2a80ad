/** Validates the `config` of a tool: unknown keys and invalid values make the definition invalid. */
import { LoopError } from '../../base/errors.js';
import { wholeNumbers } from '../../base/number-range.js';
import type { Json } from '../../protocol/json.js';

/** The `config` member of a tool definition. */
export type ToolConfig = { readonly [name: string]: Json };

/** The rule for the value of one setting. */
export interface ConfigRule<T> {
  /** The rule in words; it completes the message "must be …". */
  readonly requirement: string;
  accepts(value: Json): value is T & Json;
}

/** The valid settings that precede the first problem, and the problem. */
export interface ParsedConfig<T> {
  readonly settings: Partial<T>;
  readonly problem: string | undefined;
}

/** Validates a config against the rules of a scheme, which the message of a problem names. Does not throw. */
export function parseConfig<T>(
  scheme: string,
  config: ToolConfig,
  rules: { readonly [K in keyof T]: ConfigRule<T[K]> },
): ParsedConfig<T> {
  const settings: Partial<T> = {};
  const names = Object.keys(rules) as (keyof T & string)[];
  for (const [key, value] of Object.entries(config)) {
    const name = names.find((candidate) => candidate === key);
    if (name === undefined) {
      const available = names.length === 0 ? 'they have none' : `available are ${names.join(', ')}`;
      return { settings, problem: `config.${key} is not a setting of ${scheme}: tools; ${available}.` };
    }
    const rule = rules[name];
    if (!rule.accepts(value))
      return { settings, problem: `config.${key} of ${scheme}: tools must be ${rule.requirement}.` };
    settings[name] = value;
  }
  return { settings, problem: undefined };
}

/** Returns the rule for integers from `min` to `max`, both included. */
export function integerBetween(min: number, max: number): ConfigRule<number> {
  const { description, includes } = wholeNumbers(min, max);
  return { requirement: description, accepts: includes };
}

/** The setting `maxOutputBytes`: the maximum size of the output of a tool, and its default. */
export const outputBytesSetting = {
  defaultBytes: 10 * 1024 * 1024,
  rule: integerBetween(1, 64 * 1024 * 1024),
} as const;

/** Returns true if the value is a valid name of an environment variable. */
export function isVariableName(value: Json): boolean {
  return typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(value);
}

/**
 * Throws DEFINITION_INVALID if there is a problem. `open` calls it for definitions that were not checked at
 * registration.
 */
export function assertNoProblem(problem: string | undefined): void {
  if (problem !== undefined) throw new LoopError('DEFINITION_INVALID', problem);
}
