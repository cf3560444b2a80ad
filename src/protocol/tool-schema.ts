/**
 * Input schemas of tools. A Standard Schema is used as it is. A schema from the AI SDK's `jsonSchema()` gets the
 * Standard Schema interface in addition, so that both the AI SDK and this runtime can validate with it.
 */
import { isObjectOrFunction, isThenable } from './thenable.js';

type StandardValidationResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** A schema that implements Standard Schema (zod, valibot, arktype, …). */
export interface ToolSchema<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: T } | undefined;
    readonly validate: (value: unknown) => StandardValidationResult<T> | Promise<StandardValidationResult<T>>;
  };
}

type AiSdkValidationResult<T> = { success: true; value: T } | { success: false; error: Error };

/** The type of schema that the AI SDK's `jsonSchema()` returns. */
interface AiSdkSchema<T> {
  _type: T;
  readonly validate?: (value: unknown) => AiSdkValidationResult<T> | PromiseLike<AiSdkValidationResult<T>>;
  readonly jsonSchema: object;
}

/** What a tool definition accepts as `inputSchema`: a Standard Schema, or an AI SDK schema, possibly lazy. */
export type ToolSchemaInput<T> = ToolSchema<T> | AiSdkSchema<T> | (() => AiSdkSchema<T>);

/** The end of the error message for a value that is not a schema. */
export const SCHEMA_REQUIREMENT =
  "must implement Standard Schema (zod, valibot, …) or come from the AI SDK's jsonSchema()";

/** True if the value may be an input schema. A function can be checked only by calling it. */
export function mayBeSchema(value: unknown): boolean {
  return isStandardSchema(value) || isAiSdkSchema(value) || typeof value === 'function';
}

/**
 * Returns the schema with the Standard Schema interface; a lazy schema is created. An AI SDK schema becomes the
 * prototype of the result, so that the AI SDK still recognizes it. Throws a TypeError if the value is not a schema.
 */
export function toStandardSchema<T>(input: ToolSchemaInput<T>, subject: string): ToolSchema<T> {
  if (isStandardSchema(input)) return input;
  const schema = typeof input === 'function' ? input() : input;
  if (!isAiSdkSchema(schema)) throw new TypeError(`${subject}: inputSchema ${SCHEMA_REQUIREMENT}.`);
  const toStandardResult = (result: AiSdkValidationResult<T>): StandardValidationResult<T> =>
    result.success ? { value: result.value } : { issues: [{ message: result.error.message }] };
  const jsonSchema = (): object => {
    if (isThenable(schema.jsonSchema))
      throw new TypeError(`${subject}: inputSchema is a promise; pass a JSON Schema that is already resolved.`);
    return schema.jsonSchema;
  };
  const validate = (value: unknown): StandardValidationResult<T> | Promise<StandardValidationResult<T>> => {
    if (schema.validate === undefined) return { value: value as T };
    const result = schema.validate(value);
    return isThenable(result) ? Promise.resolve(result).then(toStandardResult) : toStandardResult(result);
  };
  const standard = {
    version: 1,
    vendor: 'rondo',
    validate,
    jsonSchema: { input: jsonSchema, output: jsonSchema },
  } as const;
  return Object.create(schema, { '~standard': { value: standard } });
}

function isStandardSchema<T>(schema: ToolSchemaInput<T> | unknown): schema is ToolSchema<T> {
  return isObjectOrFunction(schema) && '~standard' in schema;
}

function isAiSdkSchema(schema: unknown): boolean {
  return isObjectOrFunction(schema) && 'jsonSchema' in schema && '_type' in schema;
}
