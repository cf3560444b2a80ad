/**
 * Placeholders in the texts of a plan. `{name}` and `{name.member}` are replaced by values: text as it is, other values
 * as JSON. `{{` and `}}` are literal braces. An action is split into words before its placeholders are filled, so a
 * value is always part of exactly one word, and it is never expanded again.
 */
import { LoopError } from '../../base/errors.js';
import { PlaceholderText, valueAtName } from '../../json/placeholder-text.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { MAX_TEXT_CHARS, splitWords, textError } from './words.js';

/** Returns the value of a placeholder such as `name` or `name.member`; undefined if there is none. */
export type PlaceholderLookup = (name: string) => Json | undefined;

/** A text with placeholders. */
export interface CompiledText {
  readonly text: string;
  /** The names of the placeholders, each once, in the order of their first use. */
  readonly placeholders: readonly string[];
  /**
   * Returns the text with its placeholders filled. Throws MAPPING_FAILED if one has no value; `available` lists what
   * has a value, for the message.
   */
  render(lookup: PlaceholderLookup, available?: readonly string[]): string;
}

/** An action: words with placeholders. */
export interface CompiledAction {
  readonly text: string;
  readonly words: readonly CompiledText[];
  /** The names of the placeholders of all words, each once, in the order of their first use. */
  readonly placeholders: readonly string[];
  /** Returns the words with their placeholders filled. Throws like `CompiledText.render`. */
  render(lookup: PlaceholderLookup, available?: readonly string[]): string[];
}

/** The maximum number of names that the message for a missing value lists. */
const MAX_LISTED_NAMES = 20;

const TOKEN = /\{\{|\}\}|\{([\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*)\}|[{}]/gu;

/**
 * Compiles a text with placeholders. Throws DEFINITION_INVALID, with the column, for a brace that is neither doubled
 * nor part of a placeholder.
 */
export function compileText(text: string, where = ''): CompiledText {
  if (text.length > MAX_TEXT_CHARS)
    throw textError('text', where, `it has ${text.length} characters; the limit is ${MAX_TEXT_CHARS}`);
  const literals: string[] = [];
  const names: string[] = [];
  let literal = '';
  let from = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [token, name] = match;
    literal += text.slice(from, match.index);
    from = match.index + token.length;
    if (name !== undefined) {
      literals.push(literal);
      names.push(name);
      literal = '';
    } else if (token.length === 2) literal += token[0];
    else {
      const reason = `"${token}" belongs to no placeholder such as {name}; write "${token}${token}" for a brace`;
      throw textError('text', where, reason, match.index + 1);
    }
  }
  const compiled = new PlaceholderText([...literals, literal + text.slice(from)], names);
  return {
    text,
    placeholders: [...new Set(names)],
    render: (lookup, available = []) => compiled.fill((name) => renderedValue(name, lookup, available)),
  };
}

/** Compiles an action. Throws DEFINITION_INVALID like `compileText` and `splitWords`. */
export function compileAction(text: string, where = ''): CompiledAction {
  // The braces of the entire text are checked first, so that an error has the column in it.
  const { placeholders } = compileText(text, where);
  const words = splitWords(text, where).map((word) => compileText(word, where));
  return {
    text,
    words,
    placeholders,
    render: (lookup, available) => words.map((word) => word.render(lookup, available)),
  };
}

/** Returns the lookup of placeholders in an object. Only own properties are read. */
export function lookupIn(values: JsonObject): PlaceholderLookup {
  return (name) => valueAtName(values, name);
}

function renderedValue(name: string, lookup: PlaceholderLookup, available: readonly string[]): string {
  const value = lookup(name);
  if (typeof value === 'string') return value;
  if (value !== undefined) return JSON.stringify(value);
  const listed = available.slice(0, MAX_LISTED_NAMES).join(', ');
  const more = available.length > MAX_LISTED_NAMES ? ', …' : '';
  const hint = available.length === 0 ? '' : `; available: ${listed}${more}`;
  const message = `The placeholder {${name}} has no value${hint}.`;
  throw new LoopError('MAPPING_FAILED', message, { placeholder: name, available: [...available] });
}
