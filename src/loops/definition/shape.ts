/**
 * Building blocks for checks of JSON documents. A check examines a value and adds each issue with its JSON pointer.
 * Checks never throw and never change the value. Each check also has the JSON Schema of what it accepts, from which the
 * published schema of definitions is generated.
 */

import { type ErrorCode, LoopError } from '../../base/errors.js';
import { nearestWord } from '../../base/nearest-word.js';
import { numbers, wholeNumbers } from '../../base/number-range.js';
import { isObject } from '../../base/own-property.js';
import type { Json, JsonObject } from '../../protocol/json.js';

/** One thing that is wrong with a definition, and where. */
export interface DefinitionIssue {
  /** A JSON pointer; empty for the whole document. */
  readonly path: string;
  readonly reason: string;
}

/** Adds the issues of `value`, which is at the JSON pointer `path`. */
type AddIssues = (value: Json, path: string, issues: DefinitionIssues) => void;

/** Adds the issues of a value, and describes the accepted values. */
export interface DefinitionCheck extends AddIssues {
  /**
   * Returns the JSON Schema of the accepted values. It accepts some values that the check refuses, because JSON Schema
   * cannot express every rule, and refuses none that the check accepts.
   */
  readonly schema: () => JsonObject;
}

/** Returns a check with its JSON Schema. */
export function withSchema(schema: () => JsonObject, addIssues: AddIssues): DefinitionCheck {
  return Object.assign(addIssues, { schema });
}

const MAX_ISSUES = 20;
const MAX_ISSUE_CHARS = 400;

/** Collects the issues of a document. Only the first 20 are kept, but all are counted. */
export class DefinitionIssues {
  readonly list: DefinitionIssue[] = [];
  /** The number of issues, including those that are not kept. */
  count = 0;
  private firstError: LoopError | undefined;

  /** Adds an issue, unless it was added before. Its path and reason are truncated. */
  add(path: string, reason: string): void {
    const issue = { path: truncateText(path, MAX_ISSUE_CHARS), reason: truncateText(reason, MAX_ISSUE_CHARS) };
    if (this.list.some((other) => other.path === issue.path && other.reason === issue.reason)) return;
    this.count++;
    if (!this.isFull) this.list.push(issue);
  }

  /** Adds the issues of an error DEFINITION_INVALID: its flaws, or its path and reason. */
  addError(error: LoopError): void {
    this.firstError ??= error;
    const {
      path = '',
      reason = error.message,
      flaws,
    } = (error.data ?? {}) as Partial<DefinitionIssue> & {
      readonly flaws?: readonly DefinitionIssue[];
    };
    for (const issue of flaws ?? [{ path, reason }]) this.add(pointerIn(issue.path), issue.reason);
  }

  /** Returns the result of a check that throws DEFINITION_INVALID; adds the issues and returns undefined if it throws. */
  attempt<T>(check: () => T): T | undefined {
    try {
      return check();
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      this.addError(thrown);
      return undefined;
    }
  }

  /** Returns the first error that was added, with the issues of all of them in its data; undefined if there is none. */
  addedError(): LoopError | undefined {
    const { firstError: first, count } = this;
    if (first === undefined || count === 1) return first;
    const flaws = this.list.map((issue) => ({ path: issue.path, reason: issue.reason }));
    return new LoopError(first.code, first.message, { ...(first.data as JsonObject | undefined), flaws });
  }

  /** True if further issues are only counted, so that a check need not build their messages. */
  get isFull(): boolean {
    return this.list.length >= MAX_ISSUES;
  }

  /**
   * Returns DEFINITION_INVALID, or another code, for the first issue, with all kept issues in its data as `flaws`.
   * `subject` is what the document should be.
   */
  toError(where: string, subject = 'definition', code: ErrorCode = 'DEFINITION_INVALID'): LoopError {
    const { path, reason } = this.list[0] ?? { path: '', reason: 'it has no issues' };
    const location = path === '' ? '' : `at ${path}: `;
    const more = this.count === 1 ? '' : ` (${this.count - 1} more; see data.flaws)`;
    const flaws = this.list.map((issue) => ({ path: issue.path, reason: issue.reason }));
    const message = `${where} is not a valid ${subject}: ${location}${reason}.${more}`;
    return new LoopError(code, message, { path, reason, flaws, where });
  }
}

