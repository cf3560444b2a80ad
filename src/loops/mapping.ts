/**
 * Mappings: how a composite makes the input of a step, or its own output, of what is known so far. A mapping is an
 * RFC 9535 path, `literal:` and a text, or `optional:` and a path that may find nothing. A path that names one place gives
 * its value, any other gives the list of what it found.
 */
import { LoopError } from '../journal/errors.js';
import type { Json } from '../protocol/json.js';
import { compilePath } from './path.js';

/** What a composite knows while it runs: the input, the results of its steps, and those that have a name. */
export type Known = { [name: string]: Json };

/** Makes a value of what is known. */
export type Maker = (known: Known) => Json;

type Found = (known: Known) => Json | undefined;

const LITERAL = 'literal:';
const OPTIONAL = 'optional:';

export function compileMapping(mapping: string | { readonly [member: string]: string }, where: string): Maker {
  if (typeof mapping === 'string') return compileOne(mapping, where) as Maker;
  const members = Object.keys(mapping);
  const finds = members.map((member) => compileOne(mapping[member] as string, `${where}/${member}`));
  return (known) => {
    const made: { [member: string]: Json } = {};
    for (let i = 0; i < members.length; i++) {
      const value = finds[i]?.(known);
      if (value !== undefined) made[members[i] as string] = value;
    }
    return made;
  };
}

function compileOne(text: string, where: string): Found {
  if (text.startsWith(LITERAL)) {
    const literal = text.slice(LITERAL.length);
    return () => literal;
  }
  const optional = text.startsWith(OPTIONAL);
  const path = compilePath(optional ? text.slice(OPTIONAL.length) : text, where);
  if (!path.singular) return (known) => path.find(known) as Json;
  if (optional) return (known) => path.one(known);
  return (known) => {
    const value = path.one(known);
    if (value === undefined) throw unfound(text, where, known);
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
