/**
 * Loads the definition files of a project, registers the valid loops and reports the invalid files, with line numbers.
 */

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { BadFile, FoundDefinition, HostedFile } from '../../adapters/files/index.js';
import { LoopError } from '../../base/errors.js';
import { ownProperty } from '../../base/own-property.js';
import { shortVersion } from '../../base/short-version.js';
import type { AnalyzedLoop } from '../../loops/plan/analysis/analyze.js';
import type { RegisteredLoop, Registry, RegistryOptions } from '../../loops/registry.js';
import type { BackendRef } from '../../protocol/loop.js';
import { trustPredicateOf } from '../authority.js';
import { UsageError } from '../settings.js';
import { loadToolImplementations, providerIdsOf, toolSchemesOf } from './adapters.js';
import { type DraftDefinition, draftDefinitions, ownProblems, withDrafts } from './draft-definitions.js';
import { checkHostedFiles, createHostedParser, unknownToolWarnings } from './hosted-files.js';
import { locateInFile } from './locate-problems.js';
import type { ProjectSettings } from './project-settings.js';
import { shippedDefinitions } from './shipped-loops.js';

/** A warning about a definition file; `mistake` is true if it is probably an error. */
export type FileWarning = BadFile & { readonly mistake: boolean };

/** The definitions of a project. */
export interface Definitions {
  readonly registry: Registry;
  readonly badFiles: readonly BadFile[];
  /** The bad files that contain a plan, as far as it can be analyzed. */
  readonly drafts: readonly DraftDefinition[];
  /** The modules that were not imported, because they define no loops, with the reason. */
  readonly skipped: readonly BadFile[];
  /** Warnings about files that were loaded. */
  readonly warnings: readonly FileWarning[];
  /** The hosted loop files among the definitions. Their problems are not among `badFiles`. */
  readonly hosted: readonly HostedFile[];
  /** The registered loops with their files, in the order in which they were loaded. */
  readonly loops: readonly { readonly file: string; readonly registered: RegisteredLoop }[];
}

/** Returns definitions without loops, for verbs that run none. */
export async function emptyDefinitions(): Promise<Definitions> {
  const { Registry } = await import('../../loops/registry.js');
  return { registry: new Registry(), badFiles: [], drafts: [], skipped: [], warnings: [], hosted: [], loops: [] };
}

/** Options of {@link loadLoops}. */
interface LoadLoopsOptions {
  /** The model of all prompts of plans, and of prompts that name none: `PROVIDER` or `PROVIDER:MODEL`. */
  readonly model?: string | undefined;
}

/** Loads the definitions of the project and, if files are given, of those files and their directories. */
export async function loadLoops(
  settings: ProjectSettings,
  files: readonly string[] = [],
  { model }: LoadLoopsOptions = {},
): Promise<Definitions> {
  const [{ loadDefinitionFile, loadDefinitions }, { documentParser: parser }, { Registry }] = await Promise.all([
    import('../../adapters/files/load.js'),
    import('../../loops/plan/workflow-document.js'),
    import('../../loops/registry.js'),
  ]);
  const options = { parser, loadHostedParser: createHostedParser, trusted: trustPredicateOf(settings.authority) };
  const isMissing = !settings.hasExplicitLoops && !existsSync(settings.loopsDirectory);
  // A file can call the loops beside it and those of the project.
  const directories = new Set([...files.map(dirname), ...(isMissing ? [] : [settings.loopsDirectory])]);
  const loads = await Promise.all([
    ...files.map((file) => loadDefinitionFile(file, options)),
    ...[...directories].map((directory) => loadDefinitions(directory, options)),
  ]);
  const found = deduplicateLoops(loads.flatMap((load) => load.definitions));
  const shipped = shippedDefinitions(found, settings);
  const definitions = [...found, ...shipped];
  const registry = new Registry(
    await loadToolImplementations(settings, toolSchemesOf(definitions)),
    await registryOptionsOf(settings, model),
  );
  const added = await registerAll(registry, definitions);
  const unread = loads.flatMap((load) => load.badFiles);
  const drafts = await draftDefinitions(registry, [...unread, ...added.badFiles], added.loops);
  const valid = await withoutInvalidPlans(registry, definitions, added, drafts);
  const { loops, badFiles: rejected, warnings } = await withoutMixedTrust(registry, valid);
  const badFiles = distinctBadFiles([...unread, ...rejected]);
  addFailures(registry, badFiles);
  // A file that the caller named has been imported.
  const skipped = distinctBadFiles(loads.flatMap((load) => load.skipped)).filter(({ file }) => !files.includes(file));
  const hosted = await checkHostedFiles(
    loads.flatMap((load) => load.hosted),
    registry,
    settings,
  );
  const toolWarnings = await Promise.all(hosted.map((item) => unknownToolWarnings(item, registry)));
  const hostedWarnings = toolWarnings.flat().map((item) => ({ ...item, mistake: false }));
  return { registry, loops, badFiles, drafts, skipped, warnings: [...warnings, ...hostedWarnings], hosted };
}

