/**
 * Loads definitions from a directory: documents (`*.json`, `*.toml`) and, if the operator trusts the directory,
 * modules. Like the bundles of LSR, the reference runtime of the Loop Stack Execution Model, the directory is flat:
 * subdirectories are ignored. An invalid file is reported and does not affect the others. Results are sorted by file
 * name.
 */
import { readdir, realpath } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { trustAdvice } from '../../base/permits.js';
import type { DefinitionOrigin } from '../../loops/origin.js';
import type { LoopDef } from '../../protocol/loop.js';
import { isDefinitionModule, NO_DEFINITION_REASON } from './definition-module.js';
import { describeError } from './document-read-error.js';
import { type HostedFile, type HostedLoopParser, isHostedLoopText, parseHostedLoopText } from './hosted-files.js';
import { importLoops } from './import-loops.js';
import { isInsideWithLinksResolved } from './inside.js';
import {
  type BadFile,
  type DocumentParser,
  nameOfFile,
  parseDefinitionText,
  workflowPathsIn,
} from './parse-definition.js';
import { describeSystemError, readText } from './read-text.js';

/** Options of {@link loadDefinitions} and {@link loadDefinitionFile}. */
export interface LoadOptions {
  /** Returns true if code of this directory, an absolute path, may run. */
  readonly trusted: (directory: string) => boolean;
  /** Converts parsed documents into definitions. */
  readonly parser: DocumentParser;
  /**
   * Loads the check of hosted loops, if there are any.
   * @default hosted loops are not recognised
   */
  readonly loadHostedParser?: () => Promise<HostedLoopParser>;
}

/** A loaded definition: a validated document, or the export of a module, which is not validated yet. */
export type FoundDefinition = { readonly file: string; readonly origin: DefinitionOrigin } & (
  | { readonly definition: LoopDef }
  | { readonly code: unknown; readonly name: string }
);

/** The definitions of a directory or file, and the problems of files that could not be loaded: one or more per file. */
export interface LoadedDefinitions {
  readonly definitions: readonly FoundDefinition[];
  readonly badFiles: readonly BadFile[];
  /** The modules that were not imported, because they define no loops, with the reason. */
  readonly skipped: readonly BadFile[];
  /** The hosted loops among the documents. They are no definitions, and their problems are not among `badFiles`. */
  readonly hosted: readonly HostedFile[];
}

const MAX_DEFINITION_BYTES = 4 * 1024 * 1024;
const MAX_CONCURRENT_READS = 16;
const IGNORED_FILE_NAMES =
  /^(?:\..*|package\.json|package-lock\.json|tsconfig\.json|rondo\.toml|.*\.script\.json|.*\.d\.ts|.*\.test\..*)$/s;

const isDocument = (file: string): boolean => /\.(?:json|toml)$/.test(file);
const isModule = (file: string): boolean => /\.(?:mjs|js|ts)$/.test(file);
const NOTHING: LoadedDefinitions = { definitions: [], badFiles: [], skipped: [], hosted: [] };
const rejectFile = (file: string, reason: string): LoadedDefinitions => ({
  ...NOTHING,
  badFiles: [{ file, reason, loopId: nameOfFile(file) }],
});

/**
 * Loads all definitions of a directory. Ignores files such as package.json, tests and scripts (`IGNORED_FILE_NAMES`).
 * Modules that define no loops and the programs of `exec:` tools are not imported. A directory that cannot be listed is
 * reported as a bad file.
 */
export async function loadDefinitions(directory: string, options: LoadOptions): Promise<LoadedDefinitions> {
  const home = resolve(directory);
  const listed = await listFiles(home);
  if (typeof listed === 'string')
    return { ...NOTHING, badFiles: [{ file: home, reason: `the directory cannot be listed: ${listed}` }] };
  const { files, rejectLink } = listed;
  const trusted = options.trusted(home);
  const results = new Map<string, LoadedDefinitions>();
  const programs = new Set<string>();
  await forEachConcurrently(files.filter(isDocument), async (file) => {
    results.set(file, (await rejectLink(file)) ?? (await loadDocument(file, trusted, options, programs)));
  });
  for (const file of files) {
    if (!isModule(file) || programs.has(file)) continue;
    results.set(file, (await rejectLink(file)) ?? (await loadModule(file, trusted, 'definitions')));
  }
  const sorted = files.flatMap((file) => results.get(file) ?? []);
  return {
    definitions: sorted.flatMap(({ definitions }) => definitions),
    badFiles: sorted.flatMap(({ badFiles }) => badFiles),
    skipped: sorted.flatMap(({ skipped }) => skipped),
    hosted: sorted.flatMap(({ hosted }) => hosted),
  };
}

