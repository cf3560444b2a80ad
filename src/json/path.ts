/**
 * JSONPath, RFC 9535: how a composite finds what its steps need. A path is parsed when its definition is registered, and
 * once for each distinct text; applying it looks only at own members and is bounded in what it finds and in time.
 */

import { BoundedCache } from '../base/bounded-cache.js';
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import { jsonP3 } from './path/json-p3.js';
import {
  type CompiledQuery,
  compilePlainSegments,
  compileQuery,
  followSegments,
  isSingular,
  leadingSegmentsOf,
  type PlainSegment,
  plainSegmentsOf,
} from './path/query.js';
import { PathSearch } from './path/search.js';

/** A path ready to be applied. */
export interface JsonPath {
  readonly text: string;
  /** Its names and indexes, if it consists of nothing else and so finds one value at most. */
  readonly singularSegments: readonly (string | number)[] | undefined;
  /** Its first segments, at most all of them: each a name, an index or undefined for any; undefined if it may look anywhere. */
  readonly leadingSegments: readonly (string | number | undefined)[] | undefined;
  /** All values that it finds, in order. */
  findAll(root: Json): readonly Json[];
  /** The value that it finds, if it finds exactly one. */
  findOne(root: Json): Json | undefined;
}

const MAX_PATH_CHARS = 8_192;

/** Names, indexes and wildcards only, as nearly all paths are: the parser need not be loaded for them. */
const PLAIN_PATH = /^\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:0|-?[1-9][0-9]{0,14})\]|\['[A-Za-z0-9_ .:-]*'\]|\.\*|\[\*\])*$/;
const PLAIN_SEGMENT = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(-?[0-9]+)\]|\['([^']*)'\]|\.\*|\[\*\]/g;

let jsonPathEnvironment: InstanceType<ReturnType<typeof jsonP3>['JSONPathEnvironment']> | undefined;
const pathCache = new BoundedCache<JsonPath>(1_000_000);

/** The path of a text that stands at `where`; DEFINITION_INVALID says what is wrong with it. */
export function compileJsonPath(text: string, where: string): JsonPath {
  try {
    return pathCache.getOrCreate(text, () => parsePath(text));
  } catch (error) {
    const reason = parseErrorReason(error);
    throw new LoopError('DEFINITION_INVALID', `The path ${quotePath(text)} at ${where} cannot be used: ${reason}.`, {
      path: where,
      reason,
    });
  }
}

function parsePath(text: string): JsonPath {
  if (typeof text !== 'string') throw new Error('it is not a text');
  if (text.length > MAX_PATH_CHARS) throw new Error(`it is longer than ${MAX_PATH_CHARS} characters`);
  if (PLAIN_PATH.test(text)) return plainPath(text, plainSegmentsIn(text));
  jsonPathEnvironment ??= new (jsonP3().JSONPathEnvironment)();
  const parsed = jsonPathEnvironment.compile(text);
  const segments = plainSegmentsOf(parsed);
  return segments === undefined
    ? pluralPath(text, compileQuery(parsed), leadingSegmentsOf(parsed))
    : plainPath(text, segments);
}

function plainSegmentsIn(text: string): PlainSegment[] {
  return Array.from(text.matchAll(PLAIN_SEGMENT), ([, name, index, quoted]) =>
    index === undefined ? (name ?? quoted) : Number(index),
  );
}

function plainPath(text: string, segments: readonly PlainSegment[]): JsonPath {
  return isSingular(segments)
    ? new SingularPath(text, segments)
    : pluralPath(text, compilePlainSegments(segments), segments);
}

/** A path of names and indexes; a class, because a large composite has one for every member of every step. */
class SingularPath implements JsonPath {
  readonly text: string;
  readonly singularSegments: readonly (string | number)[];

  constructor(text: string, place: readonly (string | number)[]) {
    this.text = text;
    this.singularSegments = place;
  }

  get leadingSegments(): readonly (string | number)[] {
    return this.singularSegments;
  }

  findAll(root: Json): readonly Json[] {
    const value = followSegments(root, this.singularSegments);
    return value === undefined ? [] : [value];
  }

  findOne(root: Json): Json | undefined {
    return followSegments(root, this.singularSegments);
  }
}

function pluralPath(text: string, query: CompiledQuery, beginning: JsonPath['leadingSegments']): JsonPath {
  const find = (root: Json): readonly Json[] => {
    try {
      return query(root, new PathSearch(root));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new LoopError('MAPPING_FAILED', `The path ${quotePath(text)} goes into a value that is nested too deep.`);
    }
  };
  const one = (root: Json) => {
    const found = find(root);
    return found.length === 1 ? found[0] : undefined;
  };
  return { text, singularSegments: undefined, leadingSegments: beginning, findAll: find, findOne: one };
}

/** The parser tells the place after what is wrong; a stop at its end would be a second one. */
function parseErrorReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/\.$/, '') || 'it is not a path';
}

function quotePath(text: unknown): string {
  const written = JSON.stringify(text) ?? String(text);
  return written.length > 100 ? `${written.slice(0, 100)}…` : written;
}
