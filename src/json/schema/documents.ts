/**
 * The documents of a schema: their subschemas with URIs and anchors, and the resolution of references. Nothing is
 * fetched from the network: a URI must be in the schema itself, in the documents passed with it, or be a metaschema.
 */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { type Dialect, defaultDialect, dialectOf } from './dialect.js';
import { appendPointer } from './rule.js';

/** A schema that is an object, not a boolean. */
export type SchemaObject = { readonly [keyword: string]: Json };

/** A schema resource: a schema with its own URI, and the anchors in it. */
export interface SchemaResource {
  readonly uri: string;
  readonly root: SchemaObject;
  readonly anchors: Map<string, SchemaObject>;
  readonly dynamicAnchors: Map<string, SchemaObject>;
}

/** The location of a subschema. */
interface SchemaLocation {
  readonly resource: SchemaResource;
  readonly dialect: Dialect;
  /** A JSON Pointer for error messages; in an external document, it starts with the document's URI. */
  readonly pointer: string;
  /** True if the subschema is in another document than the compiled one. */
  readonly isExternal: boolean;
}

/** Thrown for a schema that cannot be used, with a pointer to the offending part. */
export class MalformedSchemaError extends Error {
  readonly pointer: string;

  constructor(pointer: string, reason: string) {
    super(reason);
    this.pointer = pointer;
  }
}

/** The keywords with subschemas, and whether their value is one schema, a list or a map of schemas. */
export const subschemaKeywords: { readonly [keyword: string]: 'one' | 'list' | 'map' } = {
  ...forKeywords('map', '$defs definitions properties patternProperties dependentSchemas dependencies'),
  ...forKeywords('list', 'allOf anyOf oneOf prefixItems'),
  ...forKeywords('one', 'items contains additionalProperties propertyNames if then else not'),
  ...forKeywords('one', 'unevaluatedItems unevaluatedProperties contentSchema'),
};

function forKeywords<V>(value: V, keywords: string): { [keyword: string]: V } {
  return Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, value]));
}

/** The keywords that can fail to compile although their value is valid under the metaschema. */
const UNCERTAIN_KEYWORDS = new Set(['$ref', '$dynamicRef', 'pattern', 'patternProperties']);

/** The URI of a schema that declares none. */
const ANONYMOUS_URI = 'schema:/';

/** True for a schema that is an object. */
export function isSchemaObject(value: unknown): value is SchemaObject {
  return isObject(value);
}

/** The documents of one schema. */
export class SchemaDocuments {
  /** True if compilation cannot fail, because there are no references and no patterns. */
  canCompileLazily = true;
  private readonly locations = new Map<SchemaObject, SchemaLocation>();
  private readonly resources = new Map<string, SchemaResource>();
  private readonly findDocument: (uri: string) => JsonSchema | undefined;
  private readonly assertWellFormed: (schema: SchemaObject, pointer: string) => void;

  /** `findDocument` returns external documents by URI; `assertWellFormed` throws for a malformed schema. */
  constructor(
    findDocument: (uri: string) => JsonSchema | undefined,
    assertWellFormed: (schema: SchemaObject, pointer: string) => void,
  ) {
    this.findDocument = findDocument;
    this.assertWellFormed = assertWellFormed;
  }

  /**
   * Adds a document, with its URI if it is external. It must be a tree: no object may occur twice. Throws
   * MalformedSchemaError if it cannot be used.
   */
  add(document: SchemaObject, uri = ANONYMOUS_URI): void {
    const isExternal = uri !== ANONYMOUS_URI;
    const pointer = isExternal ? `${uri}#` : '';
    const { $id } = document;
    const declaredUri = typeof $id === 'string' ? this.resolveUri($id, uri, appendPointer(pointer, '$id')) : uri;
    const resource = this.addResource(document, declaredUri);
    this.resources.set(uri, resource);
    this.addSchemas(document, { resource, dialect: defaultDialect, pointer, isExternal });
    this.assertWellFormed(document, pointer);
  }

  /** Returns the location of a schema of one of the documents. Throws for any other schema. */
  locationOf(schema: SchemaObject): SchemaLocation {
    const location = this.locations.get(schema);
    if (location === undefined) throw new Error('A schema was compiled that is in no document.');
    return location;
  }

  /** Returns the schemas of the compiled document, without those of external ones. */
  ownSchemas(): SchemaObject[] {
    return [...this.locations].filter(([, { isExternal }]) => !isExternal).map(([schema]) => schema);
  }

  private addResource(root: SchemaObject, uri: string): SchemaResource {
    const resource: SchemaResource = { uri, root, anchors: new Map(), dynamicAnchors: new Map() };
    this.resources.set(uri, resource);
    return resource;
  }

