/** Definitions that are documents: from text to a definition, or to what is wrong with it and in which line. */
import { LoopError } from '../../base/errors.js';
import type { LoopDef } from '../../protocol/loop.js';
import { DocumentReadError, describeError, type TextPosition } from './document-read-error.js';
import { parseJson, positionInJson } from './parse-json.js';
import { parseToml, positionInToml } from './parse-toml.js';

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

export type DefinitionResult = { readonly definition: LoopDef } | { readonly badFiles: readonly BadFile[] };

interface DocumentFormat {
  parse(text: string): unknown;
  positionOf(text: string, pointer: string): TextPosition | undefined;
}

const jsonFormat: DocumentFormat = { parse: parseJson, positionOf: positionInJson };
const tomlFormat: DocumentFormat = { parse: parseToml, positionOf: positionInToml };

/** How many characters may be read again to find the lines of flaws. */
const MAX_POSITION_SEARCH_CHARS = 500_000;

interface DefinitionFlaw {
  readonly path: string;
  readonly reason: string;
}

function isDefinitionFlaw(value: unknown): value is DefinitionFlaw {
  const { path, reason } = (value ?? {}) as { readonly path?: unknown; readonly reason?: unknown };
  return typeof path === 'string' && typeof reason === 'string';
}

function definitionFlawsOf(thrown: LoopError): DefinitionFlaw[] {
  const data = thrown.data as { readonly flaws?: unknown } | undefined;
  const flaws = Array.isArray(data?.flaws) ? data.flaws.filter(isDefinitionFlaw) : [];
  return flaws.length > 0 ? flaws : [{ path: '', reason: thrown.message }];
}

/** A text as a definition, or what is wrong with it; the end of the file's name tells the format. */
export function parseDefinitionText(file: string, text: string, parse: ParseDefinition): DefinitionResult {
  const format = file.endsWith('.toml') ? tomlFormat : jsonFormat;
  try {
    const value = format.parse(text);
    if (Array.isArray(value))
      throw new DocumentReadError('it is a list, not a definition; call a script *.script.json');
    return { definition: parse(value, file) };
  } catch (thrown) {
    if (thrown instanceof LoopError) return { badFiles: withPositions(file, text, definitionFlawsOf(thrown), format) };
    if (!(thrown instanceof DocumentReadError)) throw thrown;
    return { badFiles: [{ file, reason: describeError(thrown), ...thrown.place }] };
  }
}

function withPositions(
  file: string,
  text: string,
  flaws: readonly DefinitionFlaw[],
  format: DocumentFormat,
): BadFile[] {
  const most = Math.max(1, Math.floor(MAX_POSITION_SEARCH_CHARS / (text.length + 1)));
  return flaws.map(({ path, reason }, index) => {
    const place = index < most ? format.positionOf(text, path) : undefined;
    return { file, reason, path, ...place };
  });
}
