/**
 * What is known of the values that a step of a plan can read, as JSON Schemas. A name without a schema cannot be read;
 * an empty schema stands for any value. Each step adds its changes to those before it, so that a plan of many steps is
 * analyzed in time that is proportional to its length.
 */
import { isObject } from '../../../base/own-property.js';
import type { Json, JsonObject } from '../../../protocol/json.js';
import type { JsonSchema } from '../../../protocol/loop.js';

/** Schemas by name. A member that is undefined cannot be read. */
export type Schemas = { readonly [name: string]: JsonSchema | undefined };

/** A source of schemas. */
export interface SchemaTable {
  get(name: string): JsonSchema | undefined;
  /** Returns the names that have a schema. */
  names(): readonly string[];
}

/** The schema of any value. */
export const ANY: JsonSchema = {};
const resultSchemas = new WeakMap<object, JsonSchema>();

/** Returns the schema of the result of a step whose output has this schema; the same one for the same schema. */
export function resultSchema(output: JsonSchema): JsonSchema {
  const key = typeof output === 'object' ? output : (ANY as object);
  const known = resultSchemas.get(key);
  if (known !== undefined) return known;
  const schema = {
    type: 'object',
    properties: {
      ok: { type: 'boolean' },
      status: { type: 'string' },
      output: key as Json,
      error: { type: 'object', properties: { code: { type: 'string' }, message: { type: 'string' } } },
    },
    additionalProperties: false,
  };
  resultSchemas.set(key, schema);
  return schema;
}

/** The schema of a result with any output. */
export const ANY_RESULT = resultSchema(ANY);

/** Returns a table of given schemas. */
export function tableOf(schemas: Schemas): SchemaTable {
  return {
    get: (name) => (Object.hasOwn(schemas, name) ? schemas[name] : undefined),
    names: () => Object.keys(schemas),
  };
}

/** Changes of values, after those of its parent. */
interface ValueChanges {
  readonly parent: ValueChanges | undefined;
  readonly schemas: Schemas;
}

/** The values that can be read at one point of a plan. Immutable. */
export class ReadableValues {
  private readonly root: SchemaTable;
  private readonly changes: ValueChanges | undefined;
  /** What only a repetition can read, because a later step of an earlier repetition captures it. */
  private readonly carried: readonly SchemaTable[];
  /** True if the carried names can be read, because a condition may say that there was an earlier repetition. */
  private readonly readsCarried: boolean;

  constructor(
    root: SchemaTable,
    carried: readonly SchemaTable[] = [],
    changes?: ValueChanges,
    readsCarried: boolean = false,
  ) {
    this.root = root;
    this.carried = carried;
    this.changes = changes;
    this.readsCarried = readsCarried;
  }

  /** Returns the schema of a name; undefined if it cannot be read. */
  get(name: string): JsonSchema | undefined {
    for (let changes = this.changes; changes !== undefined; changes = changes.parent)
      if (Object.hasOwn(changes.schemas, name)) return changes.schemas[name];
    return this.root.get(name) ?? (this.readsCarried ? this.getCarried(name) : undefined);
  }

  /** Returns the schema of a name that an earlier repetition may have captured. */
  getCarried(name: string): JsonSchema | undefined {
    for (const table of this.carried) {
      const schema = table.get(name);
      if (schema !== undefined) return schema;
    }
    return undefined;
  }

  /** Returns the schemas of these names, as far as they can be read; those of all names if one of them cannot. */
  pick(names: readonly string[]): { readonly [name: string]: JsonSchema } {
    const isComplete = names.every((name) => this.get(name) !== undefined);
    const picked = new Set(isComplete ? names : this.names());
    return Object.fromEntries([...picked].flatMap((name) => this.entryOf(name)));
  }

  private entryOf(name: string): readonly (readonly [string, JsonSchema])[] {
    const schema = this.get(name);
    return schema === undefined ? [] : [[name, schema]];
  }

