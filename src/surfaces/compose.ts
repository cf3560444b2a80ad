/**
 * Puts a host together. The only file that picks adapters, and it loads each when it is needed: a verb that opens no
 * store pays for none.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BadFile, CustomBackend, FoundDefinition, ProjectConfig } from '../adapters/files/index.js';
import type { Maintenance } from '../adapters/sqlite/index.js';
import { LoopError } from '../base/errors.js';
import { type Permits, permitsOf, sendRefusal } from '../base/permits.js';
import type { Host, HostOptions } from '../host/host.js';
import type { ModelProvider } from '../loops/model.js';
import type { RegisteredLoop, Registry } from '../loops/registry.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import type { ToolSpec } from '../protocol/loop.js';
import {
  assertOutsideProject,
  authorityOf,
  isInside,
  type OperatorFileContent,
  operatorFilePath,
  realPathOf,
  type TrustPredicate,
  trustPredicateOf,
} from './authority.js';
import { markDataDirectory, protectDataDirectory } from './data-directory.js';
import {
  explicitConfigFile,
  explicitLocations,
  resolveSettings,
  type Settings,
  type SettingsInput,
  UsageError,
} from './settings.js';

export type { BadFile, ProjectConfig } from '../adapters/files/index.js';
export type { Damage, Incident, Maintenance, MaintenanceLog, VerifyCursor } from '../adapters/sqlite/index.js';

export type ProjectSettings = Settings<ProjectConfig>;

/** Something that is odd about a file; `mistake` if it looks like one. */
export type FileWarning = BadFile & { readonly mistake: boolean };

/** The definitions of a project, as far as they are any good. */
export interface Definitions {
  readonly registry: Registry;
  readonly badFiles: readonly BadFile[];
  /** What is odd about files that were loaded. */
  readonly warnings: readonly FileWarning[];
  /** What each file gave, in the order of the names. */
  readonly loops: readonly { readonly file: string; readonly registered: RegisteredLoop }[];
}

/** A host with all that belongs to it. */
export interface ComposedHost {
  readonly host: Host;
  readonly registry: Registry;
  readonly badFiles: readonly BadFile[];
  readonly config: ProjectConfig;
  readonly store: HostOptions['store'];
  /** Whether the store outlives the process. */
  readonly isDurable: boolean;
  /** The maintenance of a store that outlives the process. */
  readonly maintenance: Maintenance | undefined;
  close(): Promise<void>;
}

export interface ComposeOptions {
  /** Definitions that were loaded before; they are loaded unless given. */
  readonly definitions?: Definitions;
  /** Whether a store that is not there is made; without it, nothing is left behind on the disk. */
  readonly createIfMissing?: boolean;
  /** Receives a sentence for the operator when another process has not answered for five seconds. */
  readonly notify?: (message: string) => void;
}

/** The settings that hold for what was asked; CONFIG_INVALID or a UsageError says what is wrong. */
export async function loadSettings(asked: SettingsInput): Promise<ProjectSettings> {
  const authority = authorityOf(asked, await readOperatorFile(asked));
  const trusts = trustPredicateOf(authority);
  const named = explicitConfigFile(asked);
  let config = EMPTY_CONFIG;
  if (named !== undefined || existsSync(join(asked.cwd, 'rondo.toml'))) {
    const { loadConfig } = await import('../adapters/files/config.js');
    const given = explicitLocations(asked);
    const open = (['data', 'loops', 'store'] as const).filter((key) => !given[key]);
    config = await loadConfig(named, asked.cwd, { confinedPaths: (directory) => (trusts(directory) ? [] : open) });
  }
  const settings = resolveSettings(asked, config, authority);
  assertLoopsInsideProject(settings, trusts);
  return settings;
}

const EMPTY_CONFIG: ProjectConfig = { file: undefined, prices: new Map(), backends: new Map() };