/**
 * Returns the JSON pointer in the path of an error, which begins with the file or the id of the definition if it is for
 * readers.
 */
export function pointerIn(path: string): string {
  return /: (\/(?:inputSchema|outputSchema|composite).*)$/s.exec(path)?.[1] ?? path;
}

/**
 * Truncates a text to `length` characters and an ellipsis, and replaces lone surrogates, including those that
 * truncation creates.
 */
function truncateText(text: string, length: number): string {
  const short = text.length > length ? `${text.slice(0, length)}…` : text;
  return short.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** Returns a text in quotes, truncated for messages. */
export function quoteText(text: string): string {
  return JSON.stringify(truncateText(text, 60));
}

/** Appends a member name or an index to a JSON pointer. */
export function appendPointer(path: string, member: string | number): string {
  return `${path}/${String(member).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Describes a value for messages. */
function describeValue(value: Json): string {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return typeof value === 'string' ? quoteText(value) : String(value);
}

/** Returns a check that accepts a value if `holds` returns true. `expected` completes the message "must be …". */
export function checkThat(expected: string, schema: JsonObject, holds: (value: Json) => boolean): DefinitionCheck {
  return withSchema(
    () => schema,
    (value, path, issues) => {
      if (!holds(value)) issues.add(path, `must be ${expected}, not ${describeValue(value)}`);
    },
  );
}

/** Accepts any string. */
export const anyText = checkThat('text', { type: 'string' }, (value) => typeof value === 'string');
/** Accepts any string that is not blank. */
export const nonBlankText = checkThat(
  'text that is not blank',
  { type: 'string', pattern: '\\S' },
  (value) => typeof value === 'string' && value.trim() !== '',
);
/** Accepts any object. */
export const anyObject = checkThat('an object', { type: 'object' }, isObject);

/** Accepts any value. */
export const anyValue: DefinitionCheck = withSchema(
  () => ({}),
  () => undefined,
);

/** Returns a check of a text, or of an object. `expected` completes the message "must be …" for any other value. */
export function eitherOf(expected: string, text: DefinitionCheck, object: DefinitionCheck): DefinitionCheck {
  return withSchema(
    () => ({ anyOf: [text.schema(), object.schema()] }),
    (value, path, issues) => {
      if (isObject(value)) return object(value, path, issues);
      if (typeof value === 'string' || typeof value === 'number') return text(value, path, issues);
      issues.add(path, `must be ${expected}, not ${describeValue(value)}`);
    },
  );
}

/** Returns a check that accepts a string that matches a pattern. `expected` completes the message "must be …". */
export function textMatching(expected: string, pattern: RegExp): DefinitionCheck {
  const schema = { type: 'string', pattern: pattern.source };
  return checkThat(expected, schema, (value) => typeof value === 'string' && pattern.test(value));
}

/** Returns a check that accepts a number from `min` to `max`. */
export function numberBetween(min: number, max: number): DefinitionCheck {
  const { description, includes } = numbers(min, max);
  return checkThat(description, { type: 'number', minimum: min, maximum: max }, includes);
}

/** Returns a check that accepts an integer from `min` to `max`. */
export function integerBetween(min: number, max: number): DefinitionCheck {
  const { description, includes } = wholeNumbers(min, max);
  return checkThat(description, { type: 'integer', minimum: min, maximum: max }, includes);
}

/** Returns a check that accepts one of the given strings. */
export function oneOf(options: readonly string[]): DefinitionCheck {
  return withSchema(
    () => ({ enum: options }),
    (value, path, issues) => {
      if (typeof value === 'string' && options.includes(value)) return;
      const nearest = typeof value === 'string' ? nearestWord(value, options) : undefined;
      issues.add(path, `must be one of ${options.join(', ')}, not ${describeValue(value)}${didYouMean(nearest)}`);
    },
  );
}

/** Returns a check that accepts a list of at most `maxItems` items that all pass `check`. */
export function listOf(check: DefinitionCheck, maxItems: number): DefinitionCheck {
  return withSchema(
    () => ({ type: 'array', items: check.schema(), maxItems }),
    (value, path, issues) => {
      if (!Array.isArray(value)) return issues.add(path, `must be a list, not ${describeValue(value)}`);
      if (value.length > maxItems) return issues.add(path, `has ${value.length} elements; the maximum is ${maxItems}`);
      for (const [index, item] of value.entries()) check(item, appendPointer(path, index), issues);
    },
  );
}

/** Returns a check like `listOf` that also refuses an empty list, because it would have no effect. */
export function nonEmptyListOf(check: DefinitionCheck, maxItems: number): DefinitionCheck {
  const checkItems = listOf(check, maxItems);
  return withSchema(
    () => ({ ...checkItems.schema(), minItems: 1 }),
    (value, path, issues) => {
      if (Array.isArray(value) && value.length === 0) issues.add(path, 'is empty, and has no effect; remove it');
      else checkItems(value, path, issues);
    },
  );
}

interface ObjectShape {
  readonly required?: { readonly [name: string]: DefinitionCheck };
  readonly optional?: { readonly [name: string]: DefinitionCheck };
  /** Keys that are refused with a specific reason. */
  readonly refused?: { readonly [name: string]: string };
  /** Required keys whose absence has a specific reason. */
  readonly missing?: { readonly [name: string]: string };
}

/**
 * Returns a check that accepts an object with all required members and any of the optional ones. Every other key is an
 * issue.
 */
export function objectOf({ required = {}, optional = {}, refused = {}, missing = {} }: ObjectShape): DefinitionCheck {
  const checks = new Map(Object.entries({ ...required, ...optional }));
  const knownKeys = [...checks.keys()];
  const schema = () => ({ ...membersSchema(required, optional), additionalProperties: false });
  return withSchema(schema, (value, path, issues) => {
    if (!isObject(value)) return issues.add(path, `must be an object, not ${describeValue(value)}`);
    for (const [key, member] of Object.entries(value)) {
      const check = checks.get(key);
      const memberPath = appendPointer(path, key);
      if (check !== undefined) check(member, memberPath, issues);
      else if (Object.hasOwn(refused, key)) issues.add(memberPath, refused[key] ?? '');
      // guard: unknown-hosted-member-refused
      else addUnknownKey(key, memberPath, knownKeys, issues);
    }
    for (const key of Object.keys(required)) {
      if (!Object.hasOwn(value, key)) issues.add(appendPointer(path, key), missing[key] ?? 'is required');
    }
  });
}

/** Returns a conditional JSON Schema. Its members are set by name, because an object with a `then` looks like a promise. */
export function conditionalSchema(
  condition: JsonObject,
  consequence: JsonObject,
  alternative?: JsonObject,
): JsonObject {
  return Object.fromEntries([
    ['if', condition],
    ['then', consequence],
    ...(alternative === undefined ? [] : [['else', alternative] as const]),
  ]);
}

/** Returns the JSON Schema of an object with these members, and any others. */
export function membersSchema(
  required: NonNullable<ObjectShape['required']>,
  optional: NonNullable<ObjectShape['optional']> = {},
): JsonObject {
  const members = Object.entries({ ...required, ...optional });
  const requiredKeys = Object.keys(required);
  return {
    type: 'object',
    properties: Object.fromEntries(members.map(([key, check]) => [key, check.schema()])),
    ...(requiredKeys.length > 0 && { required: requiredKeys }),
  };
}

function addUnknownKey(key: string, path: string, knownKeys: readonly string[], issues: DefinitionIssues): void {
  const reason = issues.isFull ? '' : `is not a known key; known here: ${knownKeys.join(', ')}`;
  issues.add(path, `${reason}${issues.isFull ? '' : didYouMean(nearestWord(key, knownKeys))}`);
}

/** Returns the end of a message that suggests another spelling; empty without a suggestion. */
export function didYouMean(suggestion: string | undefined): string {
  return suggestion === undefined ? '' : `; did you mean "${suggestion}"?`;
}
