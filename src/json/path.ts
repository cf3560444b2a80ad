/**
 * JSONPath, RFC 9535: how a composite finds what its steps need. A path is parsed when its definition is registered, and
 * once for each distinct text; applying it looks only at own members and is bounded in what it finds and in time.
 */
import { LoopError } from '../base/errors.js';
import { Recent } from '../base/recent.js';
import type { Json } from '../protocol/json.js';
import { parser } from './path/parser.js';
import {
  beginningOf,
  compilePlain,
  compileQuery,
  follow,
  isPlace,
  type PlainSegment,
  plainSegmentsOf,
  type Query,
} from './path/query.js';
import { Search } from './path/search.js';

/** A path ready to be applied. */
export interface Path {
  readonly text: string;
  /** Its names and indexes, if it consists of nothing else and so finds one value at most. */
  readonly place: readonly (string | number)[] | undefined;
  /** Its first segments, at most all of them: each a name, an index or undefined for any; undefined if it may look anywhere. */
  readonly beginning: readonly (string | number | undefined)[] | undefined;
  /** All values that it finds, in order. */
  find(root: Json): readonly Json[];
  /** The value that it finds, if it finds exactly one. */
  one(root: Json): Json | undefined;
}

const LENGTH = 8_192;

/** Names, indexes and wildcards only, as nearly all paths are: the parser need not be loaded for them. */
const PLAIN = /^\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\[(?:0|-?[1-9][0-9]{0,14})\]|\['[A-Za-z0-9_ .:-]*'\]|\.\*|\[\*\])*$/;
const SEGMENT = /\.([A-Za-z_][A-Za-z0-9_]*)|\[(-?[0-9]+)\]|\['([^']*)'\]|\.\*|\[\*\]/g;

let environment: InstanceType<ReturnType<typeof parser>['JSONPathEnvironment']> | undefined;
const paths = new Recent<Path>(1_000_000);

/** The path of a text that stands at `where`; DEFINITION_INVALID says what is wrong with it. */
export function compilePath(text: string, where: string): Path {
  try {
    return paths.of(text, () => parse(text));
  } catch (error) {
    const reason = reasonOf(error);
    throw new LoopError('DEFINITION_INVALID', `The path ${shown(text)} at ${where} cannot be used: ${reason}.`, {
      path: where,
      reason,
    });
  }
}

function parse(text: string): Path {
  if (typeof text !== 'string') throw new Error('it is not a text');
  if (text.length > LENGTH) throw new Error(`it is longer than ${LENGTH} characters`);
  if (PLAIN.test(text)) return plain(text, segmentsOf(text));
  environment ??= new (parser().JSONPathEnvironment)();
  const parsed = environment.compile(text);
  const segments = plainSegmentsOf(parsed);
  return segments === undefined ? plural(text, compileQuery(parsed), beginningOf(parsed)) : plain(text, segments);
}

function segmentsOf(text: string): PlainSegment[] {
  return Array.from(text.matchAll(SEGMENT), ([, name, index, quoted]) =>
    index === undefined ? (name ?? quoted) : Number(index),
  );
}

function plain(text: string, segments: readonly PlainSegment[]): Path {
  return isPlace(segments) ? new Place(text, segments) : plural(text, compilePlain(segments), segments);
}

/** A path of names and indexes; a class, because a large composite has one for every member of every step. */
class Place implements Path {
  readonly text: string;
  readonly place: readonly (string | number)[];

  constructor(text: string, place: readonly (string | number)[]) {
    this.text = text;
    this.place = place;
  }

  get beginning(): readonly (string | number)[] {
    return this.place;
  }

  find(root: Json): readonly Json[] {
    const value = follow(root, this.place);
    return value === undefined ? [] : [value];
  }

  one(root: Json): Json | undefined {
    return follow(root, this.place);
  }
}

function plural(text: string, query: Query, beginning: Path['beginning']): Path {
  const find = (root: Json): readonly Json[] => {
    try {
      return query(root, new Search(root));
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new LoopError('MAPPING_FAILED', `The path ${shown(text)} goes into a value that is nested too deep.`);
    }
  };
  const one = (root: Json) => {
    const found = find(root);
    return found.length === 1 ? found[0] : undefined;
  };
  return { text, place: undefined, beginning, find, one };
}

/** The parser tells the place after what is wrong; a stop at its end would be a second one. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/\.$/, '') || 'it is not a path';
}

function shown(text: unknown): string {
  const written = JSON.stringify(text) ?? String(text);
  return written.length > 100 ? `${written.slice(0, 100)}…` : written;
}