/** What the operator's own file says, if it is to be believed. */
export async function readOperatorFile(asked: SettingsInput): Promise<OperatorFileContent> {
  const file = operatorFilePath(asked.env);
  if (file === undefined || !existsSync(file)) return { directories: [], send: new Map(), destinations: [] };
  assertOutsideProject(file, asked);
  return (await import('../adapters/files/operator-file.js')).loadOperatorFile(file);
}

/** Writes the operator's own file. */
export async function writeOperatorFile(file: string, content: OperatorFileContent): Promise<void> {
  await (await import('../adapters/files/operator-file.js')).saveOperatorFile(file, content);
}

/** The usual directory of definitions may be a link; in a project that is not trusted, not one that leads out of it. */
function assertLoopsInsideProject(
  { loopsDirectory, hasExplicitLoops, cwd }: ProjectSettings,
  trusts: TrustPredicate,
): void {
  const real = hasExplicitLoops ? undefined : realPathOf(loopsDirectory);
  if (real === undefined || isInside(realPathOf(cwd) ?? cwd, real) || trusts(cwd)) return;
  throw new UsageError(
    `${loopsDirectory} is a link to ${real}, outside of ${cwd}, which is not trusted: use --loops ${real}.`,
  );
}

/**
 * Trust in what a journal recorded. A clone may bring a journal whose definitions claim any directory, so their word counts
 * only if the operator trusts the directory of the journal itself.
 */
function recordedTrustPredicate({ store, authority }: Settings): TrustPredicate {
  const trusts = trustPredicateOf(authority);
  // guard: journal-trust-needs-trusted-directory
  return store.kind === 'memory' || trusts(dirname(store.path)) ? trusts : () => false;
}

/** No definitions at all, for verbs that only look at what was recorded. */
export async function emptyDefinitions(): Promise<Definitions> {
  const { Registry } = await import('../loops/registry.js');
  return { registry: new Registry(), badFiles: [], warnings: [], loops: [] };
}

/** The definitions of the project's directory, or of files and the directories they are in. */
export async function loadLoops(settings: Settings, files: readonly string[] = []): Promise<Definitions> {
  const [{ loadDefinitionFile, loadDefinitions }, { parseDefinition: parse }, { Registry }] = await Promise.all([
    import('../adapters/files/load.js'),
    import('../loops/definition/definition.js'),
    import('../loops/registry.js'),
  ]);
  const options = { parse, trusted: trustPredicateOf(settings.authority) };
  const absent = !settings.hasExplicitLoops && !existsSync(settings.loopsDirectory);
  const directories = files.length > 0 ? [...new Set(files.map(dirname))] : absent ? [] : [settings.loopsDirectory];
  const loads = await Promise.all([
    ...files.map((file) => loadDefinitionFile(file, options)),
    ...directories.map((directory) => loadDefinitions(directory, options)),
  ]);
  const all = deduplicateLoops(loads.flatMap(({ definitions }) => definitions));
  const registry = new Registry(await loadToolImplementations(settings, toolSchemesOf(all)));
  const { loops, badFiles, warnings } = await registerAll(registry, all);
  return {
    registry,
    loops,
    badFiles: distinctBadFiles([...loads.flatMap((load) => load.badFiles), ...badFiles]),
    warnings,
  };
}

/** A file that was named and is also in its directory counts once; a module may hold several loops. */
function deduplicateLoops(found: readonly FoundDefinition[]): readonly FoundDefinition[] {
  const known = new Map(found.map((item) => [`${item.file}\n${'name' in item ? item.name : ''}`, item]));
  return [...known.values()];
}

function distinctBadFiles(bad: readonly BadFile[]): readonly BadFile[] {
  return [...new Map(bad.map((item) => [JSON.stringify(item), item])).values()];
}

