/**
 * Input and output schemas of loops in code: a JSON Schema, or any schema that implements Standard Schema (zod,
 * valibot, arktype, …), from which types are inferred. If such a schema can be converted to JSON Schema, the definition
 * contains the result.
 */

import { LoopError } from '../base/errors.js';
import { compileSchema, createSchemaCheck, type SchemaIssue, type Validator } from '../json/schema.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import { isThenable } from '../protocol/thenable.js';
import type { JsonSchemaType } from './json-schema-inference.js';

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type StandardResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** The parts of the Standard Schema interface that are used here. See https://standardschema.dev. */
export interface StandardSchema<I = unknown, O = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: I; readonly output: O } | undefined;
    readonly validate: (value: unknown) => StandardResult | Promise<StandardResult>;
  };
}

/** A Standard Schema or a JSON Schema. */
export type AnySchema = StandardSchema | JsonSchema;

/** The type that a schema accepts. It is inferred from a JSON Schema literal too. */
export type InputOf<S> = S extends StandardSchema<infer I, unknown> ? I : JsonSchemaType<S>;
/** The type that a schema produces. It is inferred from a JSON Schema literal too. */
export type OutputOf<S> = S extends StandardSchema<unknown, infer O> ? O : JsonSchemaType<S>;

/** How many issues a validation error contains at most. */
const MAX_REPORTED_ISSUES = 20;

type ValidationCode = 'INPUT_VALIDATION_FAILED' | 'OUTPUT_VALIDATION_FAILED';

/** A compiled input or output schema. */
export interface IoSchema {
  readonly validator: Validator;
  /**
   * Returns the parsed value. Throws INPUT_VALIDATION_FAILED or OUTPUT_VALIDATION_FAILED if it is invalid, and
   * DEFINITION_INVALID if the schema validates asynchronously.
   */
  readonly check: (value: unknown) => unknown;
  /** True if the check returns its argument and is fast, as for JSON Schema. Other schemas give no such guarantee. */
  readonly isFast: boolean;
}

/**
 * Compiles the input or output schema of the loop `id`; `code` determines which of the two. Throws DEFINITION_INVALID
 * if a JSON Schema is malformed.
 */
export function compileIoSchema(schema: AnySchema, code: ValidationCode, id: string): IoSchema {
  const side = code === 'INPUT_VALIDATION_FAILED' ? 'input' : 'output';
  if (!isStandardSchema(schema)) {
    const validator = compileSchema(schema, `${id}: ${side}`);
    return { validator, check: createSchemaCheck(validator, code, id), isFast: true };
  }
  const { validate } = schema['~standard'];
  const validateSync = (value: unknown): StandardResult => {
    const result = validate(value);
    // A promise that is taken for a result has no issues, so it would accept every value.
    if (!isThenable(result)) return result;
    // The promise is abandoned: its rejection must not end the process.
    Promise.resolve(result).catch(() => {});
    const message = `The ${side} schema of "${id}" is asynchronous: use a schema that validates synchronously.`;
    throw new LoopError('DEFINITION_INVALID', message);
  };
  const issuesOf = ({ issues = [] }: StandardResult): readonly SchemaIssue[] =>
    issues.slice(0, MAX_REPORTED_ISSUES).map(toSchemaIssue);
  const validator: Validator = {
    schema: jsonSchemaOf(schema, side),
    isValid: (value) => validateSync(value).issues === undefined,
    issues: (value) => issuesOf(validateSync(value)),
  };
  const check = (value: unknown): unknown => {
    const result = validateSync(value);
    if (result.issues === undefined) return result.value;
    const errors = issuesOf(result);
    const description = errors.map(({ path, message }) => `${path || '/'}: ${message}`).join('; ');
    throw new LoopError(code, `The ${side} of "${id}" does not fit its schema: ${description}`, {
      errors: errors as unknown as Json,
    });
  };
  return { validator, check, isFast: false };
}

function isStandardSchema(schema: AnySchema): schema is StandardSchema {
  return (typeof schema === 'object' || typeof schema === 'function') && schema !== null && '~standard' in schema;
}

function toSchemaIssue({ message, path = [] }: StandardIssue): SchemaIssue {
  const names = path.map((part) => (typeof part === 'object' ? part.key : part));
  const pointer = names.map((name) => `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  return { path: pointer, message };
}

/**
 * Converts a Standard Schema to JSON Schema, if its library supports that; else returns the schema that accepts
 * anything.
 */
function jsonSchemaOf(schema: StandardSchema, side: 'input' | 'output'): JsonSchema {
  type Converters = { readonly [side in 'input' | 'output']?: (options: object) => unknown };
  const convert = (schema['~standard'] as { jsonSchema?: Converters }).jsonSchema?.[side];
  try {
    return (convert?.({ target: 'draft-2020-12' }) ?? true) as JsonSchema;
  } catch {
    return true;
  }
}
