/**
 * What a schema becomes: a tree of plain closures, one for each keyword. `check` is the hot path and says yes or no;
 * `explain` runs only after a no, asks the same checks again, and says where and why. Nothing here runs text as code.
 */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { LinearPattern } from '../linear-pattern.js';

/** One reason why a value does not fit: where (a JSON pointer), what it must be, and the keyword that asks for it. */
export interface SchemaIssue {
  readonly path: string;
  readonly message: string;
  readonly keyword?: string;
}

export type UnknownObject = { readonly [key: string]: unknown };

/** Whether a value fits. `seen` collects what was looked at, and is there only below an `unevaluated…` keyword. */
export type SchemaCheck = (value: unknown, seen?: EvaluatedLocations) => boolean;

/** Reports why a value does not fit. */
export type ExplainIssues = (value: unknown, at: string, report: IssueReport, seen?: EvaluatedLocations) => void;

export interface SchemaRule {
  readonly check: SchemaCheck;
  readonly explain: ExplainIssues;
}

/** The type that a schema asks for; a code, because comparing it is what checking does most. */
export type TypeCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;

export const typeCodes: { readonly [type: string]: TypeCode } = {
  string: 1,
  number: 2,
  integer: 3,
  boolean: 4,
  object: 5,
  array: 6,
  null: 7,
};

/** Whether a value is of the kind; everything is of kind 0. */
export function hasType(kind: TypeCode, value: unknown): boolean {
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
export interface CompiledSchema extends SchemaRule {
  check: SchemaCheck;
  explain: ExplainIssues;
  typeCode: TypeCode;
  checkRest: SchemaCheck | undefined;
}

/** What a keyword needs to know of the schema it stands in; asking for a part makes it. */
export interface KeywordContext {
  readonly schema: { readonly [keyword: string]: Json };
  /** A subschema for the same value. */
  compileInPlace(schema: Json): CompiledSchema;
  /** A subschema for a part of the value. */
  compileChild(schema: Json): CompiledSchema;
  compileReference(reference: string, dynamic: boolean): CompiledSchema;
  compilePattern(source: string): LinearPattern;
}

/** Makes the rule of a keyword; its value is known to fit the metaschema. */
export type KeywordCompiler = (site: KeywordContext, value: Json) => SchemaRule | undefined;

/** Which members and items of a value some keyword has looked at. */
export class EvaluatedLocations {
  readonly propertyNames = new Set<string>();
  readonly itemIndexes = new Set<number>();
  /** All items before this one are seen. */
  evaluatedPrefix = 0;

  merge(other: EvaluatedLocations): void {
    for (const key of other.propertyNames) this.propertyNames.add(key);
    for (const index of other.itemIndexes) this.itemIndexes.add(index);
    this.evaluatedPrefix = Math.max(this.evaluatedPrefix, other.evaluatedPrefix);
  }
}

const MAX_ISSUES = 20;
const MAX_PATH_CHARS = 300;

/** The first flaws of a value. */
export class IssueReport {
  readonly issues: SchemaIssue[] = [];

  get isFull(): boolean {
    return this.issues.length >= MAX_ISSUES;
  }

  add(at: string, message: string, keyword?: string): void {
    if (this.isFull) return;
    const path = at.length > MAX_PATH_CHARS ? `${at.slice(0, MAX_PATH_CHARS)}…` : at;
    this.issues.push(keyword === undefined ? { path, message } : { path, message, keyword });
  }
}

/** The names of the members that are there: an undefined one would not be in the JSON. */
export function definedNames(value: UnknownObject): string[] {
  return Object.keys(value).filter((name) => value[name] !== undefined);
}

/** The pointer to a member or an item. */
export function appendPointer(at: string, name: string | number): string {
  return `${at}/${typeof name === 'number' ? name : name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** A rule that says yes or no, and always the same in the case of no. */
export function assertionRule(keyword: string, check: SchemaCheck, message: string): SchemaRule {
  return { check, explain: (_, at, report) => report.add(at, message, keyword) };
}

/** A part of a value, its place, and the schema for it. */
export type RulePart = readonly [rule: SchemaRule, value: unknown, place: string | number];

/** A rule that is kept by every one of the parts. */
export function eachPartRule(
  check: SchemaCheck,
  parts: (value: never, seen?: EvaluatedLocations) => readonly RulePart[],
): SchemaRule {
  return {
    check,
    explain: (value, at, report, seen) => {
      for (const [rule, part, place] of parts(value as never, seen)) {
        if (report.isFull) return;
        if (!rule.check(part)) rule.explain(part, appendPointer(at, place), report);
      }
    },
  };
}

/** A text of the schema as it may be shown: JSON, not too long. */
export function quoteJson(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
