/**
 * From documents to closures. Which schema a `$dynamicRef` means depends on the resources that were entered on the way, so
 * a schema is compiled once for each way that makes a difference, and nothing is left to look up while checking.
 */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { type LinearPattern, linearPattern } from '../linear-pattern.js';
import { arrayKeywords, unevaluatedItems } from './arrays.js';
import { assertionKeywords } from './assertions.js';
import {
  isSchemaObject,
  MalformedSchemaError,
  type SchemaDocuments,
  type SchemaObject,
  type SchemaResource,
} from './documents.js';
import { logicKeywords } from './logic.js';
import { objectKeywords, unevaluatedProperties } from './objects.js';
import {
  appendPointer,
  type CompiledSchema,
  EvaluatedLocations,
  hasType,
  type KeywordCompiler,
  type KeywordContext,
  type SchemaCheck,
  type SchemaRule,
  typeCodes,
} from './rule.js';

/** A schema may not unfold into more nodes than this. */
const MAX_NODES = 200_000;

/** In this order: what is cheap and fails often comes first. */
const keywordCompilers: { readonly [keyword: string]: KeywordCompiler } = {
  ...assertionKeywords,
  ...objectKeywords,
  ...arrayKeywords,
  ...logicKeywords,
  unevaluatedProperties,
  unevaluatedItems,
};
const keywordRanks: ReadonlyMap<string, number> = new Map(
  Object.keys(keywordCompilers).map((keyword, rank) => [keyword, rank]),
);

const acceptAll: CompiledSchema = { ...constantSchema(true), checkRest: undefined };
const rejectAll: CompiledSchema = {
  ...constantSchema(false),
  explain: (_, at, report) => report.add(at, 'is not allowed'),
};

function constantSchema(answer: boolean): CompiledSchema {
  const check = () => answer;
  return { check, explain: () => {}, typeCode: 0, checkRest: check };
}

/** The dynamic anchors that are bound so far: the outermost resource that has a name keeps it. */
interface DynamicScope {
  readonly key: string;
  readonly anchors: ReadonlyMap<string, SchemaObject>;
}

export interface CompilationResult {
  readonly root: CompiledSchema;
  /** Whether references are followed, and whether the schema can follow a value down to any depth. */
  readonly hasReferences: boolean;
  readonly isRecursive: boolean;
}

export function compileRules(library: SchemaDocuments, schema: JsonSchema): CompilationResult {
  return new SchemaCompiler(library).run(schema);
}

class SchemaCompiler {
  readonly #documents: SchemaDocuments;
  readonly #nodes = new Map<SchemaObject, Map<string, CompiledSchema>>();
  readonly #resourceIds = new Map<SchemaResource, number>();
  readonly #unfinished = new Map<CompiledSchema, () => void>();
  /** The schemas that each one applies to the same value, and to parts of it. */
  readonly #inPlaceEdges = new Map<CompiledSchema, CompiledSchema[]>();
  readonly #childEdges = new Map<CompiledSchema, CompiledSchema[]>();
  #hasReferences = false;
  #isUnbounded = false;

  constructor(library: SchemaDocuments) {
    this.#documents = library;
  }