/** Loads the hosted loops of a directory, and nothing else: no code is imported. */
export async function loadHostedFiles(directory: string, parse: HostedLoopParser): Promise<readonly HostedFile[]> {
  const listed = await listFiles(resolve(directory));
  if (typeof listed === 'string') return [];
  const hosted = new Map<string, HostedFile>();
  await forEachConcurrently(listed.files.filter(isDocument), async (file) => {
    if ((await listed.rejectLink(file)) !== undefined) return;
    const text = await readText(file, MAX_DEFINITION_BYTES).catch(() => '');
    if (isHostedLoopText(file, text)) hosted.set(file, parseHostedLoopText(file, text, parse));
  });
  return listed.files.flatMap((file) => hosted.get(file) ?? []);
}

/** The files of a directory that may be definitions, sorted, and the rejection of links that lead out of it. */
interface ListedFiles {
  readonly files: readonly string[];
  rejectLink(file: string): Promise<LoadedDefinitions | undefined>;
}

/** Lists a directory. Returns the reason if it cannot be listed. */
async function listFiles(home: string): Promise<ListedFiles | string> {
  const items = await readdir(home, { withFileTypes: true }).catch(describeSystemError);
  if (typeof items === 'string') return items;
  const candidates = items.filter((item) => !item.isDirectory() && !IGNORED_FILE_NAMES.test(item.name));
  const links = new Set(candidates.filter((item) => item.isSymbolicLink()).map(({ name }) => join(home, name)));
  return {
    files: candidates.map(({ name }) => join(home, name)).sort(),
    rejectLink: async (file) => (links.has(file) ? rejectOutsideLink(file, home) : undefined),
  };
}

/**
 * Loads the definitions of one file, named by the caller. Follows links, ignores no file names, and reports a module
 * without loops as bad.
 */
export async function loadDefinitionFile(path: string, options: LoadOptions): Promise<LoadedDefinitions> {
  const file = resolve(path);
  const trusted = options.trusted(dirname(file));
  if (isDocument(file)) return loadDocument(file, trusted, options, new Set());
  if (!isModule(file)) return rejectFile(file, 'a definition is a file that ends in .json, .toml, .mjs, .js or .ts');
  const loaded = await loadModule(file, trusted, 'any');
  return loaded.definitions.length + loaded.badFiles.length > 0 ? loaded : rejectFile(file, 'it exports no loop');
}

async function forEachConcurrently<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  // All workers take items from one shared iterator.
  const queue = items.values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_READS }, worker));
}

/**
 * Returns the rejection of a link that leads out of the directory or cannot be resolved; undefined for any other link.
 * Write access to the directory must not allow reading other files.
 */
async function rejectOutsideLink(file: string, directory: string): Promise<LoadedDefinitions | undefined> {
  try {
    const [target, home] = await Promise.all([realpath(file), realpath(directory)]);
    return target.startsWith(home + sep)
      ? undefined
      : rejectFile(file, 'it is a symbolic link to a file outside of the directory, which is not followed');
  } catch (thrown) {
    return rejectFile(file, describeSystemError(thrown));
  }
}

/**
 * Loads one document, and the workflows that it refers to by their paths. Adds the absolute paths of the programs of its
 * `exec:` tools to `programs`. `parents` are the files of the workflows that refer to this one.
 */
