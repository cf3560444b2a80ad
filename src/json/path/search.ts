/** One application of a path to a document, bounded in what it finds, how far it looks and how deep. */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';

const NODES = 100_000;
const LOOKS = 2_000_000;
const DEPTH = 512;

/** Part of a path: adds what it finds in a value. */
export type Select = (value: Json, found: Json[], search: Search) => void;

export class Search {
  readonly root: Json;
  #spent = 0;

  constructor(root: Json) {
    this.root = root;
  }

  /** Counts a value that is looked at, in the document or in a filter; a long text counts for more. */
  spend(cost = 1): void {
    this.#spent += cost;
    if (this.#spent > LOOKS) throw new LoopError('MAPPING_FAILED', `A path looks at more than ${LOOKS} values.`);
  }

  add(value: Json, found: Json[]): void {
    this.spend();
    found.push(value);
    if (found.length > NODES) throw new LoopError('MAPPING_FAILED', `A path finds more than ${NODES} values.`);
  }

  /** The value and everything in it, each before its parts. */
  descend(value: Json, visit: (value: Json) => void, depth = 0): void {
    this.spend();
    if (depth > DEPTH) throw new LoopError('MAPPING_FAILED', `A path goes into a value deeper than ${DEPTH}.`);
    visit(value);
    for (const part of partsOf(value)) this.descend(part, visit, depth + 1);
  }
}

/** The items of an array or the members of an object. */
export function partsOf(value: Json): readonly Json[] {
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
