/**
 * Defines the input of a tool once. The TypeScript type, the validation (a Standard Schema, which the AI SDK and loops
 * both use) and the JSON Schema for the model are derived from the definition.
 */
import { LoopError } from '../../base/errors.js';
import type { Json, JsonObject } from '../../protocol/json.js';

interface FieldTypes {
  readonly string: string;
  readonly integer: number;
  readonly boolean: boolean;
}

interface InputField {
  readonly type: keyof FieldTypes;
  readonly description: string;
  readonly optional?: true;
  /** The minimum length of a string, in UTF-16 code units, or the minimum of a number. */
  readonly min?: number;
  /** The maximum length of a string, in UTF-16 code units, or the maximum of a number. */
  readonly max?: number;
}

type InputFields = { readonly [name: string]: InputField };
type OptionalKeys<M extends InputFields> = {
  [K in keyof M]: M[K] extends { readonly optional: true } ? K : never;
}[keyof M];

type InputFromFields<M extends InputFields> = {
  readonly [K in Exclude<keyof M, OptionalKeys<M>>]: FieldTypes[M[K]['type']];
} & { readonly [K in OptionalKeys<M>]?: FieldTypes[M[K]['type']] };

interface Issue {
  readonly message: string;
  readonly path: readonly string[];
}

type ValidationResult<I> = { readonly value: I; readonly issues?: undefined } | { readonly issues: readonly Issue[] };
/** A Standard Schema that also provides a JSON Schema. */
export interface InputSchema<I> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'rondo';
    readonly types?: { readonly input: I; readonly output: I } | undefined;
    readonly validate: (value: unknown) => ValidationResult<I>;
    readonly jsonSchema: { readonly input: () => JsonObject; readonly output: () => JsonObject };
  };
}

/** The type of the values that match a schema. */
export type InferInput<S> = S extends InputSchema<infer I> ? I : never;

/** Creates the schema of an object with these fields and no others. */
export function defineInput<const M extends InputFields>(fields: M): InputSchema<InputFromFields<M>> {
  const validate = (value: unknown): ValidationResult<InputFromFields<M>> => {
    const issues = findIssues(fields, value);
    return issues.length > 0 ? { issues } : { value: { ...(value as InputFromFields<M>) } };
  };
  const jsonSchema = (): JsonObject => toJsonSchema(fields);
  return {
    '~standard': { version: 1, vendor: 'rondo', validate, jsonSchema: { input: jsonSchema, output: jsonSchema } },
  };
}

/**
 * Returns a copy of the input if it matches the schema. Throws INPUT_VALIDATION_FAILED otherwise. Tools call it because
 * their callers may not have validated the input.
 */
export function validateInput<I>(tool: string, schema: InputSchema<I>, input: unknown): I {
  const result = schema['~standard'].validate(input);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(({ path, message }) => `${path.join('/') || 'the input'}: ${message}`).join('; ');
  throw new LoopError('INPUT_VALIDATION_FAILED', `The input of ${tool} is invalid: ${issues}.`);
}

function findIssues(fields: InputFields, value: unknown): readonly Issue[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [{ message: 'must be an object', path: [] }];
  }
  const names = Object.keys(fields);
  const unknownNames = Object.keys(value).filter((name) => !names.includes(name));
  const issues = unknownNames.slice(0, 10).map((name) => ({
    message: `is not a parameter; available are ${names.join(', ')}`,
    path: [name.slice(0, 100)],
  }));
  for (const name of names) {
    const member: unknown = Object.hasOwn(value, name) ? (value as { [name: string]: unknown })[name] : undefined;
    const message = findFieldProblem(fields[name] as InputField, member);
    if (message !== undefined) issues.push({ message, path: [name] });
  }
  return issues;
}

function findFieldProblem(
  { type, optional, min = -Infinity, max = Infinity }: InputField,
  value: unknown,
): string | undefined {
  if (value === undefined) return optional ? undefined : 'is missing';
  const isOfType = type === 'integer' ? Number.isSafeInteger(value) : typeof value === type;
  if (!isOfType) return `must be ${type === 'integer' ? 'a whole number' : `a ${type}`}`;
  const size = typeof value === 'string' ? value.length : Number(value);
  if (size < min || size > max) {
    return typeof value === 'string'
      ? `must have ${Math.max(min, 0)} to ${max} characters`
      : `must be ${min} to ${max}`;
  }
  return undefined;
}

function toJsonSchema(fields: InputFields): JsonObject {
  const properties: { [name: string]: Json } = {};
  for (const [name, { type, description, min, max }] of Object.entries(fields)) {
    const [minKeyword, maxKeyword] = type === 'string' ? ['minLength', 'maxLength'] : ['minimum', 'maximum'];
    properties[name] = {
      type,
      description,
      ...(min === undefined ? {} : { [minKeyword as string]: min }),
      ...(max === undefined ? {} : { [maxKeyword as string]: max }),
    };
  }
  const required = Object.keys(fields).filter((name) => fields[name]?.optional === undefined);
  return { type: 'object', properties, required, additionalProperties: false };
}
