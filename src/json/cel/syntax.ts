/** The syntax tree of an expression, and the error for one that cannot be used. */
import type { Json } from '../../protocol/json.js';
import type { CelFunction } from './functions.js';

/** The operators with two operands, except for the logical ones. */
export type CelOperator = '==' | '!=' | 'in' | '+' | '-' | '*' | '/' | '%' | '<' | '<=' | '>' | '>=';

/** The macros that evaluate an expression for each element of a list or each key of a map. */
export type CelMacro = 'all' | 'exists' | 'exists_one' | 'map' | 'filter';

/** A node of an expression. `text` is its source. */
export type CelNode = { readonly text: string } & (
  | { readonly kind: 'literal'; readonly value: Json; readonly isInteger: boolean }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'member'; readonly target: CelNode; readonly name: string }
  | { readonly kind: 'has'; readonly target: CelNode; readonly name: string }
  | { readonly kind: 'index'; readonly target: CelNode; readonly index: CelNode }
  | { readonly kind: 'list'; readonly items: readonly CelNode[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [key: CelNode, value: CelNode])[] }
  | { readonly kind: 'not' | 'negate'; readonly operand: CelNode }
  | { readonly kind: 'and' | 'or'; readonly left: CelNode; readonly right: CelNode }
  | { readonly kind: 'binary'; readonly operator: CelOperator; readonly left: CelNode; readonly right: CelNode }
  | {
      readonly kind: 'conditional';
      readonly condition: CelNode;
      readonly whenTrue: CelNode;
      readonly whenFalse: CelNode;
    }
  | { readonly kind: 'call'; readonly called: CelFunction; readonly args: readonly CelNode[] }
  | CelComprehension
);

/** A macro over a list or map. `map` has a transform, and a predicate only in its form with three arguments. */
export interface CelComprehension {
  readonly kind: 'comprehension';
  readonly macro: CelMacro;
  readonly list: CelNode;
  readonly variable: string;
  readonly predicate: CelNode | undefined;
  readonly transform: CelNode | undefined;
}

/** Thrown for a text that is no expression, or uses a part of the language that is not supported. */
export class CelSyntaxError extends Error {
  override readonly name = 'CelSyntaxError';
}

/** Returns the direct subexpressions of a node. */
export function childrenOf(node: CelNode): readonly CelNode[] {
  switch (node.kind) {
    case 'literal':
    case 'name':
      return [];
    case 'member':
    case 'has':
      return [node.target];
    case 'index':
      return [node.target, node.index];
    case 'list':
      return node.items;
    case 'map':
      return node.entries.flat();
    case 'not':
    case 'negate':
      return [node.operand];
    case 'and':
    case 'or':
    case 'binary':
      return [node.left, node.right];
    case 'conditional':
      return [node.condition, node.whenTrue, node.whenFalse];
    case 'call':
      return node.args;
    case 'comprehension':
      return [node.list, node.predicate, node.transform].filter((child) => child !== undefined);
  }
}

/** Returns the number of nodes of an expression. */
export function nodeCount(node: CelNode): number {
  return childrenOf(node).reduce((count, child) => count + nodeCount(child), 1);
}

/**
 * Returns the path of member names that a node reads of a variable, such as `['result', 'output', 'count']`; undefined
 * if it is no such path.
 */
export function memberPathOf(node: CelNode): readonly string[] | undefined {
  if (node.kind === 'name') return [node.name];
  const name = memberNameOf(node);
  const parent = 'target' in node && name !== undefined ? memberPathOf(node.target) : undefined;
  return parent === undefined || name === undefined ? undefined : [...parent, name];
}

/** Returns the name of the member that a node reads: `x.name`, `x["name"]` or `has(x.name)`. */
function memberNameOf(node: CelNode): string | undefined {
  if (node.kind === 'member' || node.kind === 'has') return node.name;
  if (node.kind !== 'index' || node.index.kind !== 'literal') return undefined;
  return typeof node.index.value === 'string' ? node.index.value : undefined;
}

/** Returns the longest member paths of variables that an expression reads, without those of its loop variables. */
export function readPathsOf(root: CelNode): readonly (readonly string[])[] {
  const paths = new Map<string, readonly string[]>();
  const visit = (node: CelNode, loopVariables: readonly string[]): void => {
    const path = memberPathOf(node);
    if (path !== undefined) {
      if (!loopVariables.includes(path[0] ?? '')) paths.set(JSON.stringify(path), path);
      return;
    }
    if (node.kind !== 'comprehension') {
      for (const child of childrenOf(node)) visit(child, loopVariables);
      return;
    }
    visit(node.list, loopVariables);
    for (const body of [node.predicate, node.transform])
      if (body !== undefined) visit(body, [...loopVariables, node.variable]);
  };
  visit(root, []);
  return [...paths.values()];
}
