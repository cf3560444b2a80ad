/**
 * JSONPath (RFC 9535), with which a composite maps values to the inputs of its steps. A path is compiled when its
 * definition is registered, once per distinct text. Evaluation reads no inherited methods, and is bounded in results
 * and in visited values.
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

/** A compiled path. */
export interface JsonPath {
  readonly text: string;
  /**
   * The segments of a path that has only names and indexes, and therefore selects at most one value; otherwise
   * undefined.
   */
  readonly singularSegments: readonly (string | number)[] | undefined;
  /**
   * The first segments: a name, an index, or undefined for one that selects several members. Undefined for a path that
   * may read any part of the document.
   */
  readonly leadingSegments: readonly (string | number | undefined)[] | undefined;
  /** Returns all selected values, in order. Throws MAPPING_FAILED if a limit of the search is exceeded. */
  findAll(root: Json): readonly Json[];
  /** Returns the selected value if there is exactly one; otherwise undefined. Throws like `findAll`. */
  findOne(root: Json): Json | undefined;
}

const MAX_PATH_CHARS = 8_192;

/** Paths of names, indexes and wildcards only. Nearly all paths match, and need no parser. */
const PLAIN_PATH = /^\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:0|-?[1-9][0-9]{0,14})\]|\['[A-Za-z0-9_ .:-]*'\]|\.\*|\[\*\])*$/;
const PLAIN_SEGMENT = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(-?[0-9]+)\]|\['([^']*)'\]|\.\*|\[\*\]/g;

let jsonPathEnvironment: InstanceType<ReturnType<typeof jsonP3>['JSONPathEnvironment']> | undefined;
const pathCache = new BoundedCache<JsonPath>(1_000_000);

/**
 * Compiles a path. Throws DEFINITION_INVALID if it is malformed, too long, or has an unsupported pattern. `location` is
 * its place in the definition, for the message.
 */
export function compileJsonPath(text: string, location: string): JsonPath {
  try {
    return pathCache.getOrCreate(text, () => parsePath(text));
  } catch (error) {
    const reason = parseErrorReason(error);
    throw new LoopError('DEFINITION_INVALID', `The path ${quotePath(text)} at ${location} cannot be used: ${reason}.`, {
      path: location,
      reason,
    });
  }
}

function parsePath(text: string): JsonPath {
  if (typeof text !== 'string') throw new Error('it is not a string');
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

/** A path of names and indexes. A class saves memory: a large composite has one path for every member of every step. */
class SingularPath implements JsonPath {
  readonly text: string;
  readonly singularSegments: readonly (string | number)[];

  constructor(text: string, segments: readonly (string | number)[]) {
    this.text = text;
    this.singularSegments = segments;
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

function pluralPath(text: string, query: CompiledQuery, leadingSegments: JsonPath['leadingSegments']): JsonPath {
  const findAll = (root: Json): readonly Json[] => {
    try {
      return query(root, new PathSearch(root));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new LoopError('MAPPING_FAILED', `The path ${quotePath(text)} reads a value that is nested too deeply.`);
    }
  };
  const findOne = (root: Json) => {
    const values = findAll(root);
    return values.length === 1 ? values[0] : undefined;
  };
  return { text, singularSegments: undefined, leadingSegments, findAll, findOne };
}

/** Returns the parser's message without its final full stop. */
function parseErrorReason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/\.$/, '') || 'it is not a path';
}

function quotePath(text: unknown): string {
  const quoted = JSON.stringify(text) ?? String(text);
  return quoted.length > 100 ? `${quoted.slice(0, 100)}…` : quoted;
}
