/**
 * Compiles JSONPath queries to closures. json-p3 parses them; Rondo evaluates them itself, so that evaluation is
 * bounded, patterns match in linear time, and `$` in a nested filter is the root of the document.
 */
import type { JSONPathQuery } from 'json-p3';
import type { Json } from '../../protocol/json.js';
import { compileFilter } from './filter.js';
import { jsonP3 } from './json-p3.js';
import { childrenOf, itemOf, memberOf, type PathSearch, type SelectNodes } from './search.js';

/** Returns all values that a query selects, starting at a value. */
export type CompiledQuery = (start: Json, search: PathSearch) => readonly Json[];

type Segment = JSONPathQuery['segments'][number];
type Selector = Segment['selectors'][number];

/** A segment with one simple selector: a name, an index, or undefined for the wildcard. */
export type PlainSegment = string | number | undefined;

/** Returns the segments of a path if all are plain; otherwise undefined. */
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

/** True if there is no wildcard; such a path selects at most one value. */
export function isSingular(segments: readonly PlainSegment[]): segments is readonly (string | number)[] {
  return !segments.includes(undefined);
}

const MAX_LEADING_SEGMENTS = 3;

/**
 * Returns the first segments of a path, at most three and up to the first descendant segment, with undefined for a
 * segment that selects several members. Returns undefined for a path with a filter, because a filter may read the
 * entire document.
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

/** Returns the value at a path of names and indexes, or undefined if there is none. */
export function followSegments(root: Json, segments: readonly (string | number)[]): Json | undefined {
  let value: Json | undefined = root;
  for (let i = 0; i < segments.length && value !== undefined; i++) {
    const segment = segments[i] as string | number;
    value = typeof segment === 'string' ? memberOf(value, segment) : itemOf(value, segment);
  }
  return value;
}

/** Compiles a parsed query. Throws if a filter has an unsupported pattern. */
export function compileQuery(query: JSONPathQuery): CompiledQuery {
  const plain = plainSegmentsOf(query);
  return plain === undefined ? applyInOrder(query.segments.map(compileSegment)) : compilePlainSegments(plain);
}

/** Compiles a query of plain segments. */
export function compilePlainSegments(segments: readonly PlainSegment[]): CompiledQuery {
  if (!isSingular(segments)) return applyInOrder(segments.map(compilePlainSegment));
  return (start, search) => {
    search.countVisits();
    const value = followSegments(start, segments);
    return value === undefined ? [] : [value];
  };
}

/** Applies each segment to the nodes that the segment before it selected. */
function applyInOrder(segments: readonly SelectNodes[]): CompiledQuery {
  return (start, search) => {
    let nodes: readonly Json[] = [start];
    for (const segment of segments) {
      const selected: Json[] = [];
      for (const node of nodes) segment(node, selected, search);
      nodes = selected;
    }
    return nodes;
  };
}

function isDescendant(segment: Segment): boolean {
  return segment.token.kind === jsonP3().TokenKind.DDOT;
}

function compileSegment(segment: Segment): SelectNodes {
  const selects = segment.selectors.map(compileSelector);
  const child: SelectNodes = (value, selected, search) => {
    for (const select of selects) select(value, selected, search);
  };
  if (!isDescendant(segment)) return child;
  return (value, selected, search) => search.descend(value, (part) => child(part, selected, search));
}

function compileSelector(selector: Selector): SelectNodes {
  const { FilterSelector, IndexSelector, NameSelector, SliceSelector, WildcardSelector } = jsonP3().jsonpath.selectors;
  if (selector instanceof NameSelector) return compilePlainSegment(selector.name);
  if (selector instanceof IndexSelector) return compilePlainSegment(selector.index);
  if (selector instanceof WildcardSelector) return compilePlainSegment(undefined);
  if (selector instanceof SliceSelector) return compileSlice(selector.start, selector.stop, selector.step ?? 1);
  if (selector instanceof FilterSelector) {
    const test = compileFilter(selector.expression, compileQuery);
    return (value, selected, search) => {
      for (const part of childrenOf(value)) {
        search.countVisits();
        if (test(part, search)) search.add(part, selected);
      }
    };
  }
  throw new Error('The parser returned a selector that RFC 9535 does not define.');
}

function compilePlainSegment(segment: PlainSegment): SelectNodes {
  if (typeof segment === 'string') {
    return (value, selected, search) => addIfDefined(memberOf(value, segment), selected, search);
  }
  if (typeof segment === 'number') {
    return (value, selected, search) => addIfDefined(itemOf(value, segment), selected, search);
  }
  return (value, selected, search) => {
    for (const part of childrenOf(value)) search.add(part, selected);
  };
}

function addIfDefined(value: Json | undefined, selected: Json[], search: PathSearch): void {
  search.countVisits();
  if (value !== undefined) search.add(value, selected);
}

function compileSlice(start: number | undefined, stop: number | undefined, step: number): SelectNodes {
  return (value, selected, search) => {
    if (!Array.isArray(value) || step === 0) return;
    const { length } = value;
    const clamp = (index: number, low: number, high: number) =>
      Math.min(Math.max(index < 0 ? length + index : index, low), high);
    if (step > 0) {
      const end = clamp(stop ?? length, 0, length);
      for (let i = clamp(start ?? 0, 0, length); i < end; i += step) search.add(value[i], selected);
    } else {
      const end = stop === undefined ? -1 : clamp(stop, -1, length - 1);
      for (let i = clamp(start ?? length - 1, -1, length - 1); i > end; i += step) search.add(value[i], selected);
    }
  };
}
