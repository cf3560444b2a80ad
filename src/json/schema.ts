/**
 * JSON Schema, draft 2020-12: what goes into a loop and comes out of it. A schema is examined when it is registered, and
 * compiled into closures once for each distinct content. `format` and the `content…` keywords are annotations and assert
 * nothing, as the draft says by default. A check never changes the value and fills in no defaults.
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

/** A schema ready to check values. */
export interface Validator {
  readonly schema: JsonSchema;
  isValid(value: Json | undefined): boolean;
  /** Why the value does not fit: the first 20 reasons, none if it fits. */
  issues(value: Json | undefined): readonly SchemaIssue[];
}

export interface SchemaOptions {
  /** Documents that the schema may refer to, by address. */
  readonly documents?: { readonly [uri: string]: JsonSchema };
}

const MAX_SCHEMA_CHARS = 1024 * 1024;
const MAX_SCHEMA_DEPTH = 200;
const MAX_VALUE_DEPTH = 256;
const MAX_NAMED_ISSUES = 5;

const validatorCache = new BoundedCache<Validator>(16 * MAX_SCHEMA_CHARS);

/** The validator of a schema that stands at `where`; DEFINITION_INVALID says what is wrong with it and where. */
export function compileSchema(schema: unknown, where: string, options: SchemaOptions = {}): Validator {
  try {
    const { documents, ...unknown } = options;
    const [name] = Object.keys(unknown);
    if (name !== undefined) throw new MalformedSchemaError('', `there is no option "${name}"`);
    const { document, text } = copySchema(schema, '');
    if (documents !== undefined) return createValidator(document, documents);
    return validatorCache.getOrCreate(text, () => createValidator(document, {}));
  } catch (error) {
    if (!(error instanceof MalformedSchemaError)) throw error;
    throw schemaError(error, where);
  }
}

/** The place in another document is an address of its own. */
function schemaError({ pointer, message: reason }: MalformedSchemaError, where: string): LoopError {
  const path = /^(?:\/|$)/.test(pointer) ? `${where}${pointer}` : pointer;
  const message = `The schema${path === '' ? '' : ` at ${path}`} cannot be used: ${reason}.`;
  return new LoopError('DEFINITION_INVALID', message, { path, reason });
}

/** A check for the kernel: the value itself, or the code with what does not fit. */
export function createSchemaCheck(
  validator: Validator,
  code: 'INPUT_VALIDATION_FAILED' | 'OUTPUT_VALIDATION_FAILED',
  loopId: string,
): (value: unknown) => unknown {
  const side = code === 'INPUT_VALIDATION_FAILED' ? 'input' : 'output';
  return (value) => {
    if (validator.isValid(value as Json)) return value;
    const flaws = validator.issues(value as Json);
    const named = flaws
      .slice(0, MAX_NAMED_ISSUES)
      .map(({ path, message }) => `${path === '' ? 'it' : path} ${message}`);
    const more = flaws.length > MAX_NAMED_ISSUES ? `; and ${flaws.length - MAX_NAMED_ISSUES} more` : '';
    const message = `The ${side} of "${loopId}" does not fit its schema: ${named.join('; ')}${more}.`;
    throw new LoopError(code, message, { errors: flaws.map((flaw) => ({ ...flaw })) });
  };
}

/** A private copy of a schema, if it is one of bounded size, and its text: nobody can change it afterwards. */
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

function createValidator(schema: JsonSchema, known: { readonly [uri: string]: JsonSchema }): Validator {
  const find = (uri: string) =>
    Object.hasOwn(known, uri) ? copySchema(known[uri], `${uri}#`).document : metaschemaOf(uri);
  const library = new SchemaDocuments(find, assertFitsMetaschema);
  if (isSchemaObject(schema)) library.add(schema);
  if (library.canCompileLazily) return lazyValidator(schema, () => compileRules(library, schema));
  const compiled = compileRules(library, schema);
  return lazyValidator(schema, () => compiled);
}

function metaschemaOf(uri: string): JsonSchema | undefined {
  return copyAsJson(metaschemas.get(uri), 'a metaschema') as JsonSchema | undefined;
}

/** A validator that is made when it is first used; most definitions of a large set never are. */
function lazyValidator(schema: JsonSchema, make: () => CompilationResult): Validator {
  let made: CompilationResult | (() => CompilationResult) = make;
  const ready = (): CompilationResult => {
    if (typeof made === 'function') made = made();
    return made;
  };
  let check = (value: unknown): boolean => {
    const { root, hasReferences, isRecursive } = ready();
    check =
      hasReferences || isRecursive ? (part) => failureReason(part, isRecursive, root.check) === undefined : root.check;
    return check(value);
  };
  return { schema, isValid: (value) => check(value), issues: (value) => issuesOf(value, ready()) };
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

/** Why a check does not end in yes, told in general; undefined if it does. What is too deep is not even tried. */
function failureReason(value: unknown, recursive: boolean, check: (value: unknown) => boolean): string | undefined {
  if (recursive && isDeeperThan(value, MAX_VALUE_DEPTH)) return `is nested deeper than ${MAX_VALUE_DEPTH}`;
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

/** Throws the first thing in a schema that the metaschema does not allow. */
function assertFitsMetaschema(schema: SchemaObject, pointer: string): void {
  metaschemaValidator ??= createMetaschemaValidator();
  if (metaschemaValidator.isValid(schema)) return;
  const [flaw] = metaschemaValidator.issues(schema);
  throw new MalformedSchemaError(
    `${pointer}${flaw?.path ?? ''}`,
    `it ${flaw?.message ?? 'does not fit the metaschema'}`,
  );
}

function createMetaschemaValidator(): Validator {
  const schema = metaschemaOf(DRAFT_2020_12) as SchemaObject;
  const library = new SchemaDocuments(metaschemaOf, () => {});
  library.add(schema, DRAFT_2020_12);
  return lazyValidator(schema, () => compileRules(library, schema));
}
