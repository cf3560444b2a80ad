/** Reading the `config` of a tool: each key is known and of its kind, or the definition is refused. */
import { LoopError } from '../../base/errors.js';
import { wholeNumbers } from '../../base/number-range.js';
import type { Json } from '../../protocol/json.js';

export type ToolConfig = { readonly [name: string]: Json };

/** What a key must hold, in words and in code. */
export interface ConfigRule<T> {
  readonly requirement: string;
  accepts(value: Json): value is T & Json;
}

/** A config as far as it could be read, and what is wrong with it. */
export interface ParsedConfig<T> {
  readonly settings: Partial<T>;
  readonly problem: string | undefined;
}

export function parseConfig<T>(
  scheme: string,
  config: ToolConfig,
  kinds: { readonly [K in keyof T]: ConfigRule<T[K]> },
): ParsedConfig<T> {
  const settings: Partial<T> = {};
  const known = Object.keys(kinds) as (keyof T & string)[];
  for (const [key, value] of Object.entries(config)) {
    const name = known.find((candidate) => candidate === key);
    if (name === undefined) {
      const may = known.length === 0 ? 'it takes none' : `known are ${known.join(', ')}`;
      return { settings, problem: `config.${key} is not known to ${scheme}: tools; ${may}.` };
    }
    const kind = kinds[name];
    if (!kind.accepts(value))
      return { settings, problem: `config.${key} of ${scheme}: tools must be ${kind.requirement}.` };
    settings[name] = value;
  }
  return { settings, problem: undefined };
}

export function integerBetween(least: number, most: number): ConfigRule<number> {
  const { description, includes } = wholeNumbers(least, most);
  return { requirement: description, accepts: includes };
}

/** How much a tool may answer, in bytes. */
export const outputBytesSetting = { usual: 10 * 1024 * 1024, kind: integerBetween(1, 64 * 1024 * 1024) } as const;

/** The name of a variable of the environment. */
export function isVariableName(value: Json): boolean {
  return typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(value);
}

/** A definition that is opened although it was refused, or was never checked, stops here. */
export function assertNoProblem(flaw: string | undefined): void {
  if (flaw !== undefined) throw new LoopError('DEFINITION_INVALID', flaw);
}
