/**
 * The documents that a schema consists of: the subschemas in them, the addresses and anchors they have, and what a
 * reference leads to. Nothing is fetched: an address is in the schema itself, handed in with it, or a metaschema.
 */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { type Dialect, defaultDialect, dialectOf } from './dialect.js';
import { below } from './rule.js';

export type SchemaFields = { readonly [keyword: string]: Json };

/** A schema with an address of its own, and the anchors in it. */
export interface Resource {
  readonly uri: string;
  readonly root: SchemaFields;
  readonly anchors: Map<string, SchemaFields>;
  readonly dynamic: Map<string, SchemaFields>;
}

/** Where a subschema stands: in which resource, and where to point a person. */
export interface Place {
  readonly resource: Resource;
  readonly dialect: Dialect;
  readonly pointer: string;
  /** Whether it is in another document than the one that is compiled. */
  readonly foreign: boolean;
}

/** Why a schema cannot be used, and where in it. */
export class Malformed extends Error {
  readonly pointer: string;

  constructor(pointer: string, reason: string) {
    super(reason);
    this.pointer = pointer;
  }
}

/** Where the subschemas of a keyword are. */
const holders: { readonly [keyword: string]: 'one' | 'list' | 'map' } = {
  ...holding('map', '$defs definitions properties patternProperties dependentSchemas dependencies'),
  ...holding('list', 'allOf anyOf oneOf prefixItems'),
  ...holding('one', 'items contains additionalProperties propertyNames if then else not'),
  ...holding('one', 'unevaluatedItems unevaluatedProperties contentSchema'),
};

function holding<H>(holder: H, keywords: string): { [keyword: string]: H } {
  return Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, holder]));
}

/** The keywords whose value can be well formed and still wrong. */
const uncertain = new Set(['$ref', '$dynamicRef', 'pattern', 'patternProperties']);

/** The address of a schema that has none. */
const NOWHERE = 'schema:/';

export function isSchemaFields(value: unknown): value is SchemaFields {
  return isObject(value);
}

export class Library {
  /** Whether nothing in it can turn out wrong later: there are no references and no patterns. */
  certain = true;
  readonly #places = new Map<SchemaFields, Place>();
  readonly #resources = new Map<string, Resource>();
  readonly #known: (uri: string) => JsonSchema | undefined;
  readonly #examine: (schema: SchemaFields, pointer: string) => void;

  /** `known` finds documents by address; `examine` throws what is malformed in a schema. */
  constructor(
    known: (uri: string) => JsonSchema | undefined,
    examine: (schema: SchemaFields, pointer: string) => void,
  ) {
    this.#known = known;
    this.#examine = examine;
  }

  /** Takes a document in; it must be a tree, and may have been read from an address. */
  add(document: SchemaFields, uri = NOWHERE): void {
    const foreign = uri !== NOWHERE;
    const pointer = foreign ? `${uri}#` : '';
    const { $id } = document;
    const own = typeof $id === 'string' ? this.#absolute($id, uri, below(pointer, '$id')) : uri;
    const resource = this.#resource(document, own);
    this.#resources.set(uri, resource);
    this.#walk(document, { resource, dialect: defaultDialect, pointer, foreign });
    this.#examine(document, pointer);
  }

  placeOf(schema: SchemaFields): Place {
    const place = this.#places.get(schema);
    if (place === undefined) throw new Error('A schema was compiled that was never taken in.');
    return place;
  }

  /** The schemas of the document itself. */
  own(): SchemaFields[] {
    return [...this.#places].filter(([, { foreign }]) => !foreign).map(([schema]) => schema);
  }

  #resource(root: SchemaFields, uri: string): Resource {
    const resource = { uri, root, anchors: new Map(), dynamic: new Map() };
    this.#resources.set(uri, resource);
    return resource;
  }

