/**
 * The two ends of a loop in code. An end is a JSON Schema, or any schema that speaks Standard Schema (zod, valibot,
 * arktype, …), from which the types are inferred; where that can tell its JSON Schema, the definition shows it.
 */
import { LoopError } from '../base/errors.js';
import { compileSchema, createSchemaCheck, type SchemaIssue, type Validator } from '../json/schema.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type StandardResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** What we use of a schema that speaks Standard Schema. */
export interface StandardSchema<I = unknown, O = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: I; readonly output: O } | undefined;
    readonly validate: (value: unknown) => StandardResult | Promise<StandardResult>;
  };
}

/** What an end may be given as. */
export type AnySchema = StandardSchema | JsonSchema;

/** The type that a schema takes, and the type that it makes of it. */
export type InputOf<S> = S extends StandardSchema<infer I, unknown> ? I : unknown;
export type OutputOf<S> = S extends StandardSchema<unknown, infer O> ? O : unknown;

type ValidationCode = 'INPUT_VALIDATION_FAILED' | 'OUTPUT_VALIDATION_FAILED';

/** An end of a loop: how it is shown, how it is judged, and what the body gets. */
export interface IoSchema {
  readonly validator: Validator;
  readonly check: (value: unknown) => unknown;
  /** Whether the check returns what it is given and takes no time worth telling: ours does, of others nobody knows. */
  readonly isFast: boolean;
}

export function compileIoSchema(schema: AnySchema, code: ValidationCode, id: string): IoSchema {
  const side = code === 'INPUT_VALIDATION_FAILED' ? 'input' : 'output';
  if (!isStandardSchema(schema)) {
    const validator = compileSchema(schema, `${id}: ${side}`);
    return { validator, check: createSchemaCheck(validator, code, id), isFast: true };
  }
  const { validate } = schema['~standard'];
  const judged = (value: unknown): StandardResult => {
    const result = validate(value);
    if (!isThenable(result)) return result;
    // Nobody waits for it: how it ends must not end the process.
    Promise.resolve(result).catch(() => {});
    throw new LoopError('DEFINITION_INVALID', `The ${side} schema of "${id}" is asynchronous: a check must not wait.`);
  };
  const flaws = (value: unknown): readonly SchemaIssue[] =>
    (judged(value).issues ?? []).slice(0, 20).map(toSchemaIssue);
  const validator: Validator = {
    schema: jsonSchemaOf(schema, side),
    isValid: (value) => judged(value).issues === undefined,
    issues: flaws,
  };
  const check = (value: unknown): unknown => {
    const result = judged(value);
    if (result.issues === undefined) return result.value;
    const errors = result.issues.slice(0, 20).map(toSchemaIssue);
    const told = errors.map(({ path, message }) => `${path || '/'}: ${message}`).join('; ');
    throw new LoopError(code, `The ${side} of "${id}" does not fit its schema: ${told}`, {
      errors: errors as unknown as Json,
    });
  };
  return { validator, check, isFast: false };
}

function isStandardSchema(schema: AnySchema): schema is StandardSchema {
  return (typeof schema === 'object' || typeof schema === 'function') && schema !== null && '~standard' in schema;
}

/** Any promise, whoever made it: taken for a verdict it would let everything pass. */
function isThenable(result: StandardResult | Promise<StandardResult>): result is Promise<StandardResult> {
  return typeof (result as Partial<Promise<StandardResult>>).then === 'function';
}

function toSchemaIssue({ message, path = [] }: StandardIssue): SchemaIssue {
  const names = path.map((part) => (typeof part === 'object' ? part.key : part));
  const pointer = names.map((name) => `/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
  return { path: pointer, message };
}

/** The JSON Schema of an end, if the library can tell it; else the schema that allows anything. */
function jsonSchemaOf(schema: StandardSchema, side: 'input' | 'output'): JsonSchema {
  const told = (schema['~standard'] as { jsonSchema?: { [side in 'input' | 'output']?: (options: object) => unknown } })
    .jsonSchema?.[side];
  try {
    return (told?.({ target: 'draft-2020-12' }) ?? true) as JsonSchema;
  } catch {
    return true;
  }
}
