/**
 * JSON Schema draft 2020-12, for the inputs and outputs of loops. A schema is checked when it is registered. It is
 * compiled to closures, at the latest on first use; schemas with the same content share the result. `format` and the
 * `content…` keywords are annotations only, which is the draft's default. Validation never changes the value and does
 * not apply defaults.
 */

import { BoundedCache } from '../base/bounded-cache.js';
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import { DRAFT_2020_12, metaschemas } from './metaschema.js';
import { type CompilationResult, compileRules } from './schema/compile.js';
import { isSchemaObject, MalformedSchemaError, SchemaDocuments, type SchemaObject } from './schema/documents.js';
import { IssueReport, type SchemaIssue } from './schema/rule.js';
import { resetSteps, StepLimitError } from './schema/step-limit.js';
import { copyAsJson } from './value.js';

export type { SchemaIssue } from './schema/rule.js';

/** A compiled schema. */
export interface Validator {
  /** A private copy of the schema. */
  readonly schema: JsonSchema;
  /** Returns true if the value is valid. */
  isValid(value: Json | undefined): boolean;
  /** Returns the first reasons, at most 20, why the value is invalid; none if it is valid. */
  issues(value: Json | undefined): readonly SchemaIssue[];
}

interface SchemaOptions {
  /** Documents that the schema may refer to, by URI. */
  readonly documents?: { readonly [uri: string]: JsonSchema };
}

const MAX_SCHEMA_CHARS = 1024 * 1024;
const MAX_SCHEMA_DEPTH = 200;
const MAX_VALUE_DEPTH = 256;
const MAX_NAMED_ISSUES = 5;

const validatorCache = new BoundedCache<Validator>(16 * MAX_SCHEMA_CHARS);

/**
 * Compiles a schema. Throws DEFINITION_INVALID with the reason and the location if it is malformed, too large or too
 * deep; `location` is the JSON Pointer of the schema in its definition.
 */
export function compileSchema(schema: unknown, location: string, options: SchemaOptions = {}): Validator {
  try {
    const { documents, ...unknown } = options;
    const [name] = Object.keys(unknown);
    if (name !== undefined) throw new MalformedSchemaError('', `there is no option "${name}"`);
    const { document, text } = copySchema(schema, '');
    if (documents !== undefined) return createValidator(document, documents);
    return validatorCache.getOrCreate(text, () => createValidator(document, {}));
  } catch (error) {
    if (!(error instanceof MalformedSchemaError)) throw error;
    throw schemaError(error, location);
  }
}

/**
 * Returns the error for a malformed schema. A pointer into another document starts with the URI of that document, and
 * is not relative to `location`.
 */
function schemaError({ pointer, message: reason }: MalformedSchemaError, location: string): LoopError {
  const path = /^(?:\/|$)/.test(pointer) ? `${location}${pointer}` : pointer;
  const message = `The schema${path === '' ? '' : ` at ${path}`} cannot be used: ${reason}.`;
  return new LoopError('DEFINITION_INVALID', message, { path, reason });
}

/**
 * Returns a validation function for the kernel: it returns the value, or throws a LoopError with this code and the
 * issues.
 */
export function createSchemaCheck(
  validator: Validator,
  code: 'INPUT_VALIDATION_FAILED' | 'OUTPUT_VALIDATION_FAILED',
  loopId: string,
): (value: unknown) => unknown {
  const side = code === 'INPUT_VALIDATION_FAILED' ? 'input' : 'output';
  return (value) => {
    if (validator.isValid(value as Json)) return value;
    const issues = validator.issues(value as Json);
    const named = issues
      .slice(0, MAX_NAMED_ISSUES)
      .map(({ path, message }) => `${path === '' ? 'it' : path} ${message}`);
    const more = issues.length > MAX_NAMED_ISSUES ? `; and ${issues.length - MAX_NAMED_ISSUES} more` : '';
    const message = `The ${side} of "${loopId}" does not fit its schema: ${named.join('; ')}${more}.`;
    throw new LoopError(code, message, { errors: issues.map((issue) => ({ ...issue })) });
  };
}

/**
 * Returns a private copy of a schema and its text. Throws MalformedSchemaError if it is not a schema, or is too large
 * or nested too deeply.
 */
