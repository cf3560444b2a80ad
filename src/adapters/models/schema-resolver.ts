/**
 * Resolves a JSON Schema to one schema without references and combinations at its top level: follows `$ref`, merges
 * `allOf`, and chooses a branch of `anyOf` and `oneOf`. The schemas of members and items are resolved one by one when
 * they are needed. Schemas are untrusted input: only own properties are read, and after too many steps every schema
 * resolves to the empty one.
 */
import { isObject, ownProperty } from '../../base/own-property.js';

/** A JSON Schema that is an object, not a boolean. */
export type SchemaObject = { readonly [key: string]: unknown };

const MAX_RESOLVE_DEPTH = 32;
const MAX_STEPS = 10_000;
const LEAF_TYPES: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'null']);
const LOWER_BOUNDS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];
const UPPER_BOUNDS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];

/** Returns the value if it is an array, or else an empty array. */
export function arrayOrEmpty(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Resolves the schemas of one document. */
export class SchemaResolver {
  private readonly root: unknown;
  private stepCount = 0;

  constructor(root: unknown) {
    this.root = root;
  }

  /**
   * Resolves references and combinations. `preferLeaf` prefers branches of a primitive type, which end recursion. A
   * boolean schema, and one that is nested too deeply, resolves to the empty schema.
   */
  resolve(schema: unknown, preferLeaf: boolean, depth = 0): SchemaObject {
    if (!isObject(schema) || depth > MAX_RESOLVE_DEPTH || ++this.stepCount > MAX_STEPS) return {};
    const { $ref, allOf, anyOf, oneOf, ...rest } = { ...schema };
    const parts: unknown[] = [];
    if (typeof $ref === 'string') parts.push(this.resolveRef($ref));
    parts.push(...arrayOrEmpty(allOf));
    for (const branches of [anyOf, oneOf]) parts.push(this.chooseBranch(arrayOrEmpty(branches), preferLeaf, depth));
    return parts.reduce<SchemaObject>(
      (merged, part) => mergeSchemas(merged, this.resolve(part, preferLeaf, depth + 1)),
      rest,
    );
  }

  /**
   * Returns the target of a local reference; undefined for a remote one and for a missing target. Only JSON Pointers
   * are supported: a reference to an `$anchor` yields the whole document.
   */
  private resolveRef(ref: string): unknown {
    if (!ref.startsWith('#')) return undefined;
    let target = this.root;
    for (const segment of ref.split('/').slice(1)) {
      const key = unescapePointerSegment(segment);
      target = Array.isArray(target) ? target[Number(key)] : ownProperty(target, key);
    }
    return target;
  }

  /**
   * Returns the first branch of a primitive type (with `preferLeaf`) or of a type other than `null`; the first possible
   * branch if there is none.
   */
  private chooseBranch(branches: readonly unknown[], preferLeaf: boolean, depth: number): unknown {
    const possible = branches.filter((branch) => branch !== false);
    // Two levels are enough to find the type of a branch.
    const startDepth = Math.max(depth + 1, MAX_RESOLVE_DEPTH - 2);
    const types = possible.map((branch) => schemaTypeOf(this.resolve(branch, false, startDepth)));
    const preferred = types.findIndex((type) => (preferLeaf ? LEAF_TYPES.has(type) : type !== 'null'));
    return possible[Math.max(0, preferred)];
  }
}

function unescapePointerSegment(segment: string): string {
  try {
    return decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return segment;
  }
}

/**
 * Merges two schemas so that a value must match both: the narrower bounds, all required members and properties, the
 * common types and the common enum values. For any other keyword, `b` takes precedence.
 */
function mergeSchemas(a: SchemaObject, b: SchemaObject): SchemaObject {
  const merged: { [key: string]: unknown } = { ...a, ...b };
  for (const [names, pick] of [
    [LOWER_BOUNDS, Math.max],
    [UPPER_BOUNDS, Math.min],
  ] as const) {
    for (const name of names) {
      const [left, right] = [ownProperty(a, name), ownProperty(b, name)];
      if (typeof left === 'number' && typeof right === 'number') merged[name] = pick(left, right);
    }
  }
  if (Object.hasOwn(a, 'required'))
    merged.required = [...new Set([...arrayOrEmpty(a.required), ...arrayOrEmpty(ownProperty(b, 'required'))])];
  if (isObject(ownProperty(a, 'properties')) && isObject(ownProperty(b, 'properties')))
    merged.properties = mergeProperties(a.properties, b.properties);
  if (Object.hasOwn(a, 'type') && Object.hasOwn(b, 'type')) merged.type = commonTypes(a.type, b.type);
  if (Array.isArray(ownProperty(a, 'enum')) && Array.isArray(ownProperty(b, 'enum'))) {
    const allowed = new Set(arrayOrEmpty(b.enum).map((value) => JSON.stringify(value)));
    merged.enum = arrayOrEmpty(a.enum).filter((value) => allowed.has(JSON.stringify(value)));
  }
  return merged;
}

/** Merges `properties`. A property of both schemas must match both. */
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
  // Without a common type, the right side is used: it is the narrower one for `number` and `integer`.
  return shared.length > 0 ? shared : right;
}

/**
 * Returns the type of a schema: the first declared one, preferably not `null`, or else the one that its keywords imply.
 * Without either, the type is `string`.
 */
export function schemaTypeOf(schema: SchemaObject): string {
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => typeof type === 'string');
  const type = types.find((name) => name !== 'null') ?? types[0];
  if (type !== undefined) return type;
  const has = (...names: string[]): boolean => names.some((name) => Object.hasOwn(schema, name));
  if (has('properties', 'required', 'additionalProperties', 'minProperties')) return 'object';
  if (has('items', 'prefixItems', 'minItems', 'uniqueItems')) return 'array';
  if (has('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf')) return 'number';
  return 'string';
}
