/**
 * Mappings: how a composite makes the input of a step, or its own output, of what is known so far. A mapping is an
 * RFC 9535 path, `literal:` and a text, or `optional:` and a path that may find nothing. A path that names one place gives
 * its value, any other gives the list of what it found.
 */
import { LoopError } from '../journal/errors.js';
import type { Json } from '../protocol/json.js';
import type { CompositeStep } from '../protocol/loop.js';
import { compilePath, type Path } from './path.js';

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
  const finds = members.map((member) => compileOne(mapping[member] as string, where, member));
  return members.length === 1 ? single(members[0] as string, finds[0] as Found) : several(members, finds);
}

/** Most mappings have one member, and a large composite has thousands of them: each should hold no more than it needs. */
function single(member: string, find: Found): Maker {
  return (known) => {
    const value = find(known);
    return value === undefined ? {} : { [member]: value };
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
  const optional = text.startsWith(OPTIONAL);
  const path = pathOf(text, `${where}/${member}`);
  if (!path.singular) return (known) => path.find(known) as Json;
  if (optional) return (known) => path.one(known);
  return (known) => {
    const value = path.one(known);
    if (value === undefined) throw unfound(path.text, `${where}/${member}`, known);
    return value;
  };
}

function unfound(path: string, where: string, known: Known): LoopError {
  const names = Object.keys(known).filter((name) => name !== 'steps');
  const last = (known.steps as Json[]).length - 1;
  const steps = last < 0 ? [] : [last === 0 ? '$.steps[0]' : `$.steps[0] to $.steps[${last}]`];
  const readable = [...names.map((name) => `$.${name}`), ...steps].join(', ');
  const message = `${where}: ${path} finds nothing. Readable here: ${readable}.`;
  return new LoopError('MAPPING_FAILED', message, { path, where });
}
