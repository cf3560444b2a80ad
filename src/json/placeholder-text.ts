/** Texts with placeholders, compiled once and filled often. A value is inserted as it is and never expanded again. */
import type { Json } from '../protocol/json.js';

/** A text that is split at its placeholders: a literal before each of them, and one after the last. */
export class PlaceholderText {
  /** The names of the placeholders, in order, with repetitions. */
  readonly names: readonly string[];
  private readonly literals: readonly string[];

  constructor(literals: readonly string[], names: readonly string[]) {
    this.literals = literals;
    this.names = names;
  }

  /** Returns the text with each placeholder replaced. */
  fill(replacementOf: (name: string) => string): string {
    const { literals, names } = this;
    let text = literals[0] ?? '';
    for (let i = 0; i < names.length; i++) text += replacementOf(names[i] ?? '') + (literals[i + 1] ?? '');
    return text;
  }
}

/**
 * Returns the value that a dotted name such as `a.b` leads to; undefined if there is none. Only own properties are
 * read.
 */
export function valueAtName(root: Json, name: string): Json | undefined {
  let value: Json | undefined = root;
  for (const member of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) return undefined;
    value = (value as { readonly [key: string]: Json })[member];
  }
  return value;
}