  run(schema: JsonSchema): CompilationResult {
    const outside: DynamicScope = { key: '', anchors: new Map() };
    const root = this.#compileSchema(schema, outside, false);
    const scope = isSchemaObject(schema)
      ? this.#enterResource(outside, this.#documents.locationOf(schema).resource)
      : outside;
    for (const part of this.#documents.ownSchemas()) this.#compileSchema(part, scope, true);
    for (const node of this.#unfinished.keys()) this.#finish(node);
    const refers = this.#hasReferences;
    const here = (node: CompiledSchema) => this.#inPlaceEdges.get(node) ?? [];
    const all = (node: CompiledSchema) => [...here(node), ...(this.#childEdges.get(node) ?? [])];
    const nodes = [...this.#inPlaceEdges.keys()];
    if (refers && hasCycle(nodes, here)) {
      throw new MalformedSchemaError('', 'its references lead back to themselves without going into the value');
    }
    return { root, hasReferences: refers, isRecursive: this.#isUnbounded || (refers && hasCycle(nodes, all)) };
  }

  /** The node of a schema; `later` for one that a reference leads to, which need not be finished yet. */
  #compileSchema(schema: Json, scope: DynamicScope, later: boolean): CompiledSchema {
    if (!isSchemaObject(schema)) return schema === false ? rejectAll : acceptAll;
    const inner = this.#enterResource(scope, this.#documents.locationOf(schema).resource);
    const node = this.#nodeOf(schema, inner);
    if (!later) this.#finish(node);
    return node;
  }

  #nodeOf(schema: SchemaObject, scope: DynamicScope): CompiledSchema {
    const made = this.#nodes.get(schema) ?? new Map<string, CompiledSchema>();
    this.#nodes.set(schema, made);
    const known = made.get(scope.key);
    if (known !== undefined) return known;
    const node: CompiledSchema = { ...constantSchema(false), check: throwUnfinished, explain: throwUnfinished };
    made.set(scope.key, node);
    this.#unfinished.set(node, () => this.#compileKeywords(node, schema, scope));
    this.#inPlaceEdges.set(node, []);
    if (this.#inPlaceEdges.size > MAX_NODES) throw new MalformedSchemaError('', 'it unfolds into too many schemas');
    return node;
  }

  #finish(node: CompiledSchema): void {
    const fill = this.#unfinished.get(node);
    this.#unfinished.delete(node);
    fill?.();
  }

  #enterResource(scope: DynamicScope, resource: SchemaResource): DynamicScope {
    if (resource.dynamicAnchors.size === 0) return scope;
    const fresh = [...resource.dynamicAnchors].filter(([name]) => !scope.anchors.has(name));
    if (fresh.length === 0) return scope;
    const id = this.#resourceIds.get(resource) ?? this.#resourceIds.size;
    this.#resourceIds.set(resource, id);
    const names = fresh.map(([name]) => `${name}=${id}`);
    const key = [...scope.key.split(' '), ...names].sort().join(' ');
    return { key, anchors: new Map([...scope.anchors, ...fresh]) };
  }

  #compileKeywords(node: CompiledSchema, schema: SchemaObject, scope: DynamicScope): void {
    const site = new SchemaKeywordContext(this, node, schema, scope);
    const keywords = Object.keys(schema).filter((keyword) => keywordRanks.has(keyword));
    keywords.sort((a, b) => (keywordRanks.get(a) ?? 0) - (keywordRanks.get(b) ?? 0));
    const sees = keywords.some((keyword) => keyword.startsWith('unevaluated'));
    const kind = (!sees && typeof schema.type === 'string' && typeCodes[schema.type]) || 0;
    const rules = keywords.flatMap((keyword) => keywordCompilers[keyword]?.(site, schema[keyword] as Json) ?? []);
    const checks = rules.slice(kind === 0 ? 0 : 1).map(({ check }) => check);
    const rest = sees ? trackEvaluated(combineChecks(checks)) : combineChecks(checks);
    node.typeCode = kind;
    node.checkRest = rest === acceptAll.check ? undefined : rest;
    node.check = kind === 0 ? rest : (value, seen) => hasType(kind, value) && rest(value, seen);
    node.explain = explainRules(rules, sees);
    if (schema.uniqueItems === true) this.#isUnbounded = true;
  }

  /** A subschema or the target of a reference, noted as what this node leads to. */
  compilePart(
    node: CompiledSchema,
    inPlace: boolean,
    schema: Json,
    scope: DynamicScope,
    later: boolean,
  ): CompiledSchema {
    const part = this.#compileSchema(schema, scope, later);
    const edges = inPlace ? this.#inPlaceEdges : this.#childEdges;
    const known = edges.get(node);
    if (known === undefined) edges.set(node, [part]);
    else known.push(part);
    return part;
  }

  resolveTarget(schema: SchemaObject, reference: string, dynamic: boolean, scope: DynamicScope): JsonSchema {
    this.#hasReferences = true;
    const place = this.#documents.locationOf(schema);
    const found = this.#documents.resolveReference(
      reference,
      place,
      appendPointer(place.pointer, dynamic ? '$dynamicRef' : '$ref'),
    );
    return (dynamic && dynamicTarget(found, reference, scope)) || found;
  }

  compilePattern(schema: SchemaObject, source: string): LinearPattern {
    try {
      return linearPattern(source);
    } catch (error) {
      if (!(error instanceof LoopError)) throw error;
      throw new MalformedSchemaError(this.#documents.locationOf(schema).pointer, error.message.replace(/\.$/, ''));
    }
  }
}

/** A schema that is being compiled. */
class SchemaKeywordContext implements KeywordContext {
  readonly schema: SchemaObject;
  readonly #compiler: SchemaCompiler;
  readonly #node: CompiledSchema;
  readonly #scope: DynamicScope;

  constructor(compiler: SchemaCompiler, node: CompiledSchema, schema: SchemaObject, scope: DynamicScope) {
    this.schema = schema;
    this.#compiler = compiler;
    this.#node = node;
    this.#scope = scope;
  }

  compileInPlace(schema: Json): CompiledSchema {
    return this.#compiler.compilePart(this.#node, true, schema, this.#scope, false);
  }

  compileChild(schema: Json): CompiledSchema {
    return this.#compiler.compilePart(this.#node, false, schema, this.#scope, false);
  }

  compileReference(reference: string, dynamic: boolean): CompiledSchema {
    const target = this.#compiler.resolveTarget(this.schema, reference, dynamic, this.#scope);
    return this.#compiler.compilePart(this.#node, true, target, this.#scope, true);
  }

  compilePattern(source: string): LinearPattern {
    return this.#compiler.compilePattern(this.schema, source);
  }
}

/** What a dynamic reference means on this way, if it leads to a dynamic anchor at all. */
function dynamicTarget(found: JsonSchema, reference: string, scope: DynamicScope): SchemaObject | undefined {
  const name = reference.slice(reference.indexOf('#') + 1);
  return isSchemaObject(found) && found.$dynamicAnchor === name ? scope.anchors.get(name) : undefined;
}

function throwUnfinished(): never {
  throw new Error('A schema was asked before it was compiled.');
}

/** All of them, without a loop where there are few. */
function combineChecks(checks: readonly SchemaCheck[]): SchemaCheck {
  const [a, b, c] = checks;
  if (a === undefined) return acceptAll.check;
  if (b === undefined) return a;
  if (c === undefined) return (value, seen) => a(value, seen) && b(value, seen);
  if (checks.length === 3) return (value, seen) => a(value, seen) && b(value, seen) && c(value, seen);
  const rest = combineChecks(checks.slice(2));
  return (value, seen) => a(value, seen) && b(value, seen) && rest(value, seen);
}

/** Of a schema that asks what is left over: its keywords say what they look at, and tell the schema around it. */
function trackEvaluated(check: SchemaCheck): SchemaCheck {
  return (value, outer) => {
    const seen = new EvaluatedLocations();
    if (!check(value, seen)) return false;
    outer?.merge(seen);
    return true;
  };
}

function explainRules(rules: readonly SchemaRule[], sees: boolean): SchemaRule['explain'] {
  return (value, at, report) => {
    const seen = sees ? new EvaluatedLocations() : undefined;
    for (const rule of rules) {
      if (report.isFull) return;
      if (!rule.check(value, seen)) rule.explain(value, at, report, seen);
    }
  };
}

/** Whether a walk along the edges can come back to where it was. */
function hasCycle(
  nodes: readonly CompiledSchema[],
  edges: (node: CompiledSchema) => readonly CompiledSchema[],
): boolean {
  const left = new Map<CompiledSchema, number>();
  for (const node of nodes) for (const to of edges(node)) left.set(to, (left.get(to) ?? 0) + 1);
  const free = nodes.filter((node) => !left.has(node));
  let done = 0;
  for (let node = free.pop(); node !== undefined; node = free.pop()) {
    done += 1;
    for (const to of edges(node)) {
      const count = (left.get(to) ?? 0) - 1;
      left.set(to, count);
      if (count === 0 && to !== acceptAll && to !== rejectAll) free.push(to);
    }
  }
  return done < nodes.length;
}
