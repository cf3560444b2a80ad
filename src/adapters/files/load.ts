/**
 * Definitions from a directory, as flat as LSR's bundles: documents (`*.json`, `*.toml`) and, where the operator trusts
 * the directory, code. A bad file is told and the others load; the order is that of the names.
 */
import { readdir, realpath } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { trustAdvice } from '../../base/permits.js';
import type { DefinitionOrigin } from '../../loops/origin.js';
import type { LoopDef } from '../../protocol/loop.js';
import { describeError } from './document-read-error.js';
import { importLoops } from './import-loops.js';
import { type BadFile, type ParseDefinition, parseDefinitionText } from './parse-definition.js';
import { describeSystemError, readText } from './read-text.js';

export interface LoadOptions {
  /** Whether code may run from a directory; asked with its absolute path. */
  readonly trusted: (directory: string) => boolean;
  readonly parse: ParseDefinition;
}

/** A definition that was found: a document that was checked, or the export of a module, which was not. */
export type FoundDefinition = { readonly file: string; readonly origin: DefinitionOrigin } & (
  | { readonly definition: LoopDef }
  | { readonly code: unknown; readonly name: string }
);

export interface LoadedDefinitions {
  readonly definitions: readonly FoundDefinition[];
  readonly badFiles: readonly BadFile[];
}

const MAX_DEFINITION_BYTES = 4 * 1024 * 1024;
const MAX_CONCURRENT_READS = 16;
const IGNORED_FILE_NAMES =
  /^(?:\..*|package\.json|package-lock\.json|tsconfig\.json|rondo\.toml|.*\.script\.json|.*\.d\.ts|.*\.test\..*)$/s;

const isDocument = (file: string): boolean => /\.(?:json|toml)$/.test(file);
const isModule = (file: string): boolean => /\.(?:mjs|js|ts)$/.test(file);
const rejectFile = (file: string, reason: string): LoadedDefinitions => ({
  definitions: [],
  badFiles: [{ file, reason }],
});

/** All definitions of a directory; one that cannot be read is told as a bad file. */
export async function loadDefinitions(directory: string, options: LoadOptions): Promise<LoadedDefinitions> {
  const place = resolve(directory);
  const items = await readdir(place, { withFileTypes: true }).catch(describeSystemError);
  if (typeof items === 'string') return rejectFile(place, `the directory cannot be listed: ${items}`);
  const ours = items.filter((item) => !item.isDirectory() && !IGNORED_FILE_NAMES.test(item.name));
  const files = ours.map(({ name }) => join(place, name)).sort();
  const links = new Set(ours.filter((item) => item.isSymbolicLink()).map(({ name }) => join(place, name)));
  const strays = async (file: string): Promise<LoadedDefinitions | undefined> =>
    links.has(file) ? rejectOutsideLink(file, place) : undefined;
  const trusted = options.trusted(place);
  const loads = new Map<string, LoadedDefinitions>();
  const programs = new Set<string>();
  await forEachConcurrently(files.filter(isDocument), async (file) => {
    loads.set(file, (await strays(file)) ?? (await loadDocument(file, trusted, options.parse, programs)));
  });
  for (const file of files) {
    if (!isModule(file) || programs.has(file)) continue;
    loads.set(file, (await strays(file)) ?? (await loadModule(file, trusted)));
  }
  const all = files.flatMap((file) => loads.get(file) ?? []);
  return {
    definitions: all.flatMap(({ definitions }) => definitions),
    badFiles: all.flatMap(({ badFiles }) => badFiles),
  };
}

/** The definitions of one file, which the caller has named: links are followed, and a file without a loop is bad. */
export async function loadDefinitionFile(path: string, options: LoadOptions): Promise<LoadedDefinitions> {
  const file = resolve(path);
  const trusted = options.trusted(dirname(file));
  if (isDocument(file)) return loadDocument(file, trusted, options.parse, new Set());
  if (!isModule(file)) return rejectFile(file, 'a definition is a file that ends in .json, .toml, .mjs, .js or .ts');
  const loaded = await loadModule(file, trusted);
  return loaded.definitions.length + loaded.badFiles.length > 0 ? loaded : rejectFile(file, 'it exports no loop');
}

async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = items.values();
  const worker = async (): Promise<void> => {
    for (const item of waiting) await work(item);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_READS }, worker));
}

/** What is told of a link that leads out of the directory: whoever can write there must not choose what is read. */
async function rejectOutsideLink(file: string, directory: string): Promise<LoadedDefinitions | undefined> {
  try {
    const [target, home] = await Promise.all([realpath(file), realpath(directory)]);
    return target.startsWith(home + sep)
      ? undefined
      : rejectFile(file, 'it is a link out of the directory, which is not followed');
  } catch (thrown) {
    return rejectFile(file, describeSystemError(thrown));
  }
}

async function loadDocument(
  file: string,
  trusted: boolean,
  parse: ParseDefinition,
  programs: Set<string>,
): Promise<LoadedDefinitions> {
  try {
    const text = await readText(file, MAX_DEFINITION_BYTES);
    for (const program of execTargetsIn(text)) programs.add(resolve(dirname(file), program));
    const judged = parseDefinitionText(file, text, parse);
    if ('badFiles' in judged) return { definitions: [], badFiles: judged.badFiles };
    return { definitions: [{ file, origin: originOf(file, trusted), definition: judged.definition }], badFiles: [] };
  } catch (thrown) {
    return rejectFile(file, describeError(thrown));
  }
}

async function loadModule(file: string, trusted: boolean): Promise<LoadedDefinitions> {
  try {
    const text = await readText(file, MAX_DEFINITION_BYTES);
    // A program is started, never imported: importing it would run it.
    if (text.startsWith('#!')) return { definitions: [], badFiles: [] };
    // guard: untrusted-code-not-imported
    if (!trusted)
      return rejectFile(file, `it is code, and its directory is not trusted. ${trustAdvice(dirname(file))}`);
    const origin = originOf(file, trusted);
    return { definitions: (await importLoops(file)).map((item) => ({ file, origin, ...item })), badFiles: [] };
  } catch (thrown) {
    return rejectFile(file, describeError(thrown));
  }
}

function originOf(file: string, trusted: boolean): DefinitionOrigin {
  return { directory: dirname(file), file, trusted };
}

/** The files that a document's tools start as programs. A broken document counts too: its program must not run either. */
function execTargetsIn(text: string): string[] {
  return [...text.matchAll(/exec:([^"':\r\n]+)["']/g)].map(([, program = '']) => program);
}
