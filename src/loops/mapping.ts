/**
 * Mappings: build the input of a step, or the output of a composite, from earlier values. A mapping is a string, or an
 * object with one string for each member. A string is an RFC 9535 path, `literal:` followed by text, or `optional:`
 * followed by a path that may match nothing. A singular path (one that selects at most one value) yields its value; any
 * other path yields the list of its matches.
 */
import { LoopError } from '../base/errors.js';
import { followSegments } from '../json/path/query.js';
import { compileJsonPath, type JsonPath } from '../json/path.js';
import type { Json } from '../protocol/json.js';
import type { CompositeStep } from '../protocol/loop.js';

/** The values that a mapping can read: `input`, `steps` (the results by index) and the named results. */
export type MappingData = { [name: string]: Json };

/**
 * Builds a value from the data of a composite. A member whose `optional:` path has no match is left out. Throws
 * MAPPING_FAILED if a singular path without `optional:` has no match, and if a value is nested too deeply.
 */
export type CompiledMapping = (data: MappingData) => Json;

type ValueLookup = (data: MappingData) => Json | undefined;

const LITERAL_PREFIX = 'literal:';
const OPTIONAL_PREFIX = 'optional:';

/** Compiles a mapping. `where` is its location in messages. Throws DEFINITION_INVALID if a path is malformed. */
export function compileMapping(mapping: CompositeStep['inputMapping'], where: string): CompiledMapping {
  if (typeof mapping === 'string') return compileValue(mapping, where) as CompiledMapping;
  const members = Object.keys(mapping);
  const [only] = members;
  if (only !== undefined && members.length === 1) return compileSingleMember(only, mapping[only] as string, where);
  return combineMembers(
    members,
    members.map((member) => compileValue(mapping[member] as string, `${where}/${member}`)),
  );
}

/**
 * Fast path for a mapping with one member and a singular path, the most common case. A large composite has thousands of
 * them, and applying them costs mostly memory accesses from object to object, so each uses as few objects as possible.
 */
function compileSingleMember(member: string, text: string, where: string): CompiledMapping {
  const segments = text.startsWith(LITERAL_PREFIX)
    ? undefined
    : compileMappingPath(text, `${where}/${member}`).singularSegments;
  if (segments === undefined) return combineMembers([member], [compileValue(text, `${where}/${member}`)]);
  return (data) => {
    const value = followSegments(data, segments);
    if (value !== undefined) return { [member]: value };
    assertOptionalPath(text, `${where}/${member}`, data);
    return {};
  };
}

function combineMembers(members: readonly string[], lookups: readonly ValueLookup[]): CompiledMapping {
  return (data) => {
    const combined: { [member: string]: Json } = {};
    for (let i = 0; i < members.length; i++) {
      const value = lookups[i]?.(data);
      if (value !== undefined) combined[members[i] as string] = value;
    }
    return combined;
  };
}

/**
 * Returns the leading segments of every path of a mapping, which show which earlier values the mapping reads. The item
 * is undefined for a path that may read anything. Literals have no item.
 */
export function pathPrefixesOf(
  mapping: CompositeStep['inputMapping'],
  where: string,
): readonly (PathPrefix | undefined)[] {
  const texts = typeof mapping === 'string' ? [mapping] : Object.values(mapping);
  return texts
    .filter((text) => !text.startsWith(LITERAL_PREFIX))
    .map((text) => {
      const { leadingSegments } = compileMappingPath(text, where);
      return leadingSegments === undefined || leadingSegments[0] === undefined ? undefined : leadingSegments;
    });
}

/** The leading segments of a path. A segment is undefined if it may match any member. */
export type PathPrefix = readonly (string | number | undefined)[];

function compileMappingPath(text: string, where: string): JsonPath {
  return compileJsonPath(text.startsWith(OPTIONAL_PREFIX) ? text.slice(OPTIONAL_PREFIX.length) : text, where);
}

function compileValue(text: string, where: string): ValueLookup {
  if (text.startsWith(LITERAL_PREFIX)) {
    const literal = text.slice(LITERAL_PREFIX.length);
    return () => literal;
  }
  const path = compileMappingPath(text, where);
  const { singularSegments } = path;
  if (singularSegments === undefined) return (data) => path.findAll(data) as Json;
  return (data) => {
    const value = followSegments(data, singularSegments);
    if (value === undefined) assertOptionalPath(text, where, data);
    return value;
  };
}

/** Throws MAPPING_FAILED for a path that matched nothing, unless it starts with `optional:`. */
function assertOptionalPath(path: string, where: string, data: MappingData): void {
  if (path.startsWith(OPTIONAL_PREFIX)) return;
  const names = Object.keys(data).filter((name) => name !== 'steps');
  // A plan has no list of results.
  const last = Array.isArray(data.steps) ? data.steps.length - 1 : -1;
  const steps = last < 0 ? [] : [last === 0 ? '$.steps[0]' : `$.steps[0] to $.steps[${last}]`];
  const readable = [...names.map((name) => `$.${name}`), ...steps].join(', ');
  const message = `${where}: ${path} matches nothing. Readable here: ${readable}.`;
  throw new LoopError('MAPPING_FAILED', message, { path, where });
}