async function loadDocument(
  file: string,
  trusted: boolean,
  { parser, loadHostedParser }: Pick<LoadOptions, 'parser' | 'loadHostedParser'>,
  programs: Set<string>,
  parents: readonly string[] = [],
): Promise<LoadedDefinitions> {
  try {
    const text = await readText(file, MAX_DEFINITION_BYTES);
    // guard: hosted-loop-is-no-definition
    if (loadHostedParser !== undefined && isHostedLoopText(file, text))
      return { ...NOTHING, hosted: [parseHostedLoopText(file, text, await loadHostedParser())] };
    for (const program of execTargetsIn(text)) programs.add(resolve(dirname(file), program));
    const inner = new Map<string, LoadedDefinitions>();
    for (const path of workflowPathsIn(file, text, parser))
      inner.set(path, await loadInnerWorkflow(path, file, trusted, { parser }, programs, [...parents, file]));
    const workflowIds = new Map([...inner].flatMap(([path, loaded]) => idsOf(loaded).map((id) => [path, id] as const)));
    const result = parseDefinitionText(file, text, parser, workflowIds);
    const own =
      'badFiles' in result
        ? { ...NOTHING, badFiles: result.badFiles }
        : { ...NOTHING, definitions: [{ file, origin: originOf(file, trusted), definition: result.definition }] };
    // The last definition of a document is its own; the id of a workflow is that of its last definition.
    return [...inner.values(), own].reduce((all, { definitions, badFiles }) => ({
      ...NOTHING,
      definitions: [...all.definitions, ...definitions],
      badFiles: [...all.badFiles, ...badFiles],
    }));
  } catch (thrown) {
    return rejectFile(file, describeError(thrown));
  }
}

/** Loads a workflow that another one refers to by its path, which must not leave the directory of that file. */
async function loadInnerWorkflow(
  path: string,
  file: string,
  trusted: boolean,
  options: Pick<LoadOptions, 'parser'>,
  programs: Set<string>,
  parents: readonly string[],
): Promise<LoadedDefinitions> {
  const target = resolve(dirname(file), path);
  // guard: inner-workflow-confined
  if (!isInsideWithLinksResolved(dirname(file), target))
    return rejectFile(file, `the workflow "${path}" is outside of the directory of this file`);
  if (parents.includes(target))
    return rejectFile(file, `the workflow "${path}" calls itself: ${[...parents, target].map(nameOfFile).join(' → ')}`);
  return loadDocument(target, trusted, options, programs, parents);
}

/** Returns the id of a loaded workflow: that of its definition or, if it is invalid, that of the first problem. */
function idsOf({ definitions, badFiles }: LoadedDefinitions): readonly string[] {
  const last = definitions.at(-1);
  const id = last !== undefined && 'definition' in last ? last.definition.id : badFiles[0]?.loopId;
  return id === undefined ? [] : [id];
}

/** Loads one module: any module that the caller named, or only one whose text shows that it defines loops. */
async function loadModule(file: string, trusted: boolean, accepted: 'any' | 'definitions'): Promise<LoadedDefinitions> {
  try {
    const text = await readText(file, MAX_DEFINITION_BYTES);
    // A file with a shebang line is a program. Importing it would run it, even if the caller named it.
    if (text.startsWith('#!'))
      return { ...NOTHING, skipped: [{ file, reason: 'it is a program, with a shebang line' }] };
    // guard: scripts-not-imported
    if (accepted === 'definitions' && !isDefinitionModule(file, text))
      return { ...NOTHING, skipped: [{ file, reason: NO_DEFINITION_REASON }] };
    // guard: untrusted-code-not-imported
    if (!trusted)
      return rejectFile(file, `it is code, and its directory is not trusted. ${trustAdvice(dirname(file))}`);
    const origin = originOf(file, trusted);
    return { ...NOTHING, definitions: (await importLoops(file)).map((item) => ({ file, origin, ...item })) };
  } catch (thrown) {
    return rejectFile(file, describeError(thrown));
  }
}

function originOf(file: string, trusted: boolean): DefinitionOrigin {
  return { directory: dirname(file), file, trusted };
}

/**
 * Returns the programs that `exec:` tools of a document start, as written there. They must not be imported as modules.
 * Searches the text so that the programs of an invalid document are found too.
 */
function execTargetsIn(text: string): string[] {
  return [...text.matchAll(/exec:([^"':\r\n]+)["']/g)].map(([, program = '']) => program);
}