async function registerAll(
  registry: Registry,
  all: readonly FoundDefinition[],
): Promise<Omit<Definitions, 'registry'>> {
  const found: Definitions['loops'][number][] = [];
  const bad: BadFile[] = [];
  const warnings: FileWarning[] = [];
  for (const item of all) {
    try {
      const definition = 'definition' in item ? item.definition : item.code;
      const registered = registry.add(definition, item.origin);
      found.push({ file: item.file, registered });
      if (registered.warnings.length > 0) warnings.push(...(await locateWarnings(item, registered)));
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      bad.push(...(await locateRejection(item, thrown)));
    }
  }
  return { loops: found, badFiles: bad, warnings };
}

/** What the registry refused, with the line of the file that it is about. */
async function locateRejection(item: FoundDefinition, error: LoopError): Promise<readonly BadFile[]> {
  const { file } = item;
  const { path = '', reason = error.message } = (error.data ?? {}) as { path?: string; reason?: string };
  // A schema's path begins with where its definition stands, for people.
  const pointer = /: (\/(?:input|output)Schema.*)$/s.exec(path)?.[1] ?? path;
  if (!('definition' in item)) return [{ file, reason: `${item.name}: ${error.message}` }];
  return locateInFile(file, [{ path: pointer, reason }]);
}

/** What is odd about a definition, with the lines of its file if it is a document. */
async function locateWarnings(item: FoundDefinition, { warnings }: RegisteredLoop): Promise<readonly FileWarning[]> {
  const flaws = warnings.map(({ path, reason }) => ({ path, reason }));
  const places = 'definition' in item ? await locateInFile(item.file, flaws) : [];
  return warnings.map((warning, index) => ({ file: item.file, ...places[index], ...warning }));
}

/** Parts of a document, with the lines that they are in. */
async function locateInFile(
  file: string,
  flaws: readonly { readonly path: string; readonly reason: string }[],
): Promise<readonly BadFile[]> {
  const { parseDefinitionText } = await import('../adapters/files/parse-definition.js');
  const judged = parseDefinitionText(file, await readFile(file, 'utf8').catch(() => ''), () => {
    throw new LoopError('DEFINITION_INVALID', '', { flaws: flaws.map((flaw) => ({ ...flaw })) });
  });
  return 'badFiles' in judged ? judged.badFiles : flaws.map((flaw) => ({ file, ...flaw }));
}

/** Backends that definitions name and that neither Rondo nor the config has. */
export async function findUnknownBackends(
  settings: ProjectSettings,
  { loops }: Definitions,
): Promise<readonly BadFile[]> {
  const [{ backendsOf }, { nearestWord }, known] = await Promise.all([
    import('../loops/definition/backends.js'),
    import('../base/nearest-word.js'),
    loadBackends(settings),
  ]);
  const ids = [...known.keys()];
  const bad = loops.map(
    ({ file, registered: { definition, definedLoop } }): readonly BadFile[] | Promise<readonly BadFile[]> => {
      // An agent in code may have been given its model, which is no backend by id.
      const named = backendsOf(definition).filter(
        ({ path }) => definedLoop?.model === undefined || path.startsWith('/policy/'),
      );
      const flaws = named.flatMap(({ id, path }) => {
        if (known.has(id)) return [];
        const meant = nearestWord(id, ids);
        const hint = meant === undefined ? `there are ${ids.join(', ')}` : `did you mean "${meant}"?`;
        return [{ path, reason: `names the backend "${id}", which does not exist; ${hint}` }];
      });
      if (flaws.length === 0) return [];
      return definedLoop === undefined
        ? locateInFile(file, flaws)
        : flaws.map(({ path, reason }) => ({ file, path, reason }));
    },
  );
  return (await Promise.all(bad)).flat();
}

/** The environment, and what of it may be sent where. */
interface ToolAdapterOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly permits: Permits;
}

/** How each kind of tool is loaded. Some take long, so a registry gets only those that its definitions name. */
const TOOL_LOADERS = new Map<string, (options: ToolAdapterOptions) => Promise<ToolImplementation>>([
  ['builtin', async () => (await import('../adapters/tools/builtin.js')).builtinTools()],
  ['exec', async ({ environment }) => (await import('../adapters/tools/exec.js')).execTools({ environment })],
  ['module', async () => (await import('../adapters/tools/module.js')).moduleTools()],
  ['http', async (options) => (await import('../adapters/tools/http.js')).httpTools(options)],
  ['toolbox', async () => (await import('../adapters/toolbox/implementation.js')).toolboxTools()],
  ['https', async (options) => (await import('../adapters/tools/http.js')).httpsTools(options)],
]);

