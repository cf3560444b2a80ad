/**
 * Mappings: how a composite makes the input of a step, or its own output, of what is known so far. A mapping is an
 * RFC 9535 path, `literal:` and a text, or `optional:` and a path that may find nothing. A path that names one place gives
 * its value, any other gives the list of what it found.
 */
import { LoopError } from '../base/errors.js';
import { follow } from '../json/path/query.js';
import { compilePath, type Path } from '../json/path.js';
import type { Json } from '../protocol/json.js';
import type { CompositeStep } from '../protocol/loop.js';

/** What a composite knows while it runs: the input, the results of its steps, and those that have a name. */
export type Known = { [name: string]: Json };

/** Makes a value of what is known. */
export type Maker = (known: Known) => Json;

type Found = (known: Known) => Json | undefined;

const LITERAL = 'literal:';
const OPTIONAL = 'optional:';

export function compileMapping(mapping: CompositeStep['inputMapping'], where: string): Maker {
  if (typeof mapping === 'string') return compileOne(mapping, where, '') as Maker;
  const members = Object.keys(mapping);
  const [only] = members;
  if (only !== undefined && members.length === 1) return single(only, mapping[only] as string, where);
  return several(
    members,
    members.map((member) => compileOne(mapping[member] as string, where, member)),
  );
}

/**
 * Most mappings have one member at one place, and a large composite has thousands of them: each is as few objects as
 * can be, because following them from one to the next is what it costs to apply it.
 */
function single(member: string, text: string, where: string): Maker {
  const place = text.startsWith(LITERAL) ? undefined : pathOf(text, `${where}/${member}`).place;
  if (place === undefined) return several([member], [compileOne(text, where, member)]);
  return (known) => {
    const value = follow(known, place);
    if (value !== undefined) return { [member]: value };
    assertOptional(text, `${where}/${member}`, known);
    return {};
  };
}

function several(members: readonly string[], finds: readonly Found[]): Maker {
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
export function readsOf(mapping: CompositeStep['inputMapping'], where: string): readonly (Read | undefined)[] {
  const texts = typeof mapping === 'string' ? [mapping] : Object.values(mapping);
  return texts
    .filter((text) => !text.startsWith(LITERAL))
    .map((text) => {
      const { beginning } = pathOf(text, where);
      return beginning === undefined || beginning[0] === undefined ? undefined : beginning;
    });
}

export type Read = readonly (string | number | undefined)[];

function pathOf(text: string, where: string): Path {
  return compilePath(text.startsWith(OPTIONAL) ? text.slice(OPTIONAL.length) : text, where);
}

function compileOne(text: string, where: string, member: string): Found {
  if (text.startsWith(LITERAL)) {
    const literal = text.slice(LITERAL.length);
    return () => literal;
  }
  const path = pathOf(text, `${where}/${member}`);
  const { place } = path;
  if (place === undefined) return (known) => path.find(known) as Json;
  return (known) => {
    const value = follow(known, place);
    if (value === undefined) assertOptional(text, `${where}/${member}`, known);
    return value;
  };
}

/** Throws MAPPING_FAILED for a path that found nothing, unless it may. */
function assertOptional(path: string, where: string, known: Known): void {
  if (path.startsWith(OPTIONAL)) return;
  const names = Object.keys(known).filter((name) => name !== 'steps');
  const last = (known.steps as Json[]).length - 1;
  const steps = last < 0 ? [] : [last === 0 ? '$.steps[0]' : `$.steps[0] to $.steps[${last}]`];
  const readable = [...names.map((name) => `$.${name}`), ...steps].join(', ');
  const message = `${where}: ${path} finds nothing. Readable here: ${readable}.`;
  throw new LoopError('MAPPING_FAILED', message, { path, where });
}
