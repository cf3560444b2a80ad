/**
 * What a tool takes, described once: from the named members come the type, the check (as a Standard Schema, so that the
 * AI SDK and our loops both judge with it) and the JSON Schema that a model is shown.
 */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';

interface Kinds {
  readonly string: string;
  readonly integer: number;
  readonly boolean: boolean;
}

interface Member {
  readonly type: keyof Kinds;
  readonly description: string;
  readonly optional?: true;
  /** Of a text its length, of a number itself. */
  readonly min?: number;
  readonly max?: number;
}

type Members = { readonly [name: string]: Member };
type Optional<M extends Members> = { [K in keyof M]: M[K] extends { readonly optional: true } ? K : never }[keyof M];

type InputFrom<M extends Members> = {
  readonly [K in Exclude<keyof M, Optional<M>>]: Kinds[M[K]['type']];
} & { readonly [K in Optional<M>]?: Kinds[M[K]['type']] };

interface Issue {
  readonly message: string;
  readonly path: readonly string[];
}

type Validated<I> = { readonly value: I; readonly issues?: undefined } | { readonly issues: readonly Issue[] };
type JsonObject = { readonly [name: string]: Json };

/** A schema that speaks Standard Schema and can tell its JSON Schema. */
export interface InputSchema<I> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: 'rondo';
    readonly types?: { readonly input: I; readonly output: I } | undefined;
    readonly validate: (value: unknown) => Validated<I>;
    readonly jsonSchema: { readonly input: () => JsonObject; readonly output: () => JsonObject };
  };
}

/** What fits a schema. */
export type Fitting<S> = S extends InputSchema<infer I> ? I : never;

/** The schema of an object with these members and no others. */
export function inputOf<const M extends Members>(members: M): InputSchema<InputFrom<M>> {
  const validate = (value: unknown): Validated<InputFrom<M>> => {
    const issues = issuesOf(members, value);
    return issues.length > 0 ? { issues } : { value: { ...(value as InputFrom<M>) } };
  };
  const shown = (): JsonObject => shownAs(members);
  return { '~standard': { version: 1, vendor: 'rondo', validate, jsonSchema: { input: shown, output: shown } } };
}

/** The input if it fits; a tool may be called by somebody who did not look. */
export function checkedInput<I>(tool: string, schema: InputSchema<I>, input: unknown): I {
  const result = schema['~standard'].validate(input);
  if (result.issues === undefined) return result.value;
  const told = result.issues.map(({ path, message }) => `${path.join('/') || 'the input'}: ${message}`).join('; ');
  throw new LoopError('INPUT_VALIDATION_FAILED', `The input of ${tool} does not fit: ${told}.`);
}

function issuesOf(members: Members, value: unknown): readonly Issue[] {
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
    const message = flawOf(members[name] as Member, given);
    if (message !== undefined) issues.push({ message, path: [name] });
  }
  return issues;
}

function flawOf({ type, optional, min = -Infinity, max = Infinity }: Member, given: unknown): string | undefined {
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

function shownAs(members: Members): JsonObject {
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
