/**
 * The compiled form of a schema: a tree of closures, one per keyword. `check` is the hot path and returns a boolean.
 * `explain` runs only for an invalid value and reports where and why. No code is generated from text.
 */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { LinearPattern } from '../linear-pattern.js';

/** One reason why a value is invalid. */
export interface SchemaIssue {
  /** A JSON Pointer to the invalid part. */
  readonly path: string;
  /** What the part must be, as the end of a sentence. */
  readonly message: string;
  /** The keyword that is violated. */
  readonly keyword?: string;
}

/** An object of unknown shape. */
export type UnknownObject = { readonly [key: string]: unknown };

/**
 * Returns true if a value is valid. `evaluated` collects the locations that were evaluated; it is present only if an
 * `unevaluated…` keyword needs them.
 */
export type SchemaCheck = (value: unknown, evaluated?: EvaluatedLocations) => boolean;

/** Reports why a value is invalid. `at` is the JSON Pointer of the value. */
export type ExplainIssues = (value: unknown, at: string, report: IssueReport, evaluated?: EvaluatedLocations) => void;

/** A compiled keyword or schema. */
export interface SchemaRule {
  readonly check: SchemaCheck;
  readonly explain: ExplainIssues;
}

/** The type that a schema requires; 0 is any. A number, because comparing types dominates validation. */
export type TypeCode = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7;

/** The codes of the values of the keyword `type`. */
export const typeCodes: { readonly [type: string]: TypeCode } = {
  string: 1,
  number: 2,
  integer: 3,
  boolean: 4,
  object: 5,
  array: 6,
  null: 7,
};

/** True if a value has the type of a code. Integers are numbers without a fraction, so 1.0 is one. */
export function hasType(typeCode: TypeCode, value: unknown): boolean {
  switch (typeCode) {
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
 * A compiled schema. `check` is equivalent to `hasType(typeCode, value)` and `checkRest`, which accepts every value if
 * it is undefined; rules of enclosing schemas call these two directly to save a call. Its members are mutable, because
 * a reference may point to a schema before it is compiled.
 */
export interface CompiledSchema extends SchemaRule {
  check: SchemaCheck;
  explain: ExplainIssues;
  typeCode: TypeCode;
  checkRest: SchemaCheck | undefined;
}

/** The context in which a keyword is compiled. */
export interface KeywordContext {
  /** The schema that the keyword is in. */
  readonly schema: { readonly [keyword: string]: Json };
  /** Compiles a subschema for the same value. */
  compileInPlace(schema: Json): CompiledSchema;
  /** Compiles a subschema for a part of the value. */
  compileChild(schema: Json): CompiledSchema;
  /** Resolves and compiles a reference. */
  compileReference(reference: string, isDynamic: boolean): CompiledSchema;
  /** Compiles a regular expression. */
  compilePattern(source: string): LinearPattern;
}

/** Compiles a keyword. Its value is valid under the metaschema. Returns undefined if there is nothing to check. */
export type KeywordCompiler = (context: KeywordContext, value: Json) => SchemaRule | undefined;

/** The members and items of a value that keywords have evaluated. */
export class EvaluatedLocations {
  readonly propertyNames = new Set<string>();
  readonly itemIndexes = new Set<number>();
  /** All items before this index are evaluated. */
  evaluatedPrefix = 0;

  /** Adds the locations of `other`. */
  merge(other: EvaluatedLocations): void {
    for (const key of other.propertyNames) this.propertyNames.add(key);
    for (const index of other.itemIndexes) this.itemIndexes.add(index);
    this.evaluatedPrefix = Math.max(this.evaluatedPrefix, other.evaluatedPrefix);
  }
}

const MAX_ISSUES = 20;
const MAX_PATH_CHARS = 300;

/** The first issues of a value, at most MAX_ISSUES. */
export class IssueReport {
  readonly issues: SchemaIssue[] = [];

  /** True if no further issue is recorded. */
  get isFull(): boolean {
    return this.issues.length >= MAX_ISSUES;
  }

  /** Records an issue, unless the report is full. */
  add(at: string, message: string, keyword?: string): void {
    if (this.isFull) return;
    const path = at.length > MAX_PATH_CHARS ? `${at.slice(0, MAX_PATH_CHARS)}…` : at;
    this.issues.push(keyword === undefined ? { path, message } : { path, message, keyword });
  }
}

/** Returns the names of the own members that are not undefined. JSON omits undefined members. */
export function definedNames(value: UnknownObject): string[] {
  return Object.keys(value).filter((name) => value[name] !== undefined);
}

/** Returns the JSON Pointer of a member or an item. */
export function appendPointer(at: string, name: string | number): string {
  return `${at}/${typeof name === 'number' ? name : name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Returns a rule with one fixed message. */
export function assertionRule(keyword: string, check: SchemaCheck, message: string): SchemaRule {
  return { check, explain: (_, at, report) => report.add(at, message, keyword) };
}

/** A part of a value with its schema, and its member name or index. */
export type RulePart = readonly [rule: SchemaRule, value: unknown, name: string | number];

/**
 * Returns a rule that requires parts of a value to be valid. `check` checks them; `parts` lists them for the
 * explanation.
 */
export function eachPartRule(
  check: SchemaCheck,
  parts: (value: never, evaluated?: EvaluatedLocations) => readonly RulePart[],
): SchemaRule {
  return {
    check,
    explain: (value, at, report, evaluated) => {
      for (const [rule, part, name] of parts(value as never, evaluated)) {
        if (report.isFull) return;
        if (!rule.check(part)) rule.explain(part, appendPointer(at, name), report);
      }
    },
  };
}

/** Returns a value from a schema as JSON text for messages, truncated. */
export function quoteJson(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
