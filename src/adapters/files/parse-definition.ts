/** Parses a document into a definition, and reports problems with their lines and columns. */
import { parse as parsePath } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { ownProperty } from '../../base/own-property.js';
import type { DefinitionProblem } from '../../loops/failed-definition.js';
import type { LoopDef } from '../../protocol/loop.js';
import { DocumentReadError, describeError } from './document-read-error.js';
import { findJsonPositions, parseJson } from './parse-json.js';
import { parseToml } from './parse-toml.js';
import type { FindPosition } from './position-tree.js';
import { findTomlPositions } from './toml-positions.js';

/** Converts parsed documents into definitions. */
export interface DocumentParser {
  /**
   * Returns the definition of a document. Throws DEFINITION_INVALID if it is invalid. `where` names the document in
   * messages, `fileName` is the id of a workflow without a name, and `workflowIds` has the ids of the workflows that
   * the document refers to by their paths.
   */
  parse(value: unknown, where: string, fileName: string, workflowIds?: ReadonlyMap<string, string>): LoopDef;
  /** Returns the paths of the files of workflows that a document refers to. */
  workflowPaths(value: unknown): readonly string[];
  /** Converts a JSON pointer in the definition to one in the document. */
  documentPointer(value: unknown, pointer: string): string;
}

/** One problem in one file. */
export interface BadFile extends DefinitionProblem {
  /** The id of the loop that the file defines or, if the id cannot be read, the name of the file. */
  readonly loopId?: string;
}

/** A valid definition, or the problems of the document. */
export type DefinitionResult = { readonly definition: LoopDef } | { readonly badFiles: readonly BadFile[] };

interface DocumentFormat {
  parse(text: string): unknown;
  /** Reads a valid text once, and returns the search for positions in it. */
  findPositions(text: string): FindPosition;
}

const jsonFormat: DocumentFormat = { parse: parseJson, findPositions: findJsonPositions };
const tomlFormat: DocumentFormat = { parse: parseToml, findPositions: findTomlPositions };

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

/** Returns the format of a document: TOML if the file name ends in `.toml`, and JSON otherwise. */
const formatOf = (file: string): DocumentFormat => (file.endsWith('.toml') ? tomlFormat : jsonFormat);

/** Returns the parsed text of a document; undefined if it cannot be parsed. */
export function parseDocument(file: string, text: string): unknown {
  try {
    return formatOf(file).parse(text);
  } catch (thrown) {
    if (thrown instanceof DocumentReadError) return undefined;
    throw thrown;
  }
}

/**
 * Parses the text of a document and converts it. Returns the problems of an invalid document, with their positions,
 * instead of throwing. `documentPointer` converts a JSON pointer of a problem to one in the document.
 */
export function parseDocumentText<T>(
  file: string,
  text: string,
  convert: (value: unknown) => T,
  documentPointer: DocumentParser['documentPointer'] = (_, pointer) => pointer,
): { readonly document: T } | { readonly badFiles: readonly BadFile[] } {
  const format = formatOf(file);
  let loopId = nameOfFile(file);
  let value: unknown;
  try {
    value = format.parse(text);
    loopId = idIn(value) ?? loopId;
    if (Array.isArray(value))
      throw new DocumentReadError('it is an array, not a definition; name a script file *.script.json');
    return { document: convert(value) };
  } catch (thrown) {
    if (thrown instanceof LoopError) {
      const positionOf = format.findPositions(text);
      const flaws = definitionFlawsOf(thrown).map(({ path, reason }) => ({
        path: documentPointer(value, path),
        reason,
      }));
      return { badFiles: flaws.map(({ path, reason }) => ({ file, reason, path, ...positionOf(path), loopId })) };
    }
    if (!(thrown instanceof DocumentReadError)) throw thrown;
    return { badFiles: [{ file, reason: describeError(thrown), ...thrown.position, loopId }] };
  }
}

/**
 * Parses the text of a definition, as TOML if the file name ends in `.toml` and as JSON otherwise. Returns the problems
 * of an invalid document instead of throwing.
 */
export function parseDefinitionText(
  file: string,
  text: string,
  parser: DocumentParser,
  workflowIds?: ReadonlyMap<string, string>,
): DefinitionResult {
  const convert = (value: unknown): LoopDef => parser.parse(value, file, nameOfFile(file), workflowIds);
  const result = parseDocumentText(file, text, convert, (value, pointer) => parser.documentPointer(value, pointer));
  return 'badFiles' in result ? result : { definition: result.document };
}

/** Returns the name of a file without its extension. */
export function nameOfFile(file: string): string {
  return parsePath(file).name;
}

/** Returns the id of a parsed document; undefined if it has none. */
function idIn(value: unknown): string | undefined {
  const id = ownProperty(value, 'id') ?? ownProperty(ownProperty(value, 'workflow'), 'name');
  return typeof id === 'string' && id !== '' ? id : undefined;
}

/** Returns the paths of the files of workflows that the text of a document refers to; empty if it cannot be read. */
export function workflowPathsIn(file: string, text: string, parser: DocumentParser): readonly string[] {
  if (!text.includes('workflow')) return [];
  return parser.workflowPaths(parseDocument(file, text));
}
