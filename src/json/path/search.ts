/** One application of a path to a document, bounded in what it finds, how far it looks and how deep. */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';

const MAX_NODES = 100_000;
const MAX_VISITS = 2_000_000;
const MAX_DEPTH = 512;

/** Part of a path: adds what it finds in a value. */
export type SelectNodes = (value: Json, found: Json[], search: PathSearch) => void;

export class PathSearch {
  readonly root: Json;
  #visits = 0;

  constructor(root: Json) {
    this.root = root;
  }

  /** Counts a value that is looked at, in the document or in a filter; a long text counts for more. */
  countVisits(cost = 1): void {
    this.#visits += cost;
    if (this.#visits > MAX_VISITS)
      throw new LoopError('MAPPING_FAILED', `A path looks at more than ${MAX_VISITS} values.`);
  }

  add(value: Json, found: Json[]): void {
    this.countVisits();
    found.push(value);
    if (found.length > MAX_NODES) throw new LoopError('MAPPING_FAILED', `A path finds more than ${MAX_NODES} values.`);
  }

  /** The value and everything in it, each before its parts. */
  descend(value: Json, visit: (value: Json) => void, depth = 0): void {
    this.countVisits();
    if (depth > MAX_DEPTH) throw new LoopError('MAPPING_FAILED', `A path goes into a value deeper than ${MAX_DEPTH}.`);
    visit(value);
    for (const part of childrenOf(value)) this.descend(part, visit, depth + 1);
  }
}

/** The items of an array or the members of an object. */
export function childrenOf(value: Json): readonly Json[] {
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value;
  return Object.values(value).filter((part) => part !== undefined);
}

/** The own member of a name, if the value is an object that has one. What every object inherits has to be told apart. */
export function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const member = (value as { readonly [name: string]: Json })[name];
  return typeof member !== 'function' && (name !== '__proto__' || Object.hasOwn(value, name)) ? member : undefined;
}

/** The item at an index, counted from the end if negative, if the value is an array that has one. */
export function itemOf(value: Json | undefined, index: number): Json | undefined {
  if (!Array.isArray(value)) return undefined;
  return value[index < 0 ? value.length + index : index];
}
