/**
 * The words in which shapes are told: a check looks at a JSON value and adds what is wrong with it to the flaws, with
 * the place as a JSON pointer. Checks never throw and never change what they look at.
 */

import { LoopError } from '../../base/errors.js';
import { nearest } from '../../base/nearest.js';
import { numbers, wholeNumbers } from '../../base/number-range.js';
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';

export type Fields = { readonly [name: string]: Json };

export interface Flaw {
  /** A JSON pointer; empty for the whole document. */
  readonly path: string;
  readonly reason: string;
}

export type Check = (value: Json, path: string, flaws: Flaws) => void;

const MOST = 20;
const LONGEST = 400;

/** What is wrong with a document; the first twenty flaws are kept, all are counted. */
export class Flaws {
  readonly list: Flaw[] = [];
  count = 0;

  add(path: string, reason: string): void {
    this.count++;
    if (!this.full) this.list.push({ path: clip(path, LONGEST), reason: clip(reason, LONGEST) });
  }

  /** Whether a further flaw would only be counted, so that nobody need word it. */
  get full(): boolean {
    return this.list.length >= MOST;
  }

  error(where: string): LoopError {
    const { path, reason } = this.list[0] ?? { path: '', reason: 'it is not one' };
    const place = path === '' ? '' : `at ${path}: `;
    const more = this.count === 1 ? '' : ` (${this.count - 1} more in data.flaws)`;
    const flaws = this.list.map((flaw) => ({ path: flaw.path, reason: flaw.reason }));
    const message = `${where} is not a definition that can be run: ${place}${reason}.${more}`;
    return new LoopError('DEFINITION_INVALID', message, { path, reason, flaws, where });
  }
}

/** The first characters of a text; half a character is never left over, nor passed on. */
export function clip(text: string, length: number): string {
  const short = text.length > length ? `${text.slice(0, length)}…` : text;
  return short.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** A text in quotes, short enough to be read. */
export function quote(text: string): string {
  return JSON.stringify(clip(text, 60));
}

export function pointer(path: string, member: string | number): string {
  return `${path}/${String(member).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** What a value is, in words. */
function told(value: Json): string {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return typeof value === 'string' ? quote(value) : String(value);
}

/** A check that the value is what `says` says. */
export function must(says: string, holds: (value: Json) => boolean): Check {
  return (value, path, flaws) => {
    if (!holds(value)) flaws.add(path, `must be ${says}, not ${told(value)}`);
  };
}

export const anyText = must('text', (value) => typeof value === 'string');
export const text = must('text that is not empty', (value) => typeof value === 'string' && value.trim() !== '');
export const anyFields = must('an object', isObject);

/** Text that fits a pattern of ours. */
export function textLike(says: string, pattern: RegExp): Check {
  return must(says, (value) => typeof value === 'string' && pattern.test(value));
}

export function numberIn(min: number, max: number): Check {
  const { description, includes } = numbers(min, max);
  return must(description, includes);
}

export function wholeIn(min: number, max: number): Check {
  const { description, includes } = wholeNumbers(min, max);
  return must(description, includes);
}

export function oneOf(words: readonly string[]): Check {
  return (value, path, flaws) => {
    if (typeof value === 'string' && words.includes(value)) return;
    const meant = typeof value === 'string' ? nearest(value, words) : undefined;
    flaws.add(path, `must be one of ${words.join(', ')}, not ${told(value)}${suggest(meant)}`);
  };
}

export function listOf(check: Check, most: number): Check {
  return (value, path, flaws) => {
    if (!Array.isArray(value)) return flaws.add(path, `must be a list, not ${told(value)}`);
    if (value.length > most) return flaws.add(path, `has ${value.length} elements; ${most} is the most`);
    for (const [index, item] of value.entries()) check(item, pointer(path, index), flaws);
  };
}

/** A list that names at least one thing: an empty one would be ignored. */
export function someOf(check: Check, most: number): Check {
  const all = listOf(check, most);
  return (value, path, flaws) => {
    if (Array.isArray(value) && value.length === 0) flaws.add(path, 'is empty, and has no effect; remove it');
    else all(value, path, flaws);
  };
}

export interface Members {
  readonly required?: { readonly [name: string]: Check };
  readonly optional?: { readonly [name: string]: Check };
  /** Known keys that are refused, and why. */
  readonly refused?: { readonly [name: string]: string };
}

/** An object of exactly these members; any other key is a flaw. */
export function fields({ required = {}, optional = {}, refused = {} }: Members): Check {
  const checks = new Map(Object.entries({ ...required, ...optional }));
  const known = [...checks.keys()];
  return (value, path, flaws) => {
    if (!isObject(value)) return flaws.add(path, `must be an object, not ${told(value)}`);
    for (const [key, member] of Object.entries(value)) {
      const check = checks.get(key);
      const place = pointer(path, key);
      if (check !== undefined) check(member, place, flaws);
      else if (Object.hasOwn(refused, key)) flaws.add(place, refused[key] ?? '');
      else unknown(key, place, known, flaws);
    }
    for (const key of Object.keys(required)) {
      if (!Object.hasOwn(value, key)) flaws.add(pointer(path, key), 'is required');
    }
  };
}

function unknown(key: string, place: string, known: readonly string[], flaws: Flaws): void {
  const reason = flaws.full ? '' : `is not a known key; known here: ${known.join(', ')}`;
  flaws.add(place, `${reason}${flaws.full ? '' : suggest(nearest(key, known))}`);
}

export function suggest(meant: string | undefined): string {
  return meant === undefined ? '' : `; did you mean "${meant}"?`;
}
