/**
 * The documents that a schema consists of: the subschemas in them, the addresses and anchors they have, and what a
 * reference leads to. Nothing is fetched: an address is in the schema itself, handed in with it, or a metaschema.
 */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { type Dialect, defaultDialect, dialectOf } from './dialect.js';
import { appendPointer } from './rule.js';

export type SchemaObject = { readonly [keyword: string]: Json };

/** A schema with an address of its own, and the anchors in it. */
export interface SchemaResource {
  readonly uri: string;
  readonly root: SchemaObject;
  readonly anchors: Map<string, SchemaObject>;
  readonly dynamicAnchors: Map<string, SchemaObject>;
}

/** Where a subschema stands: in which resource, and where to point a person. */
export interface SchemaLocation {
  readonly resource: SchemaResource;
  readonly dialect: Dialect;
  readonly pointer: string;
  /** Whether it is in another document than the one that is compiled. */
  readonly isExternal: boolean;
}

/** Why a schema cannot be used, and where in it. */
export class MalformedSchemaError extends Error {
  readonly pointer: string;

  constructor(pointer: string, reason: string) {
    super(reason);
    this.pointer = pointer;
  }
}

/** Where the subschemas of a keyword are. */
const subschemaKeywords: { readonly [keyword: string]: 'one' | 'list' | 'map' } = {
  ...forKeywords('map', '$defs definitions properties patternProperties dependentSchemas dependencies'),
  ...forKeywords('list', 'allOf anyOf oneOf prefixItems'),
  ...forKeywords('one', 'items contains additionalProperties propertyNames if then else not'),
  ...forKeywords('one', 'unevaluatedItems unevaluatedProperties contentSchema'),
};

function forKeywords<H>(holder: H, keywords: string): { [keyword: string]: H } {
  return Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, holder]));
}

/** The keywords whose value can be well formed and still wrong. */
const UNCERTAIN_KEYWORDS = new Set(['$ref', '$dynamicRef', 'pattern', 'patternProperties']);

/** The address of a schema that has none. */
const ANONYMOUS_URI = 'schema:/';

export function isSchemaObject(value: unknown): value is SchemaObject {
  return isObject(value);
}

export class SchemaDocuments {
  /** Whether nothing in it can turn out wrong later: there are no references and no patterns. */
  canCompileLazily = true;
  readonly #locations = new Map<SchemaObject, SchemaLocation>();
  readonly #resources = new Map<string, SchemaResource>();
  readonly #findDocument: (uri: string) => JsonSchema | undefined;
  readonly #assertWellFormed: (schema: SchemaObject, pointer: string) => void;

  /** `known` finds documents by address; `examine` throws what is malformed in a schema. */
  constructor(
    known: (uri: string) => JsonSchema | undefined,
    examine: (schema: SchemaObject, pointer: string) => void,
  ) {
    this.#findDocument = known;
    this.#assertWellFormed = examine;
  }

  /** Takes a document in; it must be a tree, and may have been read from an address. */
  add(document: SchemaObject, uri = ANONYMOUS_URI): void {
    const foreign = uri !== ANONYMOUS_URI;
    const pointer = foreign ? `${uri}#` : '';
    const { $id } = document;
    const own = typeof $id === 'string' ? this.#resolveUri($id, uri, appendPointer(pointer, '$id')) : uri;
    const resource = this.#addResource(document, own);
    this.#resources.set(uri, resource);
    this.#addSchemas(document, { resource, dialect: defaultDialect, pointer, isExternal: foreign });
    this.#assertWellFormed(document, pointer);
  }

  locationOf(schema: SchemaObject): SchemaLocation {
    const place = this.#locations.get(schema);
    if (place === undefined) throw new Error('A schema was compiled that was never taken in.');
    return place;
  }

  /** The schemas of the document itself. */
  ownSchemas(): SchemaObject[] {
    return [...this.#locations].filter(([, { isExternal }]) => !isExternal).map(([schema]) => schema);
  }

  #addResource(root: SchemaObject, uri: string): SchemaResource {
    const resource: SchemaResource = { uri, root, anchors: new Map(), dynamicAnchors: new Map() };
    this.#resources.set(uri, resource);
    return resource;
  }

