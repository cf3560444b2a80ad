/** The evaluation of a JSONPath on a document, bounded in selected nodes, visited values and depth. */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';

const MAX_NODES = 100_000;
const MAX_VISITS = 2_000_000;
const MAX_DEPTH = 512;

/** One segment or selector of a path: adds the nodes that it selects in a value to `selected`. */
export type SelectNodes = (value: Json, selected: Json[], search: PathSearch) => void;

/** One evaluation: the root of the document, and the work done so far. */
export class PathSearch {
  readonly root: Json;
  private visits = 0;

  constructor(root: Json) {
    this.root = root;
  }

  /** Counts a visited value. A long string costs more than one visit. Throws MAPPING_FAILED over the limit. */
  countVisits(cost = 1): void {
    this.visits += cost;
    if (this.visits > MAX_VISITS)
      throw new LoopError('MAPPING_FAILED', `A path visits more than ${MAX_VISITS} values.`);
  }

  /** Adds a node to the selected ones. Throws MAPPING_FAILED over the limit. */
  add(value: Json, selected: Json[]): void {
    this.countVisits();
    selected.push(value);
    if (selected.length > MAX_NODES)
      throw new LoopError('MAPPING_FAILED', `A path selects more than ${MAX_NODES} values.`);
  }

  /** Visits a value and all its descendants in pre-order. Throws MAPPING_FAILED if they are too many or too deep. */
  descend(value: Json, visit: (value: Json) => void, depth = 0): void {
    this.countVisits();
    if (depth > MAX_DEPTH)
      throw new LoopError('MAPPING_FAILED', `A path reads a value that is nested deeper than ${MAX_DEPTH}.`);
    visit(value);
    for (const part of childrenOf(value)) this.descend(part, visit, depth + 1);
  }
}

/** Returns the items of an array or the values of an object's members; none for other values. */
export function childrenOf(value: Json): readonly Json[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value;
  return Object.values(value).filter((part) => part !== undefined);
}

/**
 * Returns the member of an object; undefined if it has none of this name. The inherited members of a JSON object, which
 * are functions and `__proto__`, are not returned.
 */
export function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const member = (value as { readonly [name: string]: Json })[name];
  return typeof member !== 'function' && (name !== '__proto__' || Object.hasOwn(value, name)) ? member : undefined;
}

/** Returns the item of an array. A negative index counts from the end. Undefined if there is no such item. */
export function itemOf(value: Json | undefined, index: number): Json | undefined {
  if (!Array.isArray(value)) return undefined;
  return value[index < 0 ? value.length + index : index];
}
