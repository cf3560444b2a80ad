/**
 * Mappings: how a composite makes the input of a step, or its own output, of what is known so far. A mapping is an
 * RFC 9535 path, `literal:` and a text, or `optional:` and a path that may find nothing. A path that names one place gives
 * its value, any other gives the list of what it found.
 */
import { LoopError } from '../base/errors.js';
import { followSegments } from '../json/path/query.js';
import { compileJsonPath, type JsonPath } from '../json/path.js';
import type { Json } from '../protocol/json.js';
import type { CompositeStep } from '../protocol/loop.js';

/** What a composite knows while it runs: the input, the results of its steps, and those that have a name. */
export type MappingData = { [name: string]: Json };

/** Makes a value of what is known. */
export type CompiledMapping = (known: MappingData) => Json;

type ValueLookup = (known: MappingData) => Json | undefined;

const LITERAL_PREFIX = 'literal:';
const OPTIONAL_PREFIX = 'optional:';

export function compileMapping(mapping: CompositeStep['inputMapping'], where: string): CompiledMapping {
  if (typeof mapping === 'string') return compileValue(mapping, where, '') as CompiledMapping;
  const members = Object.keys(mapping);
  const [only] = members;
  if (only !== undefined && members.length === 1) return compileSingleMember(only, mapping[only] as string, where);
  return combineMembers(
    members,
    members.map((member) => compileValue(mapping[member] as string, where, member)),
  );
}

/**
 * Most mappings have one member at one place, and a large composite has thousands of them: each is as few objects as
 * can be, because following them from one to the next is what it costs to apply it.
 */
function compileSingleMember(member: string, text: string, where: string): CompiledMapping {
  const place = text.startsWith(LITERAL_PREFIX)
    ? undefined
    : compileMappingPath(text, `${where}/${member}`).singularSegments;
  if (place === undefined) return combineMembers([member], [compileValue(text, where, member)]);
  return (known) => {
    const value = followSegments(known, place);
    if (value !== undefined) return { [member]: value };
    assertOptionalPath(text, `${where}/${member}`, known);
    return {};
  };
}

function combineMembers(members: readonly string[], finds: readonly ValueLookup[]): CompiledMapping {
  return (known) => {
    const made: { [member: string]: Json } = {};
    for (let i = 0; i < members.length; i++) {
      const value = finds[i]?.(known);
      if (value !== undefined) made[members[i] as string] = value;
    }
    return made;
  };
}

/** The first three segments of every path of a mapping, undefined for any; undefined for a path that may look anywhere. */
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

export type PathPrefix = readonly (string | number | undefined)[];

function compileMappingPath(text: string, where: string): JsonPath {
  return compileJsonPath(text.startsWith(OPTIONAL_PREFIX) ? text.slice(OPTIONAL_PREFIX.length) : text, where);
}

function compileValue(text: string, where: string, member: string): ValueLookup {
  if (text.startsWith(LITERAL_PREFIX)) {
    const literal = text.slice(LITERAL_PREFIX.length);
    return () => literal;
  }
  const path = compileMappingPath(text, `${where}/${member}`);
  const { singularSegments } = path;
  if (singularSegments === undefined) return (known) => path.findAll(known) as Json;
  return (known) => {
    const value = followSegments(known, singularSegments);
    if (value === undefined) assertOptionalPath(text, `${where}/${member}`, known);
    return value;
  };
}

/** Throws MAPPING_FAILED for a path that found nothing, unless it may. */
function assertOptionalPath(path: string, where: string, known: MappingData): void {
  if (path.startsWith(OPTIONAL_PREFIX)) return;
  const names = Object.keys(known).filter((name) => name !== 'steps');
  const last = (known.steps as Json[]).length - 1;
  const steps = last < 0 ? [] : [last === 0 ? '$.steps[0]' : `$.steps[0] to $.steps[${last}]`];
  const readable = [...names.map((name) => `$.${name}`), ...steps].join(', ');
  const message = `${where}: ${path} finds nothing. Readable here: ${readable}.`;
  throw new LoopError('MAPPING_FAILED', message, { path, where });
}