function copySchema(schema: unknown, pointer: string): { readonly document: JsonSchema; readonly text: string } {
  let document: Json | undefined;
  try {
    document = copyAsJson(schema, 'a schema');
  } catch (error) {
    if (!(error instanceof LoopError)) throw error;
    const { reason } = error.data as { readonly reason: string };
    throw new MalformedSchemaError(pointer, reason);
  }
  if (typeof document !== 'boolean' && !isSchemaObject(document)) {
    throw new MalformedSchemaError(pointer, 'a schema is an object or a boolean');
  }
  if (isDeeperThan(document, MAX_SCHEMA_DEPTH))
    throw new MalformedSchemaError(pointer, `it is nested deeper than ${MAX_SCHEMA_DEPTH}`);
  const text = JSON.stringify(document);
  if (text.length > MAX_SCHEMA_CHARS)
    throw new MalformedSchemaError(pointer, `it is larger than ${MAX_SCHEMA_CHARS} characters`);
  return { document, text };
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (const item of value) if (isDeeperThan(item, levels - 1)) return true;
    return false;
  }
  for (const name in value) if (isDeeperThan((value as { [name: string]: unknown })[name], levels - 1)) return true;
  return false;
}

function createValidator(schema: JsonSchema, external: { readonly [uri: string]: JsonSchema }): Validator {
  const find = (uri: string) =>
    Object.hasOwn(external, uri) ? copySchema(external[uri], `${uri}#`).document : metaschemaOf(uri);
  const documents = new SchemaDocuments(find, assertFitsMetaschema);
  if (isSchemaObject(schema)) documents.add(schema);
  if (documents.canCompileLazily) return lazyValidator(schema, () => compileRules(documents, schema));
  const compiled = compileRules(documents, schema);
  return lazyValidator(schema, () => compiled);
}

function metaschemaOf(uri: string): JsonSchema | undefined {
  return copyAsJson(metaschemas.get(uri), 'a metaschema') as JsonSchema | undefined;
}

/** Returns a validator that compiles on first use, because most definitions of a large set are never used. */
function lazyValidator(schema: JsonSchema, compile: () => CompilationResult): Validator {
  let state: CompilationResult | (() => CompilationResult) = compile;
  const compiled = (): CompilationResult => {
    if (typeof state === 'function') state = state();
    return state;
  };
  let check = (value: unknown): boolean => {
    const { root, hasReferences, isRecursive } = compiled();
    check =
      hasReferences || isRecursive ? (part) => failureReason(part, isRecursive, root.check) === undefined : root.check;
    return check(value);
  };
  return { schema, isValid: (value) => check(value), issues: (value) => issuesOf(value, compiled()) };
}

function issuesOf(value: unknown, { root, isRecursive }: CompilationResult): readonly SchemaIssue[] {
  const reason = failureReason(value, isRecursive, root.check);
  if (reason === undefined) return [];
  const report = new IssueReport();
  const explain = () => {
    root.explain(value, '', report);
    return false;
  };
  if (reason === DOES_NOT_FIT) failureReason(value, isRecursive, explain);
  if (report.issues.length === 0) report.add('', reason);
  return report.issues;
}

const DOES_NOT_FIT = 'does not fit';

/**
 * Runs a check and returns the general reason for its failure; undefined if it succeeds. A value that is nested too
 * deeply for a recursive schema is not checked.
 */
function failureReason(value: unknown, isRecursive: boolean, check: (value: unknown) => boolean): string | undefined {
  if (isRecursive && isDeeperThan(value, MAX_VALUE_DEPTH)) return `is nested deeper than ${MAX_VALUE_DEPTH}`;
  resetSteps();
  try {
    return check(value) ? undefined : DOES_NOT_FIT;
  } catch (error) {
    if (error instanceof StepLimitError || error instanceof RangeError)
      return 'takes too long to check with this schema';
    throw error;
  }
}

let metaschemaValidator: Validator | undefined;

/** Throws a MalformedSchemaError with the first issue of a schema that is invalid under the metaschema. */
function assertFitsMetaschema(schema: SchemaObject, pointer: string): void {
  metaschemaValidator ??= createMetaschemaValidator();
  if (metaschemaValidator.isValid(schema)) return;
  const [issue] = metaschemaValidator.issues(schema);
  throw new MalformedSchemaError(
    `${pointer}${issue?.path ?? ''}`,
    `it ${issue?.message ?? 'does not fit the metaschema'}`,
  );
}

function createMetaschemaValidator(): Validator {
  const schema = metaschemaOf(DRAFT_2020_12) as SchemaObject;
  const documents = new SchemaDocuments(metaschemaOf, () => {});
  documents.add(schema, DRAFT_2020_12);
  return lazyValidator(schema, () => compileRules(documents, schema));
}
