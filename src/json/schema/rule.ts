/**
 * What a schema becomes: a tree of plain closures, one for each keyword. `check` is the hot path and says yes or no;
 * `explain` runs only after a no, asks the same checks again, and says where and why. Nothing here runs text as code.
 */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { LinearPattern } from '../pattern.js';

/** One reason why a value does not fit: where (a JSON pointer), what it must be, and the keyword that asks for it. */
export interface Flaw {
  readonly path: string;
  readonly message: string;
  readonly keyword?: string;
}

export type Fields = { readonly [key: string]: unknown };

/** Whether a value fits. `seen` collects what was looked at, and is there only below an `unevaluated…` keyword. */
export type Check = (value: unknown, seen?: Seen) => boolean;

/** Reports why a value does not fit. */
export type Explain = (value: unknown, at: string, report: Report, seen?: Seen) => void;

export interface Rule {
  readonly check: Check;
  readonly explain: Explain;
}

/** The type that a schema asks for; a code, because comparing it is what checking does most. */
export type Kind = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;

export const kinds: { readonly [type: string]: Kind } = {
  string: 1,
  number: 2,
  integer: 3,
  boolean: 4,
  object: 5,
  array: 6,
  null: 7,
};

/** Whether a value is of the kind; everything is of kind 0. */
export function isOf(kind: Kind, value: unknown): boolean {
  switch (kind) {
    case 0:
      return true;
    case 1:
      return typeof value === 'string';
    case 2:
      return typeof value === 'number' && Number.isFinite(value);
    case 3:
      return Number.isInteger(value);
    case 4:
      return typeof value === 'boolean';
    case 5:
      return isObject(value);
    case 6:
      return Array.isArray(value);
    case 7:
      return value === null;
  }
}

/**
 * A schema ready to check. `check` is `isOf(kind)` and then `rest`; the parts of a value are checked by these two, without
 * another call. A reference finds a schema before it is finished, and so asks it late.
 */
export interface Compiled extends Rule {
  check: Check;
  explain: Explain;
  kind: Kind;
  rest: Check | undefined;
}

/** What a keyword needs to know of the schema it stands in; asking for a part makes it. */
export interface Site {
  readonly schema: { readonly [keyword: string]: Json };
  /** A subschema for the same value. */
  here(schema: Json): Compiled;
  /** A subschema for a part of the value. */
  below(schema: Json): Compiled;
  refer(reference: string, dynamic: boolean): Compiled;
  pattern(source: string): LinearPattern;
}

/** Makes the rule of a keyword; its value is known to fit the metaschema. */
export type Maker = (site: Site, value: Json) => Rule | undefined;

/** Which members and items of a value some keyword has looked at. */
export class Seen {
  readonly keys = new Set<string>();
  readonly indexes = new Set<number>();
  /** All items before this one are seen. */
  items = 0;

  add(other: Seen): void {
    for (const key of other.keys) this.keys.add(key);
    for (const index of other.indexes) this.indexes.add(index);
    this.items = Math.max(this.items, other.items);
  }
}

const FLAWS = 20;
const PATH = 300;

/** The first flaws of a value. */
export class Report {
  readonly flaws: Flaw[] = [];

  get full(): boolean {
    return this.flaws.length >= FLAWS;
  }

  add(at: string, message: string, keyword?: string): void {
    if (this.full) return;
    const path = at.length > PATH ? `${at.slice(0, PATH)}…` : at;
    this.flaws.push(keyword === undefined ? { path, message } : { path, message, keyword });
  }
}

/** The names of the members that are there: an undefined one would not be in the JSON. */
export function namesOf(value: Fields): string[] {
  return Object.keys(value).filter((name) => value[name] !== undefined);
}

/** The pointer to a member or an item. */
export function below(at: string, name: string | number): string {
  return `${at}/${typeof name === 'number' ? name : name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** A rule that says yes or no, and always the same in the case of no. */
export function assertion(keyword: string, check: Check, message: string): Rule {
  return { check, explain: (_, at, report) => report.add(at, message, keyword) };
}

/** A part of a value, its place, and the schema for it. */
export type Part = readonly [rule: Rule, value: unknown, place: string | number];

/** A rule that is kept by every one of the parts. */
export function partwise(check: Check, parts: (value: never, seen?: Seen) => readonly Part[]): Rule {
  return {
    check,
    explain: (value, at, report, seen) => {
      for (const [rule, part, place] of parts(value as never, seen)) {
        if (report.full) return;
        if (!rule.check(part)) rule.explain(part, below(at, place), report);
      }
    },
  };
}

/** A text of the schema as it may be shown: JSON, not too long. */
export function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
