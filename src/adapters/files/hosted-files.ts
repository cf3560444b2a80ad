/** Reads hosted loop files (`*.toml`, `*.json`): recognises them among definitions, and reports problems with lines. */
import { resolve } from 'node:path';
import { isCalendarDay } from '../../base/calendar-day.js';
import { LoopError } from '../../base/errors.js';
import { ownProperty } from '../../base/own-property.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import { describeError } from './document-read-error.js';
import { type BadFile, nameOfFile, parseDocument, parseDocumentText } from './parse-definition.js';
import { readText } from './read-text.js';

/** Checks a parsed document. Throws a LoopError with the problems. `file` is its absolute path. */
export type HostedLoopParser = (value: unknown, file: string) => HostedLoopDocument;

/** A hosted loop file: its document, or its problems. */
export interface HostedFile {
  readonly file: string;
  /** Undefined if the file has problems. */
  readonly document: HostedLoopDocument | undefined;
  readonly badFiles: readonly BadFile[];
}

const MAX_HOSTED_LOOP_BYTES = 256 * 1024;
const MAX_DEPTH = 250;

/** The members that make a document a definition or a workflow, whatever else it has. A hosted loop has none of them. */
const DEFINITION_MEMBERS = ['kind', 'workflow', 'steps', 'states'];

/**
 * Returns true if the text of a definition file is that of a hosted loop: it has `loop`, and `stop` or `grant`. A file
 * without `stop` is recognised too, so that its problem is reported, and not that it is no definition.
 */
export function isHostedLoopText(file: string, text: string): boolean {
  if (!text.includes('loop') || !/stop|grant/.test(text)) return false;
  const document = parseDocument(file, text);
  const has = (member: string): boolean => ownProperty(document, member) !== undefined;
  return has('loop') && (has('stop') || has('grant')) && !DEFINITION_MEMBERS.some(has);
}

/** Returns the hosted loop of a text of bounded size, or its problems with their lines. */
export function parseHostedLoopText(file: string, text: string, parse: HostedLoopParser): HostedFile {
  if (text.length > MAX_HOSTED_LOOP_BYTES) {
    const reason = `it has ${text.length} characters; the limit is ${MAX_HOSTED_LOOP_BYTES}`;
    return { file, document: undefined, badFiles: [{ file, reason, loopId: nameOfFile(file) }] };
  }
  const result = parseDocumentText(file, text, (value) => parse(datesToText(withoutSchema(value), text), file));
  return 'badFiles' in result
    ? { file, document: undefined, badFiles: result.badFiles }
    : { file, document: result.document, badFiles: [] };
}

/** Reads one hosted loop file, of bounded size. Links are followed. */
export async function loadHostedFile(path: string, parse: HostedLoopParser): Promise<HostedFile> {
  const file = resolve(path);
  try {
    const text = await readText(file, MAX_HOSTED_LOOP_BYTES);
    const loopId = definedLoopIdIn(file, text);
    if (loopId === undefined) return parseHostedLoopText(file, text, parse);
    const reason = `it defines a loop, not a hosted loop; a hosted loop is another file that names it: loop = "${loopId}"`;
    return { file, document: undefined, badFiles: [{ file, reason, loopId }] };
  } catch (thrown) {
    const badFiles = [{ file, reason: describeError(thrown), loopId: nameOfFile(file) }];
    return { file, document: undefined, badFiles };
  }
}

/** Returns the id of the loop that the text of a definition or of a workflow defines; undefined for any other text. */
function definedLoopIdIn(file: string, text: string): string | undefined {
  const document = parseDocument(file, text);
  const has = (member: string): boolean => ownProperty(document, member) !== undefined;
  if (has('loop') || !DEFINITION_MEMBERS.some(has)) return undefined;
  const id = ownProperty(document, 'id') ?? ownProperty(ownProperty(document, 'workflow'), 'name');
  return typeof id === 'string' ? id : nameOfFile(file);
}

/** Returns a document without the reference to its JSON Schema, which editors use. */
function withoutSchema(value: unknown): unknown {
  if (typeof ownProperty(value, '$schema') !== 'string') return value;
  const { $schema: _, ...document } = value as { readonly [member: string]: unknown };
  return document;
}

/** Returns a text that looks like a day but is none, such as `2026-02-30`; undefined if there is none. */
function findMissingDay(text: string): string | undefined {
  return text.match(/(?<!\d)\d{4}-\d\d-\d\d(?!\d)/g)?.find((day) => !isCalendarDay(day));
}

/**
 * Returns a value with its dates, which TOML has, as ISO texts. A date without an offset stays without one. The parser
 * of TOML turns 30 February into 2 March, so a date is refused in a text with a day that does not exist.
 */
function datesToText(value: unknown, text: string, path = '', depth = 0): unknown {
  if (value instanceof Date) {
    const day = findMissingDay(text);
    // guard: toml-date-on-an-existing-day
    if (day !== undefined) throw missingDayError(path, day);
    return value.toISOString();
  }
  // Dotted keys nest without a limit. The check of the document refuses what is deeper.
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return value.map((item, index) => datesToText(item, text, `${path}/${index}`, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, datesToText(member, text, `${path}/${name}`, depth + 1)]),
  );
}

function missingDayError(path: string, day: string): LoopError {
  const reason = `is a date in a file with the day ${day}, which does not exist; correct it, or write dates in quotes`;
  return new LoopError('DEFINITION_INVALID', reason, { path, reason, flaws: [{ path, reason }] });
}
