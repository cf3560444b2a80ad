/** Reading the `config` of a tool: each key is known and of its kind, or the definition is refused. */
import { LoopError } from '../../base/errors.js';
import { wholeNumbers } from '../../base/number-range.js';
import type { Json } from '../../protocol/json.js';

export type Config = { readonly [name: string]: Json };

/** What a key must hold, in words and in code. */
export interface Kind<T> {
  readonly says: string;
  is(value: Json): value is T & Json;
}

/** A config as far as it could be read, and what is wrong with it. */
export interface Reading<T> {
  readonly settings: Partial<T>;
  readonly flaw: string | undefined;
}

export function readConfig<T>(
  scheme: string,
  config: Config,
  kinds: { readonly [K in keyof T]: Kind<T[K]> },
): Reading<T> {
  const settings: Partial<T> = {};
  const known = Object.keys(kinds) as (keyof T & string)[];
  for (const [key, value] of Object.entries(config)) {
    const name = known.find((candidate) => candidate === key);
    if (name === undefined) {
      const may = known.length === 0 ? 'it takes none' : `known are ${known.join(', ')}`;
      return { settings, flaw: `config.${key} is not known to ${scheme}: tools; ${may}.` };
    }
    const kind = kinds[name];
    if (!kind.is(value)) return { settings, flaw: `config.${key} of ${scheme}: tools must be ${kind.says}.` };
    settings[name] = value;
  }
  return { settings, flaw: undefined };
}

export function whole(least: number, most: number): Kind<number> {
  const { description, includes } = wholeNumbers(least, most);
  return { says: description, is: includes };
}

/** How much a tool may answer, in bytes. */
export const outputBytes = { usual: 10 * 1024 * 1024, kind: whole(1, 64 * 1024 * 1024) } as const;

/** The name of a variable of the environment. */
export function isVariable(value: Json): boolean {
  return typeof value === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(value);
}

/** A definition that is opened although it was refused, or was never checked, stops here. */
export function refuse(flaw: string | undefined): void {
  if (flaw !== undefined) throw new LoopError('DEFINITION_INVALID', flaw);
}
