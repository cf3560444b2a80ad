/**
 * From documents to closures. Which schema a `$dynamicRef` means depends on the resources that were entered on the way, so
 * a schema is compiled once for each way that makes a difference, and nothing is left to look up while checking.
 */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import type { JsonSchema } from '../../protocol/loop.js';
import { type LinearPattern, linearPattern } from '../pattern.js';
import { arrays, unevaluatedItems } from './arrays.js';
import { assertions } from './assertions.js';
import { isSchemaFields, type Library, Malformed, type Resource, type SchemaFields } from './library.js';
import { logic } from './logic.js';
import { objects, unevaluatedProperties } from './objects.js';
import { below, type Check, type Compiled, isOf, kinds, type Maker, type Rule, Seen, type Site } from './rule.js';

/** A schema may not unfold into more nodes than this. */
const NODES = 200_000;

/** In this order: what is cheap and fails often comes first. */
const makers: { readonly [keyword: string]: Maker } = {
  ...assertions,
  ...objects,
  ...arrays,
  ...logic,
  unevaluatedProperties,
  unevaluatedItems,
};
const ranks: ReadonlyMap<string, number> = new Map(Object.keys(makers).map((keyword, rank) => [keyword, rank]));

const everything: Compiled = { ...constant(true), rest: undefined };
const nothing: Compiled = { ...constant(false), explain: (_, at, report) => report.add(at, 'is not allowed') };

function constant(answer: boolean): Compiled {
  const check = () => answer;
  return { check, explain: () => {}, kind: 0, rest: check };
}

/** The dynamic anchors that are bound so far: the outermost resource that has a name keeps it. */
interface Scope {
  readonly key: string;
  readonly bound: ReadonlyMap<string, SchemaFields>;
}

export interface Compilation {
  readonly root: Compiled;
  /** Whether references are followed, and whether the schema can follow a value down to any depth. */
  readonly refers: boolean;
  readonly recursive: boolean;
}

export function compile(library: Library, schema: JsonSchema): Compilation {
  return new Compiler(library).run(schema);
}

class Compiler {
  readonly #library: Library;
  readonly #made = new Map<SchemaFields, Map<string, Compiled>>();
  readonly #resources = new Map<Resource, number>();
  readonly #waiting = new Map<Compiled, () => void>();
  /** The schemas that each one applies to the same value, and to parts of it. */
  readonly #here = new Map<Compiled, Compiled[]>();
  readonly #below = new Map<Compiled, Compiled[]>();
  #refers = false;
  #unbounded = false;

  constructor(library: Library) {
    this.#library = library;
  }