async function loadToolImplementations({ env, authority }: Settings, schemes: Iterable<string> = TOOL_LOADERS.keys()) {
  const options = { environment: { ...env }, permits: permitsOf(env, authority) };
  const loads = [...schemes].flatMap((scheme) => TOOL_LOADERS.get(scheme)?.(options) ?? []);
  const all = await Promise.all(loads);
  return new Map(all.map((implementation) => [implementation.scheme, implementation]));
}

/** The kinds of tools that definitions name; all that there are if one of them is unknown, so that it is told of them. */
function toolSchemesOf(found: readonly FoundDefinition[]): Iterable<string> {
  const schemes = new Set(
    found.flatMap((item) => {
      const { tool } = ('definition' in item ? item.definition : item.code) as { tool?: Partial<ToolSpec> };
      return typeof tool?.implementation === 'string' ? [tool.implementation.split(':', 1)[0] ?? ''] : [];
    }),
  );
  return [...schemes].every((scheme) => TOOL_LOADERS.has(scheme)) ? schemes : TOOL_LOADERS.keys();
}

async function loadBackends({ env, config, authority }: ProjectSettings): Promise<ReadonlyMap<string, ModelProvider>> {
  const { anthropicBackend, mockBackend, openaiBackend, openaiCompatibleBackend, scriptedBackend } = await import(
    '../adapters/models/index.js'
  );
  const permits = permitsOf(env, authority);
  const settings = { env, permits };
  const general = openaiCompatibleBackend(settings);
  const own = [mockBackend(), scriptedBackend(), openaiBackend(settings), anthropicBackend(settings), general];
  const all = new Map(own.map((backend) => [backend.id, backend]));
  const trusted = config.file !== undefined && trustPredicateOf(authority)(dirname(config.file));
  for (const [id, server] of config.backends) {
    if (all.has(id)) throw new UsageError(`${config.file}: [backends.${id}] is built in; choose another name.`);
    const open = openConfiguredBackend(general, id, server, (variable, url) => permits.canSend(variable, url), trusted);
    all.set(id, { id, defaultModel: server.model ?? '', open });
  }
  return all;
}

/**
 * A server of the config. Its address holds for all definitions, and its key goes only where the operator permits it: also in
 * a trusted directory, the config by itself sends no variable anywhere.
 */
function openConfiguredBackend(
  general: ModelProvider,
  id: string,
  { baseURL, apiKeyEnv }: CustomBackend,
  maySend: Permits['canSend'],
  trusted: boolean,
): ModelProvider['open'] {
  const options = { baseURL, ...(apiKeyEnv !== undefined && { apiKeyEnv }) };
  const refused = (message: string): LoopError => new LoopError('BACKEND_FAILED', message, { retryable: false });
  return async (ref, asking) => {
    if (Object.keys(ref.options ?? {}).length > 0) {
      throw refused(`The backend '${id}' takes no options: its address and its key stand in the config.`);
    }
    const url = new URL(baseURL);
    // guard: config-key-variable-permitted
    if (apiKeyEnv !== undefined && !maySend(apiKeyEnv, url)) {
      throw refused(`The backend '${id}' of the config ${sendRefusal(apiKeyEnv, url)}.`);
    }
    return general.open({ ...ref, options }, { ...asking, origin: { ...asking.origin, trusted } });
  };
}

