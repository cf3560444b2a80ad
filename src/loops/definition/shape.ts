/**
 * The words in which shapes are told: a check looks at a JSON value and adds what is wrong with it to the flaws, with
 * the place as a JSON pointer. Checks never throw and never change what they look at.
 */

import { LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import { numbers, wholeNumbers } from '../../base/number-range.js';
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';

export type JsonObject = { readonly [name: string]: Json };

export interface DefinitionIssue {
  /** A JSON pointer; empty for the whole document. */
  readonly path: string;
  readonly reason: string;
}

export type DefinitionCheck = (value: Json, path: string, flaws: DefinitionIssues) => void;

const MAX_ISSUES = 20;
const MAX_ISSUE_CHARS = 400;

/** What is wrong with a document; the first twenty flaws are kept, all are counted. */
export class DefinitionIssues {
  readonly list: DefinitionIssue[] = [];
  count = 0;

  add(path: string, reason: string): void {
    this.count++;
    if (!this.isFull)
      this.list.push({ path: truncateText(path, MAX_ISSUE_CHARS), reason: truncateText(reason, MAX_ISSUE_CHARS) });
  }

  /** Whether a further flaw would only be counted, so that nobody need word it. */
  get isFull(): boolean {
    return this.list.length >= MAX_ISSUES;
  }

  toError(where: string): LoopError {
    const { path, reason } = this.list[0] ?? { path: '', reason: 'it is not one' };
    const place = path === '' ? '' : `at ${path}: `;
    const more = this.count === 1 ? '' : ` (${this.count - 1} more in data.flaws)`;
    const flaws = this.list.map((flaw) => ({ path: flaw.path, reason: flaw.reason }));
    const message = `${where} is not a definition that can be run: ${place}${reason}.${more}`;
    return new LoopError('DEFINITION_INVALID', message, { path, reason, flaws, where });
  }
}

/** The first characters of a text; half a character is never left over, nor passed on. */
export function truncateText(text: string, length: number): string {
  const short = text.length > length ? `${text.slice(0, length)}…` : text;
  return short.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** A text in quotes, short enough to be read. */
export function quoteText(text: string): string {
  return JSON.stringify(truncateText(text, 60));
}

export function appendPointer(path: string, member: string | number): string {
  return `${path}/${String(member).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** What a value is, in words. */
function describeValue(value: Json): string {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return typeof value === 'string' ? quoteText(value) : String(value);
}

/** A check that the value is what `says` says. */
export function checkThat(says: string, holds: (value: Json) => boolean): DefinitionCheck {
  return (value, path, flaws) => {
    if (!holds(value)) flaws.add(path, `must be ${says}, not ${describeValue(value)}`);
  };
}

export const anyText = checkThat('text', (value) => typeof value === 'string');
export const nonEmptyText = checkThat(
  'text that is not empty',
  (value) => typeof value === 'string' && value.trim() !== '',
);
export const anyObject = checkThat('an object', isObject);

/** Text that fits a pattern of ours. */
export function textMatching(says: string, pattern: RegExp): DefinitionCheck {
  return checkThat(says, (value) => typeof value === 'string' && pattern.test(value));
}

export function numberBetween(min: number, max: number): DefinitionCheck {
  const { description, includes } = numbers(min, max);
  return checkThat(description, includes);
}

export function integerBetween(min: number, max: number): DefinitionCheck {
  const { description, includes } = wholeNumbers(min, max);
  return checkThat(description, includes);
}

export function oneOf(words: readonly string[]): DefinitionCheck {
  return (value, path, flaws) => {
    if (typeof value === 'string' && words.includes(value)) return;
    const meant = typeof value === 'string' ? nearestWord(value, words) : undefined;
    flaws.add(path, `must be one of ${words.join(', ')}, not ${describeValue(value)}${didYouMean(meant)}`);
  };
}

export function listOf(check: DefinitionCheck, most: number): DefinitionCheck {
  return (value, path, flaws) => {
    if (!Array.isArray(value)) return flaws.add(path, `must be a list, not ${describeValue(value)}`);
    if (value.length > most) return flaws.add(path, `has ${value.length} elements; ${most} is the most`);
    for (const [index, item] of value.entries()) check(item, appendPointer(path, index), flaws);
  };
}

/** A list that names at least one thing: an empty one would be ignored. */
export function nonEmptyListOf(check: DefinitionCheck, most: number): DefinitionCheck {
  const all = listOf(check, most);
  return (value, path, flaws) => {
    if (Array.isArray(value) && value.length === 0) flaws.add(path, 'is empty, and has no effect; remove it');
    else all(value, path, flaws);
  };
}

export interface ObjectShape {
  readonly required?: { readonly [name: string]: DefinitionCheck };
  readonly optional?: { readonly [name: string]: DefinitionCheck };
  /** Known keys that are refused, and why. */
  readonly refused?: { readonly [name: string]: string };
}

/** An object of exactly these members; any other key is a flaw. */
export function objectOf({ required = {}, optional = {}, refused = {} }: ObjectShape): DefinitionCheck {
  const checks = new Map(Object.entries({ ...required, ...optional }));
  const known = [...checks.keys()];
  return (value, path, flaws) => {
    if (!isObject(value)) return flaws.add(path, `must be an object, not ${describeValue(value)}`);
    for (const [key, member] of Object.entries(value)) {
      const check = checks.get(key);
      const place = appendPointer(path, key);
      if (check !== undefined) check(member, place, flaws);
      else if (Object.hasOwn(refused, key)) flaws.add(place, refused[key] ?? '');
      else addUnknownKey(key, place, known, flaws);
    }
    for (const key of Object.keys(required)) {
      if (!Object.hasOwn(value, key)) flaws.add(appendPointer(path, key), 'is required');
    }
  };
}

function addUnknownKey(key: string, place: string, known: readonly string[], flaws: DefinitionIssues): void {
  const reason = flaws.isFull ? '' : `is not a known key; known here: ${known.join(', ')}`;
  flaws.add(place, `${reason}${flaws.isFull ? '' : didYouMean(nearestWord(key, known))}`);
}

export function didYouMean(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
}
