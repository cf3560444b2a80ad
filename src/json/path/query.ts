/**
 * Paths as closures. The parser is json-p3's; its tree is turned into our own closures, because those are bounded, take
 * only linear-time patterns, and know the root of the document in a filter within a filter too.
 */
import type { JSONPathQuery } from 'json-p3';
import type { Json } from '../../protocol/json.js';
import { compileFilter } from './filter.js';
import { parser } from './parser.js';
import { itemOf, memberOf, partsOf, type Search, type Select } from './search.js';

/** All values that a query finds, starting at a value. */
export type Query = (start: Json, search: Search) => readonly Json[];

type Segment = JSONPathQuery['segments'][number];
type Selector = Segment['selectors'][number];

/** What a plain segment selects: the member of a name, the item at an index or, if undefined, everything (a wildcard). */
export type PlainSegment = string | number | undefined;

/** The segments of a path, if each selects a name, an index or everything. */
export function plainSegmentsOf(query: JSONPathQuery): PlainSegment[] | undefined {
  const { NameSelector, IndexSelector, WildcardSelector } = parser().jsonpath.selectors;
  const plain: PlainSegment[] = [];
  for (const segment of query.segments) {
    const [selector, ...more] = segment.selectors;
    if (isDescendant(segment) || more.length > 0) return undefined;
    if (selector instanceof NameSelector) plain.push(selector.name);
    else if (selector instanceof IndexSelector) plain.push(selector.index);
    else if (selector instanceof WildcardSelector) plain.push(undefined);
    else return undefined;
  }
  return plain;
}

/** Whether a path without wildcards is given, which leads to one value at most. */
export function isPlace(segments: readonly PlainSegment[]): segments is readonly (string | number)[] {
  return !segments.includes(undefined);
}

const BEGINNING = 3;

/**
 * The first three segments of any path, up to one that descends, with undefined in place of a segment that selects several
 * members. Undefined for a path with a filter, which may start at the root again and read anything of the document.
 */
export function beginningOf({ segments }: JSONPathQuery): (string | number | undefined)[] | undefined {
  const { FilterSelector, IndexSelector, NameSelector } = parser().jsonpath.selectors;
  if (segments.some(({ selectors }) => selectors.some((selector) => selector instanceof FilterSelector)))
    return undefined;
  const descends = segments.findIndex(isDescendant);
  return segments
    .slice(0, descends === -1 ? BEGINNING : Math.min(descends, BEGINNING))
    .map(({ selectors: [selector, ...more] }) => {
      if (more.length > 0) return undefined;
      if (selector instanceof NameSelector) return selector.name;
      return selector instanceof IndexSelector ? selector.index : undefined;
    });
}

/** Follows names and indexes to the value at their end. */
export function follow(root: Json, place: readonly (string | number)[]): Json | undefined {
  let value: Json | undefined = root;
  for (let i = 0; i < place.length && value !== undefined; i++) {
    const name = place[i] as string | number;
    value = typeof name === 'string' ? memberOf(value, name) : itemOf(value, name);
  }
  return value;
}

export function compileQuery(query: JSONPathQuery): Query {
  const plain = plainSegmentsOf(query);
  return plain === undefined ? inTurn(query.segments.map(compileSegment)) : compilePlain(plain);
}

export function compilePlain(segments: readonly PlainSegment[]): Query {
  if (!isPlace(segments)) return inTurn(segments.map(selectPlain));
  return (start, search) => {
    search.spend();
    const value = follow(start, segments);
    return value === undefined ? [] : [value];
  };
}

/** Applies each segment to all that the one before it found. */
function inTurn(segments: readonly Select[]): Query {
  return (start, search) => {
    let nodes: readonly Json[] = [start];
    for (const segment of segments) {
      const found: Json[] = [];
      for (const node of nodes) segment(node, found, search);
      nodes = found;
    }
    return nodes;
  };
}

function isDescendant(segment: Segment): boolean {
  return segment.token.kind === parser().TokenKind.DDOT;
}

function compileSegment(segment: Segment): Select {
  const selects = segment.selectors.map(compileSelector);
  const child: Select = (value, found, search) => {
    for (const select of selects) select(value, found, search);
  };
  if (!isDescendant(segment)) return child;
  return (value, found, search) => search.descend(value, (part) => child(part, found, search));
}

function compileSelector(selector: Selector): Select {
  const { FilterSelector, IndexSelector, NameSelector, SliceSelector, WildcardSelector } = parser().jsonpath.selectors;
  if (selector instanceof NameSelector) return selectPlain(selector.name);
  if (selector instanceof IndexSelector) return selectPlain(selector.index);
  if (selector instanceof WildcardSelector) return selectPlain(undefined);
  if (selector instanceof SliceSelector) return slice(selector.start, selector.stop, selector.step ?? 1);
  if (selector instanceof FilterSelector) {
    const fits = compileFilter(selector.expression, compileQuery);
    return (value, found, search) => {
      for (const part of partsOf(value)) {
        search.spend();
        if (fits(part, search)) search.add(part, found);
      }
    };
  }
  throw new Error('A selector that RFC 9535 does not know was parsed.');
}

function selectPlain(segment: PlainSegment): Select {
  if (typeof segment === 'string') {
    return (value, found, search) => addIfAny(memberOf(value, segment), found, search);
  }
  if (typeof segment === 'number') {
    return (value, found, search) => addIfAny(itemOf(value, segment), found, search);
  }
  return (value, found, search) => {
    for (const part of partsOf(value)) search.add(part, found);
  };
}

function addIfAny(value: Json | undefined, found: Json[], search: Search): void {
  search.spend();
  if (value !== undefined) search.add(value, found);
}

function slice(start: number | undefined, stop: number | undefined, step: number): Select {
  return (value, found, search) => {
    if (!Array.isArray(value) || step === 0) return;
    const { length } = value;
    const clamp = (index: number, low: number, high: number) =>
      Math.min(Math.max(index < 0 ? length + index : index, low), high);
    if (step > 0) {
      const end = clamp(stop ?? length, 0, length);
      for (let i = clamp(start ?? 0, 0, length); i < end; i += step) search.add(value[i], found);
    } else {
      const end = stop === undefined ? -1 : clamp(stop, -1, length - 1);
      for (let i = clamp(start ?? length - 1, -1, length - 1); i > end; i += step) search.add(value[i], found);
    }
  };
}