  run(schema: JsonSchema): Compilation {
    const outside: Scope = { key: '', bound: new Map() };
    const root = this.#compiled(schema, outside, false);
    const scope = isSchemaFields(schema) ? this.#enter(outside, this.#library.placeOf(schema).resource) : outside;
    for (const part of this.#library.own()) this.#compiled(part, scope, true);
    for (const node of this.#waiting.keys()) this.#finish(node);
    const refers = this.#refers;
    const here = (node: Compiled) => this.#here.get(node) ?? [];
    const all = (node: Compiled) => [...here(node), ...(this.#below.get(node) ?? [])];
    const nodes = [...this.#here.keys()];
    if (refers && cyclic(nodes, here)) {
      throw new Malformed('', 'its references lead back to themselves without going into the value');
    }
    return { root, refers, recursive: this.#unbounded || (refers && cyclic(nodes, all)) };
  }

  /** The node of a schema; `later` for one that a reference leads to, which need not be finished yet. */
  #compiled(schema: Json, scope: Scope, later: boolean): Compiled {
    if (!isSchemaFields(schema)) return schema === false ? nothing : everything;
    const inner = this.#enter(scope, this.#library.placeOf(schema).resource);
    const node = this.#node(schema, inner);
    if (!later) this.#finish(node);
    return node;
  }

  #node(schema: SchemaFields, scope: Scope): Compiled {
    const made = this.#made.get(schema) ?? new Map<string, Compiled>();
    this.#made.set(schema, made);
    const known = made.get(scope.key);
    if (known !== undefined) return known;
    const node: Compiled = { ...constant(false), check: unfinished, explain: unfinished };
    made.set(scope.key, node);
    this.#waiting.set(node, () => this.#fill(node, schema, scope));
    this.#here.set(node, []);
    if (this.#here.size > NODES) throw new Malformed('', 'it unfolds into too many schemas');
    return node;
  }

  #finish(node: Compiled): void {
    const fill = this.#waiting.get(node);
    this.#waiting.delete(node);
    fill?.();
  }

  #enter(scope: Scope, resource: Resource): Scope {
    if (resource.dynamic.size === 0) return scope;
    const fresh = [...resource.dynamic].filter(([name]) => !scope.bound.has(name));
    if (fresh.length === 0) return scope;
    const id = this.#resources.get(resource) ?? this.#resources.size;
    this.#resources.set(resource, id);
    const names = fresh.map(([name]) => `${name}=${id}`);
    const key = [...scope.key.split(' '), ...names].sort().join(' ');
    return { key, bound: new Map([...scope.bound, ...fresh]) };
  }

  #fill(node: Compiled, schema: SchemaFields, scope: Scope): void {
    const site = new Workplace(this, node, schema, scope);
    const keywords = Object.keys(schema).filter((keyword) => ranks.has(keyword));
    keywords.sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
    const sees = keywords.some((keyword) => keyword.startsWith('unevaluated'));
    const kind = (!sees && typeof schema.type === 'string' && kinds[schema.type]) || 0;
    const rules = keywords.flatMap((keyword) => makers[keyword]?.(site, schema[keyword] as Json) ?? []);
    const checks = rules.slice(kind === 0 ? 0 : 1).map(({ check }) => check);
    const rest = sees ? seeing(allOf(checks)) : allOf(checks);
    node.kind = kind;
    node.rest = rest === everything.check ? undefined : rest;
    node.check = kind === 0 ? rest : (value, seen) => isOf(kind, value) && rest(value, seen);
    node.explain = explaining(rules, sees);
    if (schema.uniqueItems === true) this.#unbounded = true;
  }

  /** A subschema or the target of a reference, noted as what this node leads to. */
  part(node: Compiled, inPlace: boolean, schema: Json, scope: Scope, later: boolean): Compiled {
    const part = this.#compiled(schema, scope, later);
    const edges = inPlace ? this.#here : this.#below;
    const known = edges.get(node);
    if (known === undefined) edges.set(node, [part]);
    else known.push(part);
    return part;
  }

  target(schema: SchemaFields, reference: string, dynamic: boolean, scope: Scope): JsonSchema {
    this.#refers = true;
    const place = this.#library.placeOf(schema);
    const found = this.#library.resolve(reference, place, below(place.pointer, dynamic ? '$dynamicRef' : '$ref'));
    return (dynamic && boundTo(found, reference, scope)) || found;
  }

  pattern(schema: SchemaFields, source: string): LinearPattern {
    try {
      return linearPattern(source);
    } catch (error) {
      if (!(error instanceof LoopError)) throw error;
      throw new Malformed(this.#library.placeOf(schema).pointer, error.message.replace(/\.$/, ''));
    }
  }
}

/** A schema that is being compiled. */
class Workplace implements Site {
  readonly schema: SchemaFields;
  readonly #compiler: Compiler;
  readonly #node: Compiled;
  readonly #scope: Scope;

  constructor(compiler: Compiler, node: Compiled, schema: SchemaFields, scope: Scope) {
    this.schema = schema;
    this.#compiler = compiler;
    this.#node = node;
    this.#scope = scope;
  }

  here(schema: Json): Compiled {
    return this.#compiler.part(this.#node, true, schema, this.#scope, false);
  }

  below(schema: Json): Compiled {
    return this.#compiler.part(this.#node, false, schema, this.#scope, false);
  }

  refer(reference: string, dynamic: boolean): Compiled {
    const target = this.#compiler.target(this.schema, reference, dynamic, this.#scope);
    return this.#compiler.part(this.#node, true, target, this.#scope, true);
  }

  pattern(source: string): LinearPattern {
    return this.#compiler.pattern(this.schema, source);
  }
}

/** What a dynamic reference means on this way, if it leads to a dynamic anchor at all. */
function boundTo(found: JsonSchema, reference: string, scope: Scope): SchemaFields | undefined {
  const name = reference.slice(reference.indexOf('#') + 1);
  return isSchemaFields(found) && found.$dynamicAnchor === name ? scope.bound.get(name) : undefined;
}

function unfinished(): never {
  throw new Error('A schema was asked before it was compiled.');
}

/** All of them, without a loop where there are few. */
function allOf(checks: readonly Check[]): Check {
  const [a, b, c] = checks;
  if (a === undefined) return everything.check;
  if (b === undefined) return a;
  if (c === undefined) return (value, seen) => a(value, seen) && b(value, seen);
  if (checks.length === 3) return (value, seen) => a(value, seen) && b(value, seen) && c(value, seen);
  const rest = allOf(checks.slice(2));
  return (value, seen) => a(value, seen) && b(value, seen) && rest(value, seen);
}

/** Of a schema that asks what is left over: its keywords say what they look at, and tell the schema around it. */
function seeing(check: Check): Check {
  return (value, outer) => {
    const seen = new Seen();
    if (!check(value, seen)) return false;
    outer?.add(seen);
    return true;
  };
}

function explaining(rules: readonly Rule[], sees: boolean): Rule['explain'] {
  return (value, at, report) => {
    const seen = sees ? new Seen() : undefined;
    for (const rule of rules) {
      if (report.full) return;
      if (!rule.check(value, seen)) rule.explain(value, at, report, seen);
    }
  };
}

/** Whether a walk along the edges can come back to where it was. */
function cyclic(nodes: readonly Compiled[], edges: (node: Compiled) => readonly Compiled[]): boolean {
  const left = new Map<Compiled, number>();
  for (const node of nodes) for (const to of edges(node)) left.set(to, (left.get(to) ?? 0) + 1);
  const free = nodes.filter((node) => !left.has(node));
  let done = 0;
  for (let node = free.pop(); node !== undefined; node = free.pop()) {
    done += 1;
    for (const to of edges(node)) {
      const count = (left.get(to) ?? 0) - 1;
      left.set(to, count);
      if (count === 0 && to !== everything && to !== nothing) free.push(to);
    }
  }
  return done < nodes.length;
}
