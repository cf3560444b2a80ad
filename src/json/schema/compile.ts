/**
 * Compiles schema documents to closures. The target of a `$dynamicRef` depends on the resources entered before it (the
 * dynamic scope), so a schema is compiled once per distinct dynamic scope. Validation then resolves no references.
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

/** The maximum number of compiled schemas of one document, counted once per dynamic scope. */
const MAX_NODES = 200_000;

/** The compilers of all keywords, in the order of evaluation: keywords that are cheap and fail often come first. */
export const keywordCompilers: { readonly [keyword: string]: KeywordCompiler } = {
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

function constantSchema(isValid: boolean): CompiledSchema {
  const check = () => isValid;
  return { check, explain: () => {}, typeCode: 0, checkRest: check };
}

/** The dynamic anchors in scope. The outermost resource that declares a name binds it. */
interface DynamicScope {
  readonly key: string;
  readonly anchors: ReadonlyMap<string, SchemaObject>;
}

/** A compiled schema document. */
export interface CompilationResult {
  readonly root: CompiledSchema;
  /** True if the schema has references. */
  readonly hasReferences: boolean;
  /** True if validation may descend into a value to any depth. */
  readonly isRecursive: boolean;
}

/** Compiles a schema whose documents are in `documents`. Throws MalformedSchemaError if it is unusable. */
export function compileRules(documents: SchemaDocuments, schema: JsonSchema): CompilationResult {
  return new SchemaCompiler(documents).run(schema);
}

class SchemaCompiler {
  private readonly documents: SchemaDocuments;
  private readonly nodes = new Map<SchemaObject, Map<string, CompiledSchema>>();
  private readonly resourceIds = new Map<SchemaResource, number>();
  /** The nodes whose keywords are not compiled yet, with the function that compiles them. */
  private readonly unfinished = new Map<CompiledSchema, () => void>();
  /** The schemas that each schema applies to the same value. */
  private readonly inPlaceEdges = new Map<CompiledSchema, CompiledSchema[]>();
  /** The schemas that each schema applies to parts of the value. */
  private readonly childEdges = new Map<CompiledSchema, CompiledSchema[]>();
  private hasReferences = false;
  private isUnbounded = false;

  constructor(documents: SchemaDocuments) {
    this.documents = documents;
  }

  run(schema: JsonSchema): CompilationResult {
    const emptyScope: DynamicScope = { key: '', anchors: new Map() };
    const root = this.compileSchema(schema, emptyScope, false);
    const scope = isSchemaObject(schema)
      ? this.enterResource(emptyScope, this.documents.locationOf(schema).resource)
      : emptyScope;
    for (const part of this.documents.ownSchemas()) this.compileSchema(part, scope, true);
    for (const node of this.unfinished.keys()) this.finish(node);
    const hasReferences = this.hasReferences;
    const inPlace = (node: CompiledSchema) => this.inPlaceEdges.get(node) ?? [];
    const all = (node: CompiledSchema) => [...inPlace(node), ...(this.childEdges.get(node) ?? [])];
    const nodes = [...this.inPlaceEdges.keys()];
    if (hasReferences && hasCycle(nodes, inPlace)) {
      throw new MalformedSchemaError('', 'its references lead back to themselves without descending into the value');
    }
    return { root, hasReferences, isRecursive: this.isUnbounded || (hasReferences && hasCycle(nodes, all)) };
  }

  /** Returns the node of a schema. If `isDeferred`, as for the target of a reference, the node may be unfinished. */
  private compileSchema(schema: Json, scope: DynamicScope, isDeferred: boolean): CompiledSchema {
    if (!isSchemaObject(schema)) return schema === false ? rejectAll : acceptAll;
    const inner = this.enterResource(scope, this.documents.locationOf(schema).resource);
    const node = this.nodeOf(schema, inner);
    if (!isDeferred) this.finish(node);
    return node;
  }

  private nodeOf(schema: SchemaObject, scope: DynamicScope): CompiledSchema {
    const nodesByScope = this.nodes.get(schema) ?? new Map<string, CompiledSchema>();
    this.nodes.set(schema, nodesByScope);
    const existing = nodesByScope.get(scope.key);
    if (existing !== undefined) return existing;
    const node: CompiledSchema = { ...constantSchema(false), check: throwUnfinished, explain: throwUnfinished };
    nodesByScope.set(scope.key, node);
    this.unfinished.set(node, () => this.compileKeywords(node, schema, scope));
    this.inPlaceEdges.set(node, []);
    if (this.inPlaceEdges.size > MAX_NODES) throw new MalformedSchemaError('', 'it expands to too many schemas');
    return node;
  }

  private finish(node: CompiledSchema): void {
    const compile = this.unfinished.get(node);
    this.unfinished.delete(node);
    compile?.();
  }

  /** Returns the scope inside of a resource: with the dynamic anchors that no outer resource binds. */
  private enterResource(scope: DynamicScope, resource: SchemaResource): DynamicScope {
    if (resource.dynamicAnchors.size === 0) return scope;
    const newAnchors = [...resource.dynamicAnchors].filter(([name]) => !scope.anchors.has(name));
    if (newAnchors.length === 0) return scope;
    const id = this.resourceIds.get(resource) ?? this.resourceIds.size;
    this.resourceIds.set(resource, id);
    const names = newAnchors.map(([name]) => `${name}=${id}`);
    const key = [...scope.key.split(' '), ...names].sort().join(' ');
    return { key, anchors: new Map([...scope.anchors, ...newAnchors]) };
  }

  private compileKeywords(node: CompiledSchema, schema: SchemaObject, scope: DynamicScope): void {
    const context = new SchemaKeywordContext(this, node, schema, scope);
    const keywords = Object.keys(schema).filter((keyword) => keywordRanks.has(keyword));
    keywords.sort((a, b) => (keywordRanks.get(a) ?? 0) - (keywordRanks.get(b) ?? 0));
    const tracksEvaluated = keywords.some((keyword) => keyword.startsWith('unevaluated'));
    const typeCode = (!tracksEvaluated && typeof schema.type === 'string' && typeCodes[schema.type]) || 0;
    const rules = keywords.flatMap((keyword) => keywordCompilers[keyword]?.(context, schema[keyword] as Json) ?? []);
    const checks = rules.slice(typeCode === 0 ? 0 : 1).map(({ check }) => check);
    const rest = tracksEvaluated ? trackEvaluated(combineChecks(checks)) : combineChecks(checks);
    node.typeCode = typeCode;
    node.checkRest = rest === acceptAll.check ? undefined : rest;
    node.check = typeCode === 0 ? rest : (value, evaluated) => hasType(typeCode, value) && rest(value, evaluated);
    node.explain = explainRules(rules, tracksEvaluated);
    if (schema.uniqueItems === true) this.isUnbounded = true;
  }

  /** Compiles a subschema or the target of a reference, and records it as an edge of the node. */
  compilePart(
    node: CompiledSchema,
    isInPlace: boolean,
    schema: Json,
    scope: DynamicScope,
    isDeferred: boolean,
  ): CompiledSchema {
    const part = this.compileSchema(schema, scope, isDeferred);
    const edges = isInPlace ? this.inPlaceEdges : this.childEdges;
    const targets = edges.get(node);
    if (targets === undefined) edges.set(node, [part]);
    else targets.push(part);
    return part;
  }

  /**
   * Returns the schema that a reference of `schema` resolves to in this dynamic scope. Throws MalformedSchemaError if
   * there is none.
   */
  resolveTarget(schema: SchemaObject, reference: string, isDynamic: boolean, scope: DynamicScope): JsonSchema {
    this.hasReferences = true;
    const location = this.documents.locationOf(schema);
    const target = this.documents.resolveReference(
      reference,
      location,
      appendPointer(location.pointer, isDynamic ? '$dynamicRef' : '$ref'),
    );
    return (isDynamic && dynamicTarget(target, reference, scope)) || target;
  }

  /** Compiles a pattern of `schema`. Throws MalformedSchemaError if it cannot be used. */
  compilePattern(schema: SchemaObject, source: string): LinearPattern {
    try {
      return linearPattern(source);
    } catch (error) {
      if (!(error instanceof LoopError)) throw error;
      throw new MalformedSchemaError(this.documents.locationOf(schema).pointer, error.message.replace(/\.$/, ''));
    }
  }
}

/** The context of the keywords of one schema. */
class SchemaKeywordContext implements KeywordContext {
  readonly schema: SchemaObject;
  private readonly compiler: SchemaCompiler;
  private readonly node: CompiledSchema;
  private readonly scope: DynamicScope;

  constructor(compiler: SchemaCompiler, node: CompiledSchema, schema: SchemaObject, scope: DynamicScope) {
    this.schema = schema;
    this.compiler = compiler;
    this.node = node;
    this.scope = scope;
  }

  compileInPlace(schema: Json): CompiledSchema {
    return this.compiler.compilePart(this.node, true, schema, this.scope, false);
  }

  compileChild(schema: Json): CompiledSchema {
    return this.compiler.compilePart(this.node, false, schema, this.scope, false);
  }

  compileReference(reference: string, isDynamic: boolean): CompiledSchema {
    const target = this.compiler.resolveTarget(this.schema, reference, isDynamic, this.scope);
    return this.compiler.compilePart(this.node, true, target, this.scope, true);
  }

  compilePattern(source: string): LinearPattern {
    return this.compiler.compilePattern(this.schema, source);
  }
}

/** Returns the target of a dynamic reference in this scope; undefined if its static target is not a dynamic anchor. */
function dynamicTarget(target: JsonSchema, reference: string, scope: DynamicScope): SchemaObject | undefined {
  const name = reference.slice(reference.indexOf('#') + 1);
  return isSchemaObject(target) && target.$dynamicAnchor === name ? scope.anchors.get(name) : undefined;
}

function throwUnfinished(): never {
  throw new Error('A schema was used before it was compiled.');
}

/** Returns a check that requires all checks to succeed. It runs no loop. */
function combineChecks(checks: readonly SchemaCheck[]): SchemaCheck {
  const [a, b, c] = checks;
  if (a === undefined) return acceptAll.check;
  if (b === undefined) return a;
  if (c === undefined) return (value, evaluated) => a(value, evaluated) && b(value, evaluated);
  if (checks.length === 3)
    return (value, evaluated) => a(value, evaluated) && b(value, evaluated) && c(value, evaluated);
  const rest = combineChecks(checks.slice(2));
  return (value, evaluated) => a(value, evaluated) && b(value, evaluated) && rest(value, evaluated);
}

/**
 * Returns a check that collects the locations that the keywords of a schema with `unevaluated…` evaluate. If the value
 * is valid, it passes them to the enclosing schema.
 */
function trackEvaluated(check: SchemaCheck): SchemaCheck {
  return (value, outer) => {
    const evaluated = new EvaluatedLocations();
    if (!check(value, evaluated)) return false;
    outer?.merge(evaluated);
    return true;
  };
}

function explainRules(rules: readonly SchemaRule[], tracksEvaluated: boolean): SchemaRule['explain'] {
  return (value, at, report) => {
    const evaluated = tracksEvaluated ? new EvaluatedLocations() : undefined;
    for (const rule of rules) {
      if (report.isFull) return;
      if (!rule.check(value, evaluated)) rule.explain(value, at, report, evaluated);
    }
  };
}

/** True if the graph has a cycle (Kahn's algorithm). */
function hasCycle(
  nodes: readonly CompiledSchema[],
  edges: (node: CompiledSchema) => readonly CompiledSchema[],
): boolean {
  const incoming = new Map<CompiledSchema, number>();
  for (const node of nodes) for (const target of edges(node)) incoming.set(target, (incoming.get(target) ?? 0) + 1);
  const ready = nodes.filter((node) => !incoming.has(node));
  let sorted = 0;
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    sorted += 1;
    for (const target of edges(node)) {
      const count = (incoming.get(target) ?? 0) - 1;
      incoming.set(target, count);
      if (count === 0 && target !== acceptAll && target !== rejectAll) ready.push(target);
    }
  }
  return sorted < nodes.length;
}
