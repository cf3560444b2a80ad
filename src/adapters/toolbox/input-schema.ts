/**
 * What a tool takes, described once: from the named members come the type, the check (as a Standard Schema, so that the
 * AI SDK and our loops both judge with it) and the JSON Schema that a model is shown.
 */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';

interface FieldTypes {
  readonly string: string;
  readonly integer: number;
  readonly boolean: boolean;
}

interface InputField {
  readonly type: keyof FieldTypes;
  readonly description: string;
  readonly optional?: true;
  /** Of a text its length, of a number itself. */
  readonly min?: number;
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
type JsonObject = { readonly [name: string]: Json };

/** A schema that speaks Standard Schema and can tell its JSON Schema. */
export interface InputSchema<I> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'rondo';
    readonly types?: { readonly input: I; readonly output: I } | undefined;
    readonly validate: (value: unknown) => ValidationResult<I>;
    readonly jsonSchema: { readonly input: () => JsonObject; readonly output: () => JsonObject };
  };
}

/** What fits a schema. */
export type InferInput<S> = S extends InputSchema<infer I> ? I : never;

/** The schema of an object with these members and no others. */
export function defineInput<const M extends InputFields>(members: M): InputSchema<InputFromFields<M>> {
  const validate = (value: unknown): ValidationResult<InputFromFields<M>> => {
    const issues = findIssues(members, value);
    return issues.length > 0 ? { issues } : { value: { ...(value as InputFromFields<M>) } };
  };
  const shown = (): JsonObject => toJsonSchema(members);
  return { '~standard': { version: 1, vendor: 'rondo', validate, jsonSchema: { input: shown, output: shown } } };
}

/** Returns the input if it is valid. A caller may not have validated it. */
export function validateInput<I>(tool: string, schema: InputSchema<I>, input: unknown): I {
  const result = schema['~standard'].validate(input);
  if (result.issues === undefined) return result.value;
  const told = result.issues.map(({ path, message }) => `${path.join('/') || 'the input'}: ${message}`).join('; ');
  throw new LoopError('INPUT_VALIDATION_FAILED', `The input of ${tool} does not fit: ${told}.`);
}

function findIssues(members: InputFields, value: unknown): readonly Issue[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return [{ message: 'must be an object', path: [] }];
  }
  const known = Object.keys(members);
  const unknown = Object.keys(value).filter((name) => !known.includes(name));
  const issues = unknown.slice(0, 10).map((name) => {
    const shown = name.slice(0, 100);
    return { message: `is not known; known are ${known.join(', ')}`, path: [shown] };
  });
  for (const name of known) {
    const given: unknown = Object.hasOwn(value, name) ? (value as { [name: string]: unknown })[name] : undefined;
    const message = findFieldProblem(members[name] as InputField, given);
    if (message !== undefined) issues.push({ message, path: [name] });
  }
  return issues;
}

function findFieldProblem(
  { type, optional, min = -Infinity, max = Infinity }: InputField,
  given: unknown,
): string | undefined {
  if (given === undefined) return optional ? undefined : 'is missing';
  const fits = type === 'integer' ? Number.isSafeInteger(given) : typeof given === type;
  if (!fits) return `must be ${type === 'integer' ? 'a whole number' : `a ${type}`}`;
  const size = typeof given === 'string' ? given.length : Number(given);
  if (size < min || size > max) {
    return typeof given === 'string'
      ? `must have ${Math.max(min, 0)} to ${max} characters`
      : `must be ${min} to ${max}`;
  }
  return undefined;
}

function toJsonSchema(members: InputFields): JsonObject {
  const properties: { [name: string]: Json } = {};
  for (const [name, { type, description, min, max }] of Object.entries(members)) {
    const [least, most] = type === 'string' ? ['minLength', 'maxLength'] : ['minimum', 'maximum'];
    properties[name] = {
      type,
      description,
      ...(min === undefined ? {} : { [least as string]: min }),
      ...(max === undefined ? {} : { [most as string]: max }),
    };
  }
  const required = Object.keys(members).filter((name) => members[name]?.optional === undefined);
  return { type: 'object', properties, required, additionalProperties: false };
}
