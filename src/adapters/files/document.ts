/** Definitions that are documents: from text to a definition, or to what is wrong with it and in which line. */
import { LoopError } from '../../base/errors.js';
import type { LoopDef } from '../../protocol/loop.js';
import { placeInJson, readJson } from './json.js';
import { placeInToml, readToml } from './toml.js';
import { type Place, reasonOf, Unreadable } from './unreadable.js';

/** Turns a document into a definition or throws DEFINITION_INVALID; `where` is for people. */
export type ParseDefinition = (value: unknown, where: string) => LoopDef;

/** One thing that is wrong with one file. */
export interface BadFile {
  readonly file: string;
  readonly reason: string;
  /** A JSON pointer into the document. */
  readonly path?: string;
  readonly line?: number;
  readonly column?: number;
}

export type Judged = { readonly definition: LoopDef } | { readonly bad: readonly BadFile[] };

interface Format {
  read(text: string): unknown;
  place(text: string, pointer: string): Place | undefined;
}

const json: Format = { read: readJson, place: placeInJson };
const toml: Format = { read: readToml, place: placeInToml };

/** How many characters may be read again to find the lines of flaws. */
const SEARCHED = 500_000;

interface Flaw {
  readonly path: string;
  readonly reason: string;
}

function isFlaw(value: unknown): value is Flaw {
  const { path, reason } = (value ?? {}) as { readonly path?: unknown; readonly reason?: unknown };
  return typeof path === 'string' && typeof reason === 'string';
}

function flawsOf(thrown: LoopError): Flaw[] {
  const data = thrown.data as { readonly flaws?: unknown } | undefined;
  const flaws = Array.isArray(data?.flaws) ? data.flaws.filter(isFlaw) : [];
  return flaws.length > 0 ? flaws : [{ path: '', reason: thrown.message }];
}

/** A text as a definition, or what is wrong with it; the end of the file's name tells the format. */
export function judgeText(file: string, text: string, parse: ParseDefinition): Judged {
  const format = file.endsWith('.toml') ? toml : json;
  try {
    const value = format.read(text);
    if (Array.isArray(value)) throw new Unreadable('it is a list, not a definition; call a script *.script.json');
    return { definition: parse(value, file) };
  } catch (thrown) {
    if (thrown instanceof LoopError) return { bad: located(file, text, flawsOf(thrown), format) };
    if (!(thrown instanceof Unreadable)) throw thrown;
    return { bad: [{ file, reason: reasonOf(thrown), ...thrown.place }] };
  }
}

function located(file: string, text: string, flaws: readonly Flaw[], format: Format): BadFile[] {
  const most = Math.max(1, Math.floor(SEARCHED / (text.length + 1)));
  return flaws.map(({ path, reason }, index) => {
    const place = index < most ? format.place(text, path) : undefined;
    return { file, reason, path, ...place };
  });
}
