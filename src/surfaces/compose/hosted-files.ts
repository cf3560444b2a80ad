/** Hosted loop files of a project: reads them, finds them by id or path, and checks them against the project. */
import { existsSync, realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { BadFile, HostedFile } from '../../adapters/files/index.js';
import { LoopError } from '../../base/errors.js';
import { namesHint, nearestWord } from '../../base/nearest-word.js';
import { isObject } from '../../base/own-property.js';
import type { ModelContext } from '../../host/hosted/grant-flaws.js';
import type { LoopFlaw } from '../../host/hosted/loop-flaws.js';
import { describeProblem, failedDefinitionError } from '../../loops/failed-definition.js';
import type { Registry } from '../../loops/registry.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import { trustPredicateOf } from '../authority.js';
import { UsageError } from '../settings.js';
import { createClock, loadProviders } from './adapters.js';
import type { ProjectSettings } from './project-settings.js';

/** A valid hosted loop file. */
export interface HostedLoopFile {
  readonly file: string;
  readonly document: HostedLoopDocument;
}

/** Returns a check of hosted loop documents. Relative roots of grants start at the directory of the file. */
export async function createHostedParser(): Promise<(value: unknown, file: string) => HostedLoopDocument> {
  const { parseHostedLoop } = await import('../../host/hosted/hosted-document.js');
  return (value, file) => parseHostedLoop(withAbsoluteRoots(value, dirname(file)), file);
}

/** Reads a hosted loop file. Throws DEFINITION_INVALID with its problems, each with its line, if it is invalid. */
export async function readHostedLoopFile(path: string): Promise<HostedLoopFile> {
  const { loadHostedFile } = await import('../../adapters/files/hosted-files.js');
  return validFile(await loadHostedFile(path, await createHostedParser()));
}

/** Returns the hosted loop files in the directory of definitions, sorted by name. No code is imported. */
export async function listHostedLoopFiles(settings: ProjectSettings): Promise<readonly HostedFile[]> {
  if (!settings.hasExplicitLoops && !existsSync(settings.loopsDirectory)) return [];
  const { loadHostedFiles } = await import('../../adapters/files/load.js');
  return loadHostedFiles(settings.loopsDirectory, await createHostedParser());
}

/**
 * Returns a hosted loop by its id, or by the path of its file. Throws DEFINITION_INVALID if its file is invalid, and a
 * UsageError if there is none, or several with the id. The registry is used in messages only.
 */
export async function findHostedLoopFile(
  settings: ProjectSettings,
  idOrPath: string,
  registry?: Registry,
): Promise<HostedLoopFile> {
  const path = resolve(settings.cwd, idOrPath);
  const isPath = /\.(?:toml|json)$/.test(idOrPath);
  if (isPath && existsSync(path)) return readHostedLoopFile(path);
  const files = await listHostedLoopFiles(settings);
  const found = files.filter((item) => idOf(item) === idOrPath);
  const [first, second] = found;
  // guard: ambiguous-hosted-loop-refused
  if (first !== undefined && second !== undefined)
    throw new UsageError(`The hosted loop "${idOrPath}" is defined in ${found.map(({ file }) => file).join(' and ')}.`);
  if (first !== undefined) return validFile(first);
  if (registry?.find(idOrPath) !== undefined)
    throw new UsageError(
      `"${idOrPath}" is a loop, not a hosted loop. A hosted loop is a file that names it: loop = "${idOrPath}"`,
    );
  const ids = files.map(idOf);
  const hint = ids.length === 0 ? ` ${settings.loopsDirectory} has none.` : namesHint(idOrPath, ids, 'Known are');
  throw new UsageError(isPath ? `There is no file ${idOrPath}.` : `There is no hosted loop "${idOrPath}".${hint}`);
}

/**
 * Adds the problems that hosted loop files have in their project: an id that two have, a loop that does not exist, or a
 * first turn that cannot run.
 */
export async function checkHostedFiles(
  files: readonly HostedFile[],
  registry: Registry,
  settings: ProjectSettings,
): Promise<readonly HostedFile[]> {
  const distinct = [...new Map(files.map((item) => [item.file, item])).values()];
  const documents = distinct.flatMap(({ document }) => document ?? []);
  if (documents.length === 0) return distinct;
  const context = await loopContextOf(documents, registry, settings);
  const { sharedGrantFlaw } = await import('../../host/hosted/grant-flaws.js');
  return Promise.all(
    distinct.map(async (item) => {
      const { file, document } = item;
      if (document === undefined) return item;
      const other = distinct.find((one) => one.file !== file && one.document?.id === document.id);
      const shared = documents.filter(({ id }) => id !== document.id).map((each) => sharedGrantFlaw(document, each));
      const flaws = [
        ...(other === undefined ? [] : [{ path: '/id', reason: `is also the id of the hosted loop in ${other.file}` }]),
        ...(await loopFlaws(document, context, untrustedDirectoryOf(file, settings))),
        ...shared.flatMap((flaw) => flaw ?? []).slice(0, 1),
      ];
      return flaws.length === 0 ? item : { ...item, badFiles: await locateInHostedFile(file, flaws) };
    }),
  );
}

/**
 * Checks a hosted loop file against the loop that it runs. Throws DEFINITION_INVALID with the place of each problem. A loop
 * that is not registered is no problem here: its start reports it.
 */
export async function assertStartable(
  { file, document }: HostedLoopFile,
  registry: Registry,
  settings: ProjectSettings,
): Promise<void> {
  if (registry.find(document.loop) === undefined) return;
  const context = await loopContextOf([document], registry, settings);
  const flaws = await loopFlaws(document, context, untrustedDirectoryOf(file, settings));
  if (flaws.length === 0) return;
  const problems = await locateInHostedFile(file, flaws);
  throw failedDefinitionError({ id: document.id, problems }, `The hosted loop "${document.id}"`);
}

/** Returns the error of a start. One about a grant that is known with other content gets the place of the id in the file. */
export async function locatedStartError(file: string, thrown: unknown): Promise<unknown> {
  if (!(thrown instanceof LoopError) || thrown.code !== 'GRANT_CONFLICT') return thrown;
  const [problem] = await locateInHostedFile(file, [{ path: '/grant/id', reason: thrown.message }]);
  return problem === undefined ? thrown : new LoopError(thrown.code, describeProblem(problem), { ...problem });
}

/**
 * Returns warnings about tools that a hosted loop permits and that do not exist. There are none if code is involved,
 * whose tools have names that no registry knows, or if a definition could not be loaded.
 */
export async function unknownToolWarnings(
  { file, document }: Pick<HostedFile, 'file' | 'document'>,
  registry: Registry,
): Promise<readonly BadFile[]> {
  const loops = registry.list();
  if (document === undefined || registry.failures().length > 0) return [];
  if (loops.some(({ definedLoop }) => definedLoop !== undefined)) return [];
  const ids = loops.map(({ definition }) => definition.id);
  const flaws = document.grant.allowedTools.flatMap((tool, index) => {
    if (tool.endsWith('*') || ids.includes(tool)) return [];
    const nearest = nearestWord(tool, ids);
    const hint = nearest === undefined ? '' : `; did you mean "${nearest}"?`;
    return [{ path: `/grant/allowedTools/${index}`, reason: `is "${tool}", and there is no such loop${hint}` }];
  });
  return flaws.length === 0 ? [] : locateInHostedFile(file, flaws);
}

/** Returns the directory of a file if the operator does not trust it. */
export function untrustedDirectoryOf(
  file: string,
  { authority }: Pick<ProjectSettings, 'authority'>,
): string | undefined {
  const directory = dirname(file);
  return trustPredicateOf(authority)(directory) ? undefined : directory;
}

/** Returns what documents are checked against. Providers are loaded only if costs are limited. */
async function loopContextOf(
  documents: readonly HostedLoopDocument[],
  registry: Registry,
  settings: ProjectSettings,
): Promise<ModelContext> {
  const clock = await createClock(settings);
  const { costLimitOf } = await import('../../host/hosted/grant-flaws.js');
  if (documents.every((document) => costLimitOf(document) === undefined)) return { registry, clock };
  const [{ limitPricesOf }, providers] = await Promise.all([import('./limit-prices.js'), loadProviders(settings)]);
  return { registry, clock, providers, priceOf: limitPricesOf(settings, providers) };
}

async function loopFlaws(
  document: HostedLoopDocument,
  context: ModelContext,
  untrustedDirectory: string | undefined,
): Promise<readonly LoopFlaw[]> {
  const { loop } = document;
  const { registry } = context;
  const registered = registry.find(loop);
  if (registered !== undefined) {
    const { loopFlawsOf, trustFlawOf } = await import('../../host/hosted/loop-flaws.js');
    const flaw = trustFlawOf(document, { registry }, untrustedDirectory);
    return [...loopFlawsOf(document, registered, false, context), ...(flaw === undefined ? [] : [flaw])];
  }
  const [problem] = registry.failureOf(loop)?.problems ?? [];
  if (problem !== undefined)
    return [{ path: '/loop', reason: `is "${loop}", which could not be loaded: ${describeProblem(problem)}` }];
  const nearest = nearestWord(
    loop,
    registry.list().map(({ definition }) => definition.id),
  );
  const hint = nearest === undefined ? '' : `; did you mean "${nearest}"?`;
  return [{ path: '/loop', reason: `is "${loop}", and there is no such loop${hint}` }];
}

async function locateInHostedFile(file: string, flaws: readonly LoopFlaw[]): Promise<readonly BadFile[]> {
  const { loadHostedFile } = await import('../../adapters/files/hosted-files.js');
  const { badFiles } = await loadHostedFile(file, () => {
    throw new LoopError('DEFINITION_INVALID', '', { flaws: flaws.map((flaw) => ({ ...flaw })) });
  });
  return badFiles;
}

function idOf({ document, badFiles, file }: HostedFile): string {
  return document?.id ?? badFiles[0]?.loopId ?? file;
}

function validFile({ file, document, badFiles }: HostedFile): HostedLoopFile {
  if (document !== undefined) return { file, document };
  const id = badFiles[0]?.loopId ?? file;
  throw failedDefinitionError({ id, problems: badFiles }, `The hosted loop "${id}"`);
}

/** Returns a document in which the relative roots of its grants are absolute, without links, as in a grant file. */
function withAbsoluteRoots(value: unknown, directory: string): unknown {
  if (!isObject(value)) return value;
  const { grant, turn, handoffs } = value;
  const narrow = (part: unknown): unknown =>
    isObject(part) && 'grant' in part ? { ...part, grant: absoluteRoots(part.grant, directory) } : part;
  return {
    ...value,
    ...(grant !== undefined && { grant: absoluteRoots(grant, directory) }),
    ...(turn !== undefined && { turn: narrow(turn) }),
    ...(handoffs !== undefined && { handoffs: Array.isArray(handoffs) ? handoffs.map(narrow) : handoffs }),
  };
}

function absoluteRoots(grant: unknown, directory: string): unknown {
  if (!isObject(grant) || !Array.isArray(grant.roots)) return grant;
  const roots = grant.roots.map((root: unknown) =>
    typeof root === 'string' ? realRoot(resolve(directory, root)) : root,
  );
  return { ...grant, roots };
}

/** Returns the path without links; unchanged if it does not exist, in which case nothing is inside of it. */
function realRoot(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