  #addSchemas(schema: SchemaObject, around: SchemaLocation): void {
    const place = this.#locate(schema, around);
    this.#locations.set(schema, place);
    const flaw = place.dialect(schema);
    if (flaw !== undefined) throw new MalformedSchemaError(place.pointer, flaw);
    this.#addAnchor(schema, '$anchor', place);
    this.#addAnchor(schema, '$dynamicAnchor', place);
    for (const [keyword, value] of Object.entries(schema)) {
      if (UNCERTAIN_KEYWORDS.has(keyword)) this.canCompileLazily = false;
      const holder = Object.hasOwn(subschemaKeywords, keyword) ? subschemaKeywords[keyword] : undefined;
      if (holder === undefined || typeof value !== 'object' || value === null) continue;
      const at = appendPointer(place.pointer, keyword);
      if (holder === 'one') this.#addSubschema(value, { ...place, pointer: at });
      else
        for (const [name, part] of Object.entries(value))
          this.#addSubschema(part, { ...place, pointer: appendPointer(at, name) });
    }
  }

  #addSubschema(schema: unknown, around: SchemaLocation): void {
    if (isSchemaObject(schema)) this.#addSchemas(schema, around);
  }

  /** The place of a schema, which may begin a resource or name another dialect. */
  #locate(schema: SchemaObject, around: SchemaLocation): SchemaLocation {
    const { $id, $schema } = schema;
    let { resource, dialect } = around;
    if (typeof $schema === 'string') {
      const named = dialectOf($schema);
      if (named === undefined)
        throw new MalformedSchemaError(
          around.pointer,
          `"$schema" names ${$schema}, which is not known here; say 2020-12`,
        );
      dialect = named;
    }
    if (typeof $id === 'string' && resource.root !== schema) {
      const uri = this.#resolveUri($id, resource.uri, around.pointer);
      if (this.#resources.has(uri)) throw new MalformedSchemaError(around.pointer, `two schemas have the "$id" ${$id}`);
      resource = this.#addResource(schema, uri);
    }
    return { ...around, resource, dialect };
  }

  #addAnchor(schema: SchemaObject, keyword: '$anchor' | '$dynamicAnchor', place: SchemaLocation): void {
    const name = schema[keyword];
    if (typeof name !== 'string') return;
    const { anchors, dynamicAnchors } = place.resource;
    const taken = anchors.get(name);
    if (taken !== undefined && taken !== schema) {
      throw new MalformedSchemaError(appendPointer(place.pointer, keyword), `two schemas have the anchor ${name}`);
    }
    anchors.set(name, schema);
    if (keyword === '$dynamicAnchor') dynamicAnchors.set(name, schema);
  }

  #resolveUri(reference: string, base: string, pointer: string): string {
    if (!URL.canParse(reference, base)) throw new MalformedSchemaError(pointer, `${reference} is not an address`);
    return new URL(reference, base).href.replace(/#$/, '');
  }

  /** The schema that a reference at this place leads to. */
  resolveReference(reference: string, from: SchemaLocation, pointer: string): JsonSchema {
    const [address = '', ...rest] = reference.split('#');
    const resource =
      address === '' ? from.resource : this.#findResource(this.#resolveUri(address, from.resource.uri, pointer));
    const found = resource && this.#resolveFragment(resource, decodeFragment(rest.join('#')));
    if (found !== undefined) return found;
    const why = resource === undefined ? 'that address is not known here, and nothing is fetched' : 'nothing is there';
    throw new MalformedSchemaError(pointer, `the reference ${reference} leads nowhere: ${why}`);
  }

  #findResource(uri: string): SchemaResource | undefined {
    const here = this.#resources.get(uri);
    if (here !== undefined) return here;
    const document = this.#findDocument(uri);
    if (!isSchemaObject(document)) return undefined;
    this.add(document, uri);
    return this.locationOf(document).resource;
  }

  #resolveFragment(resource: SchemaResource, fragment: string | undefined): JsonSchema | undefined {
    if (fragment === '') return resource.root;
    if (fragment?.startsWith('/')) return this.#followPointer(resource.root, fragment.slice(1).split('/'));
    return fragment === undefined ? undefined : resource.anchors.get(fragment);
  }

  /** Follows a pointer; what it finds outside of every keyword that we know is taken in as a schema now. */
  #followPointer(root: SchemaObject, names: readonly string[]): JsonSchema | undefined {
    let place = this.locationOf(root);
    let found: Json = root;
    let pointer = place.pointer;
    for (const escaped of names) {
      const name = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
      found = (found as SchemaObject)[name] as Json;
      pointer = appendPointer(pointer, name);
      place = (isSchemaObject(found) && this.#locations.get(found)) || place;
    }
    if (typeof found === 'boolean') return found;
    if (!isSchemaObject(found)) return undefined;
    if (!this.#locations.has(found)) {
      this.#addSchemas(found, { ...place, pointer });
      this.#assertWellFormed(found, pointer);
    }
    return found;
  }
}

function decodeFragment(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