  #walk(schema: SchemaFields, around: Place): void {
    const place = this.#placed(schema, around);
    this.#places.set(schema, place);
    const flaw = place.dialect(schema);
    if (flaw !== undefined) throw new Malformed(place.pointer, flaw);
    this.#anchor(schema, '$anchor', place);
    this.#anchor(schema, '$dynamicAnchor', place);
    for (const [keyword, value] of Object.entries(schema)) {
      if (uncertain.has(keyword)) this.certain = false;
      const holder = Object.hasOwn(holders, keyword) ? holders[keyword] : undefined;
      if (holder === undefined || typeof value !== 'object' || value === null) continue;
      const at = below(place.pointer, keyword);
      if (holder === 'one') this.#part(value, { ...place, pointer: at });
      else for (const [name, part] of Object.entries(value)) this.#part(part, { ...place, pointer: below(at, name) });
    }
  }

  #part(schema: unknown, around: Place): void {
    if (isSchemaFields(schema)) this.#walk(schema, around);
  }

  /** The place of a schema, which may begin a resource or name another dialect. */
  #placed(schema: SchemaFields, around: Place): Place {
    const { $id, $schema } = schema;
    let { resource, dialect } = around;
    if (typeof $schema === 'string') {
      const named = dialectOf($schema);
      if (named === undefined)
        throw new Malformed(around.pointer, `"$schema" names ${$schema}, which is not known here; say 2020-12`);
      dialect = named;
    }
    if (typeof $id === 'string' && resource.root !== schema) {
      const uri = this.#absolute($id, resource.uri, around.pointer);
      if (this.#resources.has(uri)) throw new Malformed(around.pointer, `two schemas have the "$id" ${$id}`);
      resource = this.#resource(schema, uri);
    }
    return { ...around, resource, dialect };
  }

  #anchor(schema: SchemaFields, keyword: '$anchor' | '$dynamicAnchor', place: Place): void {
    const name = schema[keyword];
    if (typeof name !== 'string') return;
    const { anchors, dynamic } = place.resource;
    const taken = anchors.get(name);
    if (taken !== undefined && taken !== schema) {
      throw new Malformed(below(place.pointer, keyword), `two schemas have the anchor ${name}`);
    }
    anchors.set(name, schema);
    if (keyword === '$dynamicAnchor') dynamic.set(name, schema);
  }

  #absolute(reference: string, base: string, pointer: string): string {
    if (!URL.canParse(reference, base)) throw new Malformed(pointer, `${reference} is not an address`);
    return new URL(reference, base).href.replace(/#$/, '');
  }

  /** The schema that a reference at this place leads to. */
  resolve(reference: string, from: Place, pointer: string): JsonSchema {
    const [address = '', ...rest] = reference.split('#');
    const resource = address === '' ? from.resource : this.#find(this.#absolute(address, from.resource.uri, pointer));
    const found = resource && this.#inside(resource, fragmentOf(rest.join('#')));
    if (found !== undefined) return found;
    const why = resource === undefined ? 'that address is not known here, and nothing is fetched' : 'nothing is there';
    throw new Malformed(pointer, `the reference ${reference} leads nowhere: ${why}`);
  }

  #find(uri: string): Resource | undefined {
    const here = this.#resources.get(uri);
    if (here !== undefined) return here;
    const document = this.#known(uri);
    if (!isSchemaFields(document)) return undefined;
    this.add(document, uri);
    return this.placeOf(document).resource;
  }

  #inside(resource: Resource, fragment: string | undefined): JsonSchema | undefined {
    if (fragment === '') return resource.root;
    if (fragment?.startsWith('/')) return this.#at(resource.root, fragment.slice(1).split('/'));
    return fragment === undefined ? undefined : resource.anchors.get(fragment);
  }

  /** Follows a pointer; what it finds outside of every keyword that we know is taken in as a schema now. */
  #at(root: SchemaFields, names: readonly string[]): JsonSchema | undefined {
    let place = this.placeOf(root);
    let found: Json = root;
    let pointer = place.pointer;
    for (const escaped of names) {
      const name = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
      found = (found as SchemaFields)[name] as Json;
      pointer = below(pointer, name);
      place = (isSchemaFields(found) && this.#places.get(found)) || place;
    }
    if (typeof found === 'boolean') return found;
    if (!isSchemaFields(found)) return undefined;
    if (!this.#places.has(found)) {
      this.#walk(found, { ...place, pointer });
      this.#examine(found, pointer);
    }
    return found;
  }
}

function fragmentOf(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