/**
 * Returns the configured providers, verbs and models. Throws a UsageError if the config or the flag `--model` names an
 * unknown provider.
 */
async function registryOptionsOf(
  { config, authority }: ProjectSettings,
  model: string | undefined,
): Promise<RegistryOptions> {
  const providerIds = providerIdsOf(config);
  const verbs = Object.fromEntries(config.verbs);
  const override = model === undefined ? undefined : await modelOf(model, providerIds, '--model');
  const configured =
    config.model === undefined ? undefined : await modelOf(config.model, providerIds, `${config.file}: model`);
  const defaultModel = override ?? configured;
  const { file } = config;
  const directory = file === undefined ? undefined : dirname(file);
  const trusted = trustPredicateOf(authority)(directory);
  return {
    providerIds,
    verbs,
    ...(file !== undefined &&
      directory !== undefined && {
        config: { file, directory, trusted, providerIds: [...config.backends.keys()] },
      }),
    ...(defaultModel !== undefined && { defaultModel }),
    ...(override !== undefined && { modelOverride: override }),
  };
}

/** Parses the text of a model. Throws a UsageError, which begins with `where`, for an unknown provider. */
async function modelOf(text: string, providerIds: readonly string[], where: string): Promise<BackendRef> {
  const [{ parseModelText }, { unknownProviderReason }] = await Promise.all([
    import('../../loops/model-ref.js'),
    import('../../loops/definition/backends.js'),
  ]);
  const model = parseModelText(text) ?? { id: text };
  if (providerIds.includes(model.id)) return model;
  throw new UsageError(`${where}: ${unknownProviderReason(model.id, providerIds)}.`);
}

/** Records the loops that could not be loaded in the registry, each with all problems of its file. */
function addFailures(registry: Registry, badFiles: readonly BadFile[]): void {
  const problemsById = new Map<string, BadFile[]>();
  for (const { loopId, ...problem } of badFiles) {
    if (loopId === undefined) continue;
    const problems = problemsById.get(loopId) ?? [];
    problemsById.set(loopId, problems);
    problems.push(problem);
  }
  for (const [id, problems] of problemsById) registry.addFailure({ id, problems });
}

/** Removes duplicates: a given file is also found in its directory. A module may export several loops, by name. */
function deduplicateLoops(definitions: readonly FoundDefinition[]): readonly FoundDefinition[] {
  const byKey = new Map(definitions.map((item) => [`${item.file}\n${'name' in item ? item.name : ''}`, item]));
  return [...byKey.values()];
}

function distinctBadFiles(badFiles: readonly BadFile[]): readonly BadFile[] {
  return [...new Map(badFiles.map((item) => [JSON.stringify(item), item])).values()];
}

type RegisteredDefinitions = Pick<Definitions, 'loops' | 'badFiles' | 'warnings'>;

async function registerAll(
  registry: Registry,
  definitions: readonly FoundDefinition[],
): Promise<RegisteredDefinitions> {
  const loops: Definitions['loops'][number][] = [];
  const badFiles: BadFile[] = [];
  const warnings: FileWarning[] = [];
  for (const item of definitions) {
    try {
      const definition = 'definition' in item ? item.definition : item.code;
      const registered = registry.add(definition, item.origin);
      if (loops.some(({ file, registered: other }) => file === item.file && isSameVersion(other, registered)))
        throw duplicateExportError(registered);
      loops.push({ file: item.file, registered });
      if (registered.warnings.length > 0) warnings.push(...(await locateWarnings(item, registered)));
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      badFiles.push(...(await locateRejection(item, thrown)));
    }
  }
  return { loops, badFiles, warnings };
}

/**
 * Analyzes the plans among the registered loops, removes the invalid ones, and reports their problems. Also reports what
 * else is wrong with the documents that could not be registered.
 */