/** The store of the settings, shared with the processes that have it open; a Fault says why it cannot be used. */
async function openStore(
  { store }: Settings,
  { createIfMissing = true, notify }: Pick<ComposeOptions, 'createIfMissing' | 'notify'>,
  now: () => number,
): Promise<Pick<ComposedHost, 'store' | 'isDurable' | 'maintenance'>> {
  const left = (path: string): boolean => [path, `${path}.anchor`, `${path}-wal`].some((file) => existsSync(file));
  if (store.kind === 'memory' || !(createIfMissing || left(store.path))) {
    const { memoryStore } = await import('../adapters/memory/index.js');
    return { store: memoryStore(), isDurable: false, maintenance: undefined };
  }
  const { openSqlite } = await import('../adapters/sqlite/index.js');
  const opened = await openSqlite(store.path, { now, ...(notify && { notify }) });
  return { store: opened, isDurable: true, maintenance: opened.maintenance };
}

async function createClock({ clockStartAt }: Settings): Promise<HostOptions['clock']> {
  const { systemClock } = await import('../adapters/system/index.js');
  if (clockStartAt === undefined) return systemClock;
  const ahead = clockStartAt - systemClock.now();
  return { ...systemClock, now: () => systemClock.now() + ahead };
}

/** Ids of a seed take in what the store holds: a second invocation with the same seed must not repeat the first's. */
async function createIds({ seed }: Settings, store: HostOptions['store']): Promise<HostOptions['ids']> {
  if (seed === undefined) return (await import('../adapters/system/index.js')).systemIds;
  const { seededRandom } = await import('../adapters/system/seeded-ids.js');
  const sessions = await store.journal.list();
  const entries = sessions.reduce((sum, { nextSeq }) => sum + nextSeq, 0);
  const mixed = fnv1a(`${seed}:${sessions.length}:${entries}`);
  const draw = seededRandom(mixed ^ 0x5bd1e995);
  const word = (): string =>
    Math.floor(draw() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return { random: seededRandom(mixed), id: () => word() + word() + word() + word() };
}

/** A text as 32 bits (FNV-1a). */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of Buffer.from(text)) hash = Math.imul(hash ^ character, 0x01000193);
  return hash >>> 0;
}

/** A host on the store of the settings, with all definitions, backends and tools. */
export async function composeHost(settings: ProjectSettings, parts: ComposeOptions = {}): Promise<ComposedHost> {
  const { definitions = await loadLoops(settings) } = parts;
  protectDataDirectory(settings.dataDirectory);
  const [{ Host }, models, implementations, clock] = await Promise.all([
    import('../host/host.js'),
    loadBackends(settings),
    loadToolImplementations(settings),
    createClock(settings),
  ]);
  const { store, isDurable, maintenance } = await openStore(settings, parts, clock.now);
  try {
    if (isDurable) await markDataDirectory(settings.dataDirectory, settings.cwd);
    const { registry, badFiles } = definitions;
    const ids = await createIds(settings, store);
    const trusts = recordedTrustPredicate(settings);
    const host = new Host({ store, clock, ids, registry, backends: models, implementations, trusts });
    return {
      host,
      registry,
      badFiles,
      config: settings.config,
      store,
      isDurable,
      maintenance,
      close: () => store.close(),
    };
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}

/** Whether commands of the toolbox can be sandboxed on this machine: undefined, or why not. */
export async function sandboxUnavailableReason(): Promise<string | undefined> {
  const { probeSandbox } = await import('../adapters/toolbox/sandbox.js');
  const found = await probeSandbox();
  return 'problem' in found ? found.problem : undefined;
}

/** What the conformance suite is run with: nothing outside of this process. */
export async function conformanceDeps() {
  const [{ mockBackend }, { builtinTools }, { systemClock: clock, systemIds: ids }] = await Promise.all([
    import('../adapters/models/mock.js'),
    import('../adapters/tools/builtin.js'),
    import('../adapters/system/index.js'),
  ]);
  return { clock, ids, backends: [mockBackend()], implementations: [builtinTools()] };
}

/** A JSON text as a value; what is thrown has a message and, where known, a `place`. */
export async function parseJson(text: string): Promise<unknown> {
  return (await import('../adapters/files/parse-json.js')).parseJson(text);
}