  private addSchemas(schema: SchemaObject, enclosing: SchemaLocation): void {
    const location = this.locate(schema, enclosing);
    this.locations.set(schema, location);
    const reason = location.dialect(schema);
    if (reason !== undefined) throw new MalformedSchemaError(location.pointer, reason);
    this.addAnchor(schema, '$anchor', location);
    this.addAnchor(schema, '$dynamicAnchor', location);
    for (const [keyword, value] of Object.entries(schema)) {
      if (UNCERTAIN_KEYWORDS.has(keyword)) this.canCompileLazily = false;
      const shape = Object.hasOwn(subschemaKeywords, keyword) ? subschemaKeywords[keyword] : undefined;
      if (shape === undefined || typeof value !== 'object' || value === null) continue;
      const pointer = appendPointer(location.pointer, keyword);
      if (shape === 'one') this.addSubschema(value, { ...location, pointer });
      else
        for (const [name, part] of Object.entries(value))
          this.addSubschema(part, { ...location, pointer: appendPointer(pointer, name) });
    }
  }

  private addSubschema(schema: unknown, enclosing: SchemaLocation): void {
    if (isSchemaObject(schema)) this.addSchemas(schema, enclosing);
  }

  /** Returns the location of a schema, which may start a resource or name another dialect. */
  private locate(schema: SchemaObject, enclosing: SchemaLocation): SchemaLocation {
    const { $id, $schema } = schema;
    let { resource, dialect } = enclosing;
    if (typeof $schema === 'string') {
      const declared = dialectOf($schema);
      if (declared === undefined)
        throw new MalformedSchemaError(
          enclosing.pointer,
          `"$schema" names ${$schema}, which is not supported; use draft 2020-12`,
        );
      dialect = declared;
    }
    if (typeof $id === 'string' && resource.root !== schema) {
      const uri = this.resolveUri($id, resource.uri, enclosing.pointer);
      if (this.resources.has(uri))
        throw new MalformedSchemaError(enclosing.pointer, `two schemas have the "$id" ${$id}`);
      resource = this.addResource(schema, uri);
    }
    return { ...enclosing, resource, dialect };
  }

  private addAnchor(schema: SchemaObject, keyword: '$anchor' | '$dynamicAnchor', location: SchemaLocation): void {
    const name = schema[keyword];
    if (typeof name !== 'string') return;
    const { anchors, dynamicAnchors } = location.resource;
    const existing = anchors.get(name);
    if (existing !== undefined && existing !== schema) {
      throw new MalformedSchemaError(appendPointer(location.pointer, keyword), `two schemas have the anchor ${name}`);
    }
    anchors.set(name, schema);
    if (keyword === '$dynamicAnchor') dynamicAnchors.set(name, schema);
  }

  private resolveUri(reference: string, base: string, pointer: string): string {
    if (!URL.canParse(reference, base)) throw new MalformedSchemaError(pointer, `${reference} is not a URI reference`);
    return new URL(reference, base).href.replace(/#$/, '');
  }

  /**
   * Returns the schema that a reference resolves to. Throws MalformedSchemaError if there is none; `pointer` is the
   * location of the reference, for the message.
   */
  resolveReference(reference: string, from: SchemaLocation, pointer: string): JsonSchema {
    const [uri = '', ...rest] = reference.split('#');
    const resource = uri === '' ? from.resource : this.findResource(this.resolveUri(uri, from.resource.uri, pointer));
    const target = resource && this.resolveFragment(resource, decodeFragment(rest.join('#')));
    if (target !== undefined) return target;
    const reason =
      resource === undefined ? 'the document is unknown, and nothing is fetched' : 'there is no such schema';
    throw new MalformedSchemaError(pointer, `the reference ${reference} cannot be resolved: ${reason}`);
  }

  private findResource(uri: string): SchemaResource | undefined {
    const existing = this.resources.get(uri);
    if (existing !== undefined) return existing;
    const document = this.findDocument(uri);
    if (!isSchemaObject(document)) return undefined;
    this.add(document, uri);
    return this.locationOf(document).resource;
  }

  private resolveFragment(resource: SchemaResource, fragment: string | undefined): JsonSchema | undefined {
    if (fragment === '') return resource.root;
    if (fragment?.startsWith('/')) return this.followPointer(resource.root, fragment.slice(1).split('/'));
    return fragment === undefined ? undefined : resource.anchors.get(fragment);
  }

  /** Follows a JSON Pointer. A target outside of all known keywords is added as a schema. */
  private followPointer(root: SchemaObject, names: readonly string[]): JsonSchema | undefined {
    let location = this.locationOf(root);
    let target: Json = root;
    let pointer = location.pointer;
    for (const escaped of names) {
      const name = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
      if (typeof target !== 'object' || target === null || !Object.hasOwn(target, name)) return undefined;
      target = (target as SchemaObject)[name] as Json;
      pointer = appendPointer(pointer, name);
      location = (isSchemaObject(target) && this.locations.get(target)) || location;
    }
    if (typeof target === 'boolean') return target;
    if (!isSchemaObject(target)) return undefined;
    if (!this.locations.has(target)) {
      this.addSchemas(target, { ...location, pointer });
      this.assertWellFormed(target, pointer);
    }
    return target;
  }
}

function decodeFragment(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
