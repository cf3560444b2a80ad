/**
 * Paths as closures. The parser is json-p3's; its tree is turned into our own closures, because those are bounded, take
 * only linear-time patterns, and know the root of the document in a filter within a filter too.
 */
import type { JSONPathQuery } from 'json-p3';
import type { Json } from '../../protocol/json.js';
import { compileFilter } from './filter.js';
import { jsonP3 } from './json-p3.js';
import { childrenOf, itemOf, memberOf, type PathSearch, type SelectNodes } from './search.js';

/** All values that a query finds, starting at a value. */
export type CompiledQuery = (start: Json, search: PathSearch) => readonly Json[];

type Segment = JSONPathQuery['segments'][number];
type Selector = Segment['selectors'][number];

/** What a plain segment selects: the member of a name, the item at an index or, if undefined, everything (a wildcard). */
export type PlainSegment = string | number | undefined;

/** The segments of a path, if each selects a name, an index or everything. */
export function plainSegmentsOf(query: JSONPathQuery): PlainSegment[] | undefined {
  const { NameSelector, IndexSelector, WildcardSelector } = jsonP3().jsonpath.selectors;
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
export function isSingular(segments: readonly PlainSegment[]): segments is readonly (string | number)[] {
  return !segments.includes(undefined);
}

const MAX_LEADING_SEGMENTS = 3;

/**
 * The first three segments of any path, up to one that descends, with undefined in place of a segment that selects several
 * members. Undefined for a path with a filter, which may start at the root again and read anything of the document.
 */
export function leadingSegmentsOf({ segments }: JSONPathQuery): (string | number | undefined)[] | undefined {
  const { FilterSelector, IndexSelector, NameSelector } = jsonP3().jsonpath.selectors;
  if (segments.some(({ selectors }) => selectors.some((selector) => selector instanceof FilterSelector)))
    return undefined;
  const descends = segments.findIndex(isDescendant);
  return segments
    .slice(0, descends === -1 ? MAX_LEADING_SEGMENTS : Math.min(descends, MAX_LEADING_SEGMENTS))
    .map(({ selectors: [selector, ...more] }) => {
      if (more.length > 0) return undefined;
      if (selector instanceof NameSelector) return selector.name;
      return selector instanceof IndexSelector ? selector.index : undefined;
    });
}

/** Follows names and indexes to the value at their end. */
export function followSegments(root: Json, place: readonly (string | number)[]): Json | undefined {
  let value: Json | undefined = root;
  for (let i = 0; i < place.length && value !== undefined; i++) {
    const name = place[i] as string | number;
    value = typeof name === 'string' ? memberOf(value, name) : itemOf(value, name);
  }
  return value;
}

export function compileQuery(query: JSONPathQuery): CompiledQuery {
  const plain = plainSegmentsOf(query);
  return plain === undefined ? applyInOrder(query.segments.map(compileSegment)) : compilePlainSegments(plain);
}

export function compilePlainSegments(segments: readonly PlainSegment[]): CompiledQuery {
  if (!isSingular(segments)) return applyInOrder(segments.map(compilePlainSegment));
  return (start, search) => {
    search.countVisits();
    const value = followSegments(start, segments);
    return value === undefined ? [] : [value];
  };
}

/** Applies each segment to all that the one before it found. */
function applyInOrder(segments: readonly SelectNodes[]): CompiledQuery {
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
  return segment.token.kind === jsonP3().TokenKind.DDOT;
}

function compileSegment(segment: Segment): SelectNodes {
  const selects = segment.selectors.map(compileSelector);
  const child: SelectNodes = (value, found, search) => {
    for (const select of selects) select(value, found, search);
  };
  if (!isDescendant(segment)) return child;
  return (value, found, search) => search.descend(value, (part) => child(part, found, search));
}

function compileSelector(selector: Selector): SelectNodes {
  const { FilterSelector, IndexSelector, NameSelector, SliceSelector, WildcardSelector } = jsonP3().jsonpath.selectors;
  if (selector instanceof NameSelector) return compilePlainSegment(selector.name);
  if (selector instanceof IndexSelector) return compilePlainSegment(selector.index);
  if (selector instanceof WildcardSelector) return compilePlainSegment(undefined);
  if (selector instanceof SliceSelector) return compileSlice(selector.start, selector.stop, selector.step ?? 1);
  if (selector instanceof FilterSelector) {
    const fits = compileFilter(selector.expression, compileQuery);
    return (value, found, search) => {
      for (const part of childrenOf(value)) {
        search.countVisits();
        if (fits(part, search)) search.add(part, found);
      }
    };
  }
  throw new Error('A selector that RFC 9535 does not know was parsed.');
}

function compilePlainSegment(segment: PlainSegment): SelectNodes {
  if (typeof segment === 'string') {
    return (value, found, search) => addIfDefined(memberOf(value, segment), found, search);
  }
  if (typeof segment === 'number') {
    return (value, found, search) => addIfDefined(itemOf(value, segment), found, search);
  }
  return (value, found, search) => {
    for (const part of childrenOf(value)) search.add(part, found);
  };
}

function addIfDefined(value: Json | undefined, found: Json[], search: PathSearch): void {
  search.countVisits();
  if (value !== undefined) search.add(value, found);
}

function compileSlice(start: number | undefined, stop: number | undefined, step: number): SelectNodes {
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
