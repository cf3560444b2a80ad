/**
 * Reading a JSON Schema for one value that fits it: a reader follows references, merges `allOf` and picks a branch of
 * `anyOf` and `oneOf`, so that what is left has keywords only. A schema is somebody's document: own fields only, and
 * a reader that has taken too many steps sees empty schemas from then on.
 */
import { isObject, ownProperty } from '../../base/own-property.js';
export type SchemaObject = { readonly [key: string]: unknown };

const MAX_RESOLVE_DEPTH = 32;
const MAX_STEPS = 10_000;
const LEAF_TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'null']);
const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];

export function arrayOrEmpty(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Reads the schemas of one document. */
export class SchemaResolver {
  readonly #root: unknown;
  #stepCount = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** The schema without references and combinations; `deep` prefers branches that end. */
  resolve(schema: unknown, deep: boolean, hops = 0): SchemaObject {
    if (!isObject(schema) || hops > MAX_RESOLVE_DEPTH || ++this.#stepCount > MAX_STEPS) return {};
    const { $ref, allOf, anyOf, oneOf, ...rest } = { ...schema };
    const parts: unknown[] = [];
    if (typeof $ref === 'string') parts.push(this.#resolveRef($ref));
    parts.push(...arrayOrEmpty(allOf));
    for (const choice of [anyOf, oneOf]) parts.push(this.#chooseBranch(arrayOrEmpty(choice), deep, hops));
    return parts.reduce<SchemaObject>((whole, part) => mergeSchemas(whole, this.resolve(part, deep, hops + 1)), rest);
  }

  /** What a local reference points at. */
  #resolveRef(ref: string): unknown {
    if (!ref.startsWith('#')) return undefined;
    let at = this.#root;
    for (const step of ref.split('/').slice(1)) {
      const key = unescapePointerSegment(step);
      at = Array.isArray(at) ? at[Number(key)] : ownProperty(at, key);
    }
    return at;
  }

  #chooseBranch(branches: readonly unknown[], deep: boolean, hops: number): unknown {
    const possible = branches.filter((branch) => branch !== false);
    // A short look is enough to tell a branch's type.
    const look = Math.max(hops + 1, MAX_RESOLVE_DEPTH - 2);
    const types = possible.map((branch) => schemaTypeOf(this.resolve(branch, false, look)));
    const wanted = types.findIndex((type) => (deep ? LEAF_TYPES.has(type) : type !== 'null'));
    return possible[Math.max(0, wanted)];
  }
}

function unescapePointerSegment(step: string): string {
  try {
    return decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return step;
  }
}

function mergeSchemas(a: SchemaObject, b: SchemaObject): SchemaObject {
  const whole: { [key: string]: unknown } = { ...a, ...b };
  for (const [names, pick] of [
    [LOWER_BOUNDS, Math.max],
    [UPPER_BOUNDS, Math.min],
  ] as const) {
    for (const name of names) {
      const [left, right] = [ownProperty(a, name), ownProperty(b, name)];
      if (typeof left === 'number' && typeof right === 'number') whole[name] = pick(left, right);
    }
  }
  if (Object.hasOwn(a, 'required'))
    whole.required = [...new Set([...arrayOrEmpty(a.required), ...arrayOrEmpty(ownProperty(b, 'required'))])];
  if (isObject(ownProperty(a, 'properties')) && isObject(ownProperty(b, 'properties')))
    whole.properties = mergeProperties(a.properties, b.properties);
  if (Object.hasOwn(a, 'type') && Object.hasOwn(b, 'type')) whole.type = commonTypes(a.type, b.type);
  if (Array.isArray(ownProperty(a, 'enum')) && Array.isArray(ownProperty(b, 'enum'))) {
    const kept = new Set(arrayOrEmpty(b.enum).map((value) => JSON.stringify(value)));
    whole.enum = arrayOrEmpty(a.enum).filter((value) => kept.has(JSON.stringify(value)));
  }
  return whole;
}

/** Members of both; one that both have must fit both. */
function mergeProperties(a: unknown, b: unknown): SchemaObject {
  const both = { ...(a as SchemaObject), ...(b as SchemaObject) };
  const entries = Object.keys(both).map((key): [string, unknown] => {
    const [left, right] = [ownProperty(a, key), ownProperty(b, key)];
    return [key, left !== undefined && right !== undefined ? { allOf: [left, right] } : both[key]];
  });
  return Object.fromEntries(entries);
}

function commonTypes(a: unknown, b: unknown): unknown {
  const [left, right] = [a, b].map((type) => (Array.isArray(type) ? type : [type]));
  const shared = (left ?? []).filter(
    (type) => right?.includes(type) || (type === 'integer' && right?.includes('number')),
  );
  // An integer is a number, whichever side says so.
  return shared.length > 0 ? shared : right;
}

/** The type to make, by its name or by the keywords that only it has. */
export function schemaTypeOf(schema: SchemaObject): string {
  const named = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => typeof type === 'string');
  const type = named.find((name) => name !== 'null') ?? named[0];
  if (type !== undefined) return type;
  const has = (...names: string[]): boolean => names.some((name) => Object.hasOwn(schema, name));
  if (has('properties', 'required', 'additionalProperties', 'minProperties')) return 'object';
  if (has('items', 'prefixItems', 'minItems', 'uniqueItems')) return 'array';
  if (has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf')) return 'number';
  return 'string';
}