async function withoutInvalidPlans(
  registry: Registry,
  definitions: readonly FoundDefinition[],
  added: RegisteredDefinitions,
  drafts: readonly DraftDefinition[],
): Promise<RegisteredDefinitions> {
  const { loops, badFiles } = added;
  const hasPlans = loops.some(({ registered }) => registered.definition.composite?.plan !== undefined);
  if (!hasPlans && drafts.length === 0) return added;
  const { analyzePlans } = await import('../../loops/plan/analysis/analyze.js');
  const registered = loops.map((loop) => loop.registered);
  const table = withDrafts(registry, drafts);
  const found: BadFile[] = [];
  const invalid = new Set<unknown>();
  for (const { loop, issues } of [
    ...drafts.map(ownProblems),
    ...analyzePlans<AnalyzedLoop>([...registered, ...drafts], table),
  ]) {
    const draft = drafts.find((item) => item === loop);
    const { id, version } = loop.definition;
    if (draft === undefined) registry.remove(id, version);
    invalid.add(loop);
    for (const { file } of draft === undefined ? loops.filter((item) => item.registered === loop) : [draft]) {
      const isDocument = draft !== undefined || definitions.some((item) => item.file === file && 'definition' in item);
      const located = isDocument ? await locateInFile(file, issues) : issues.map((issue) => ({ file, ...issue }));
      found.push(...located.map((item) => ({ ...item, loopId: id })));
    }
  }
  return {
    ...added,
    loops: loops.filter((loop) => !invalid.has(loop.registered)),
    // The compiler stops at the first mistake, which the analysis finds again.
    badFiles: [
      ...badFiles.filter(({ file, reason }) => !found.some((item) => item.file === file && item.reason === reason)),
      ...found,
    ],
  };
}

/** Removes the loops that need trust which not all of their parts have, and reports them. */
async function withoutMixedTrust(registry: Registry, added: RegisteredDefinitions): Promise<RegisteredDefinitions> {
  const { loops, badFiles } = added;
  if (!loops.some(({ registered }) => registry.needsTrust(registered))) return added;
  const { mixedTrustProblem } = await import('../../loops/trust-boundary.js');
  const problems = new Map<RegisteredLoop, BadFile>();
  for (const { file, registered } of loops) {
    const reason = mixedTrustProblem(registry, registered);
    // guard: untrusted-definition-runs-no-trusted-code
    if (reason !== undefined) problems.set(registered, { file, reason, loopId: registered.definition.id });
  }
  for (const { definition } of problems.keys()) registry.remove(definition.id, definition.version);
  return {
    ...added,
    loops: loops.filter(({ registered }) => !problems.has(registered)),
    badFiles: [...badFiles, ...problems.values()],
  };
}

function isSameVersion({ definition: a }: RegisteredLoop, { definition: b }: RegisteredLoop): boolean {
  return a.id === b.id && a.version === b.version;
}

/** Returns the error of a module that exports two loops of one id and version, of which one would replace the other. */
function duplicateExportError({ definition: { id, version } }: RegisteredLoop): LoopError {
  const message = `the module exports another loop "${id}" ${shortVersion(version)}: rename one of them, or raise its version.`;
  return new LoopError('DEFINITION_INVALID', message, { path: '/version', reason: 'exported twice' });
}

/** Returns the registry's error, with its line in the file if the definition is a document. */
async function locateRejection(item: FoundDefinition, error: LoopError): Promise<readonly BadFile[]> {
  const { file } = item;
  if (!('definition' in item)) {
    const loopId = idOfExport(item.code) ?? item.name;
    return [{ file, reason: `${item.name}: ${error.message}`, loopId }];
  }
  const { DefinitionIssues } = await import('../../loops/definition/shape.js');
  const issues = new DefinitionIssues();
  issues.addError(error);
  return locateInFile(file, issues.list);
}

/** Returns the id of an exported definition or loop; undefined if it cannot be read. */
function idOfExport(code: unknown): string | undefined {
  const { definition } = (code ?? {}) as { readonly definition?: unknown };
  const id = ownProperty(definition ?? code, 'id');
  return typeof id === 'string' ? id : undefined;
}

/** Returns the warnings about a definition, with line numbers if it is a document. */
async function locateWarnings(item: FoundDefinition, { warnings }: RegisteredLoop): Promise<readonly FileWarning[]> {
  const problems = warnings.map(({ path, reason }) => ({ path, reason }));
  const located = 'definition' in item ? await locateInFile(item.file, problems) : [];
  return warnings.map((warning, index) => ({ file: item.file, ...located[index], ...warning }));
}