  private names(): readonly string[] {
    const names = new Set(this.root.names());
    for (let changes = this.changes; changes !== undefined; changes = changes.parent)
      for (const name of Object.keys(changes.schemas)) names.add(name);
    if (this.readsCarried) for (const table of this.carried) for (const name of table.names()) names.add(name);
    return [...names];
  }

  /** Returns these values with further or other ones. */
  with(schemas: Schemas): ReadableValues {
    return new ReadableValues(this.root, this.carried, { parent: this.changes, schemas }, this.readsCarried);
  }

  /** Returns these values with the result of the last step, under `result` and under the name that captures it. */
  withResult(result: JsonSchema, capture?: string): ReadableValues {
    return this.with(capture === undefined ? { result } : { result, [capture]: result });
  }

  /** Returns these values for steps that are repeated, and capture what is in the table. */
  repeating(captures: SchemaTable): ReadableValues {
    return new ReadableValues(this.root, [...this.carried, captures], this.changes, this.readsCarried);
  }

  /** Returns these values for a condition, or for steps that run only on a condition. */
  onCondition(): ReadableValues {
    return new ReadableValues(this.root, this.carried, this.changes, true);
  }

  /** Returns what can be read after a block that began with these values: `blockNames` are those of before it. */
  afterBlock(inside: ReadableValues, blockNames: readonly string[] = []): ReadableValues {
    const schemas = Object.fromEntries(blockNames.map((name) => [name, this.get(name)]));
    const changes = blockNames.length === 0 ? inside.changes : { parent: inside.changes, schemas };
    return new ReadableValues(this.root, this.carried, changes, this.readsCarried);
  }

  /**
   * Returns what can be read after one of several paths that began with these values: every name that one of them
   * captures, with its schema if all paths agree on it.
   */
  afterOneOf(ends: readonly ReadableValues[]): ReadableValues {
    const changed = ends.map((end) => this.changesOf(end));
    const names = new Set(changed.flatMap((schemas) => [...schemas.keys()]));
    const merged = [...names].map((name) => {
      const schemas = changed.map((path) => (path.has(name) ? path.get(name) : this.get(name)));
      const [first, ...others] = schemas.filter((schema) => schema !== undefined);
      return [name, others.every((schema) => schema === first) ? first : ANY_RESULT] as const;
    });
    return this.with(Object.fromEntries(merged));
  }

  private changesOf(end: ReadableValues): ReadonlyMap<string, JsonSchema | undefined> {
    const found = new Map<string, JsonSchema | undefined>();
    for (let { changes } = end; changes !== undefined && changes !== this.changes; changes = changes.parent)
      for (const [name, schema] of Object.entries(changes.schemas)) if (!found.has(name)) found.set(name, schema);
    return found;
  }
}

/** Returns the schema of the member at a path, or any value if it is not known. */
export function schemaAt(values: ReadableValues, path: readonly (string | number | undefined)[]): JsonSchema {
  const [name, ...segments] = path;
  let schema = typeof name === 'string' ? values.get(name) : undefined;
  for (const segment of segments)
    schema = typeof segment === 'string' ? memberSchema(schema, segment) : elements(schema);
  return schema ?? ANY;
}

function memberSchema(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  const properties = plainMember(schema, 'properties');
  const member = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  return member as JsonSchema | undefined;
}

/** Returns the schema of the elements of a list, or any value if it is not known. */
export function elements(schema: JsonSchema | undefined): JsonSchema {
  if (plainMember(schema, 'prefixItems') !== undefined) return ANY;
  return (plainMember(schema, 'items') as JsonSchema | undefined) ?? ANY;
}

/** Returns a member of a schema, unless another keyword may say more about the value. */
export function plainMember(schema: JsonSchema | undefined, name: string): Json | undefined {
  if (!isObject(schema as Json)) return undefined;
  const object = schema as JsonObject;
  return ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if'].some((keyword) => Object.hasOwn(object, keyword))
    ? undefined
    : object[name];
}
