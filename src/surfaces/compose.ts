/**
 * Puts a host together. The only file that picks adapters, and it loads each when it is needed: a verb that opens no
 * store pays for none.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { BadFile, Config, CustomBackend, Found } from '../adapters/files/index.js';
import type { Maintenance } from '../adapters/sqlite/index.js';
import { LoopError } from '../base/errors.js';
import { type Permits, permitsOf, sendRefusal } from '../base/permits.js';
import type { Host, HostOptions } from '../host/host.js';
import type { Implementation } from '../loops/implementation.js';
import type { Backend } from '../loops/model.js';
import type { Registered, Registry } from '../loops/registry.js';
import type { ToolSpec } from '../protocol/loop.js';
import {
  assertOutside,
  authorityOf,
  isInside,
  operatorFileOf,
  type Remembered,
  realPathOf,
  type Trusts,
  trustOf,
} from './authority.js';
import { markData, protectData } from './data-directory.js';
import { type Asked, configNamed, placesNamed, type Settings, settle, UsageError } from './settings.js';

export type { BadFile, Config } from '../adapters/files/index.js';
export type { Damage, Incident, Maintenance, StoreRecord, VerifyCursor } from '../adapters/sqlite/index.js';

export type ProjectSettings = Settings<Config>;

/** Something that is odd about a file; `mistake` if it looks like one. */
export type FileWarning = BadFile & { readonly mistake: boolean };

/** The definitions of a project, as far as they are any good. */
export interface Definitions {
  readonly registry: Registry;
  readonly bad: readonly BadFile[];
  /** What is odd about files that were loaded. */
  readonly warnings: readonly FileWarning[];
  /** What each file gave, in the order of the names. */
  readonly found: readonly { readonly file: string; readonly registered: Registered }[];
}

/** A host with all that belongs to it. */
export interface Composed {
  readonly host: Host;
  readonly registry: Registry;
  readonly bad: readonly BadFile[];
  readonly config: Config;
  readonly store: HostOptions['store'];
  /** Whether the store outlives the process. */
  readonly durable: boolean;
  /** The maintenance of a store that outlives the process. */
  readonly maintenance: Maintenance | undefined;
  close(): Promise<void>;
}

export interface Parts {
  /** Definitions that were loaded before; they are loaded unless given. */
  readonly definitions?: Definitions;
  /** Whether a store that is not there is made; without it, nothing is left behind on the disk. */
  readonly make?: boolean;
  /** Receives a sentence for the operator when another process has not answered for five seconds. */
  readonly notify?: (message: string) => void;
}

/** The settings that hold for what was asked; CONFIG_INVALID or a UsageError says what is wrong. */
export async function settingsOf(asked: Asked): Promise<ProjectSettings> {
  const authority = authorityOf(asked, await rememberedFor(asked));
  const trusts = trustOf(authority);
  const named = configNamed(asked);
  let config = NO_CONFIG;
  if (named !== undefined || existsSync(join(asked.cwd, 'rondo.toml'))) {
    const { loadConfig } = await import('../adapters/files/config.js');
    const given = placesNamed(asked);
    const open = (['data', 'loops', 'store'] as const).filter((key) => !given[key]);
    config = await loadConfig(named, asked.cwd, { confined: (directory) => (trusts(directory) ? [] : open) });
  }
  const settings = settle(asked, config, authority);
  assertLoopsInside(settings, trusts);
  return settings;
}

const NO_CONFIG: Config = { file: undefined, prices: new Map(), backends: new Map() };

/** What the operator's own file says, if it is to be believed. */
export async function rememberedFor(asked: Asked): Promise<Remembered> {
  const file = operatorFileOf(asked.env);
  if (file === undefined || !existsSync(file)) return { directories: [], send: new Map(), destinations: [] };
  assertOutside(file, asked);
  return (await import('../adapters/files/operator.js')).loadOperatorFile(file);
}

/** Writes the operator's own file. */
export async function remember(file: string, content: Remembered): Promise<void> {
  await (await import('../adapters/files/operator.js')).saveOperatorFile(file, content);
}

/** The usual directory of definitions may be a link; in a project that is not trusted, not one that leads out of it. */
function assertLoopsInside({ loops, loopsNamed, cwd }: ProjectSettings, trusts: Trusts): void {
  const real = loopsNamed ? undefined : realPathOf(loops);
  if (real === undefined || isInside(realPathOf(cwd) ?? cwd, real) || trusts(cwd)) return;
  throw new UsageError(`${loops} is a link to ${real}, outside of ${cwd}, which is not trusted: use --loops ${real}.`);
}

/**
 * Trust in what a journal recorded. A clone may bring a journal whose definitions claim any directory, so their word counts
 * only if the operator trusts the directory of the journal itself.
 */
function recordedTrust({ store, authority }: Settings): Trusts {
  const trusts = trustOf(authority);
  // guard: journal-trust-needs-trusted-directory
  return store.kind === 'memory' || trusts(dirname(store.path)) ? trusts : () => false;
}

/** No definitions at all, for verbs that only look at what was recorded. */
export async function noDefinitions(): Promise<Definitions> {
  const { Registry } = await import('../loops/registry.js');
  return { registry: new Registry(), bad: [], warnings: [], found: [] };
}

/** The definitions of the project's directory, or of files and the directories they are in. */
export async function loadLoops(settings: Settings, files: readonly string[] = []): Promise<Definitions> {
  const [{ loadDefinitionFile, loadDefinitions }, { parseDefinition: parse }, { Registry }] = await Promise.all([
    import('../adapters/files/load.js'),
    import('../loops/definition/definition.js'),
    import('../loops/registry.js'),
  ]);
  const options = { parse, trusted: trustOf(settings.authority) };
  const absent = !settings.loopsNamed && !existsSync(settings.loops);
  const directories = files.length > 0 ? [...new Set(files.map(dirname))] : absent ? [] : [settings.loops];
  const loads = await Promise.all([
    ...files.map((file) => loadDefinitionFile(file, options)),
    ...directories.map((directory) => loadDefinitions(directory, options)),
  ]);
  const all = onePerFile(loads.flatMap(({ found }) => found));
  const registry = new Registry(await tools(settings, schemesOf(all)));
  const { found, bad, warnings } = await register(registry, all);
  return { registry, found, bad: distinct([...loads.flatMap((load) => load.bad), ...bad]), warnings };
}

/** A file that was named and is also in its directory counts once; a module may hold several loops. */
function onePerFile(found: readonly Found[]): readonly Found[] {
  const known = new Map(found.map((item) => [`${item.file}\n${'name' in item ? item.name : ''}`, item]));
  return [...known.values()];
}

function distinct(bad: readonly BadFile[]): readonly BadFile[] {
  return [...new Map(bad.map((item) => [JSON.stringify(item), item])).values()];
}

async function register(registry: Registry, all: readonly Found[]): Promise<Omit<Definitions, 'registry'>> {
  const found: Definitions['found'][number][] = [];
  const bad: BadFile[] = [];
  const warnings: FileWarning[] = [];
  for (const item of all) {
    try {
      const definition = 'definition' in item ? item.definition : item.code;
      const registered = registry.add(definition, item.origin);
      found.push({ file: item.file, registered });
      if (registered.warnings.length > 0) warnings.push(...(await warned(item, registered)));
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      bad.push(...(await placed(item, thrown)));
    }
  }
  return { found, bad, warnings };
}

/** What the registry refused, with the line of the file that it is about. */
async function placed(item: Found, error: LoopError): Promise<readonly BadFile[]> {
  const { file } = item;
  const { path = '', reason = error.message } = (error.data ?? {}) as { path?: string; reason?: string };
  // A schema's path begins with where its definition stands, for people.
  const pointer = /: (\/(?:input|output)Schema.*)$/s.exec(path)?.[1] ?? path;
  if (!('definition' in item)) return [{ file, reason: `${item.name}: ${error.message}` }];
  return located(file, [{ path: pointer, reason }]);
}

/** What is odd about a definition, with the lines of its file if it is a document. */
async function warned(item: Found, { warnings }: Registered): Promise<readonly FileWarning[]> {
  const flaws = warnings.map(({ path, reason }) => ({ path, reason }));
  const places = 'definition' in item ? await located(item.file, flaws) : [];
  return warnings.map((warning, index) => ({ file: item.file, ...places[index], ...warning }));
}

/** Parts of a document, with the lines that they are in. */
async function located(
  file: string,
  flaws: readonly { readonly path: string; readonly reason: string }[],
): Promise<readonly BadFile[]> {
  const { judgeText } = await import('../adapters/files/document.js');
  const judged = judgeText(file, await readFile(file, 'utf8').catch(() => ''), () => {
    throw new LoopError('DEFINITION_INVALID', '', { flaws: flaws.map((flaw) => ({ ...flaw })) });
  });
  return 'bad' in judged ? judged.bad : flaws.map((flaw) => ({ file, ...flaw }));
}

/** Backends that definitions name and that neither Rondo nor the config has. */
export async function unknownBackends(settings: ProjectSettings, { found }: Definitions): Promise<readonly BadFile[]> {
  const [{ backendsOf }, { nearest }, known] = await Promise.all([
    import('../loops/definition/backends.js'),
    import('../base/nearest.js'),
    backends(settings),
  ]);
  const ids = [...known.keys()];
  const bad = found.map(
    ({ file, registered: { definition, code } }): readonly BadFile[] | Promise<readonly BadFile[]> => {
      // An agent in code may have been given its model, which is no backend by id.
      const named = backendsOf(definition).filter(
        ({ path }) => code?.model === undefined || path.startsWith('/policy/'),
      );
      const flaws = named.flatMap(({ id, path }) => {
        if (known.has(id)) return [];
        const meant = nearest(id, ids);
        const hint = meant === undefined ? `there are ${ids.join(', ')}` : `did you mean "${meant}"?`;
        return [{ path, reason: `names the backend "${id}", which does not exist; ${hint}` }];
      });
      if (flaws.length === 0) return [];
      return code === undefined ? located(file, flaws) : flaws.map(({ path, reason }) => ({ file, path, reason }));
    },
  );
  return (await Promise.all(bad)).flat();
}

/** The environment, and what of it may be sent where. */
interface Permitted {
  readonly environment: NodeJS.ProcessEnv;
  readonly permits: Permits;
}

/** How each kind of tool is loaded. Some take long, so a registry gets only those that its definitions name. */
const TOOLS = new Map<string, (options: Permitted) => Promise<Implementation>>([
  ['builtin', async () => (await import('../adapters/tools/builtin.js')).builtinTools()],
  ['exec', async ({ environment }) => (await import('../adapters/tools/exec.js')).execTools({ environment })],
  ['module', async () => (await import('../adapters/tools/module.js')).moduleTools()],
  ['http', async (options) => (await import('../adapters/tools/http.js')).httpTools(options)],
  ['toolbox', async () => (await import('../adapters/toolbox/implementation.js')).toolboxTools()],
  ['https', async (options) => (await import('../adapters/tools/http.js')).httpsTools(options)],
]);

async function tools({ env, authority }: Settings, schemes: Iterable<string> = TOOLS.keys()) {
  const options = { environment: { ...env }, permits: permitsOf(env, authority) };
  const loads = [...schemes].flatMap((scheme) => TOOLS.get(scheme)?.(options) ?? []);
  const all = await Promise.all(loads);
  return new Map(all.map((implementation) => [implementation.scheme, implementation]));
}

/** The kinds of tools that definitions name; all that there are if one of them is unknown, so that it is told of them. */
function schemesOf(found: readonly Found[]): Iterable<string> {
  const schemes = new Set(
    found.flatMap((item) => {
      const { tool } = ('definition' in item ? item.definition : item.code) as { tool?: Partial<ToolSpec> };
      return typeof tool?.implementation === 'string' ? [tool.implementation.split(':', 1)[0] ?? ''] : [];
    }),
  );
  return [...schemes].every((scheme) => TOOLS.has(scheme)) ? schemes : TOOLS.keys();
}

async function backends({ env, config, authority }: ProjectSettings): Promise<ReadonlyMap<string, Backend>> {
  const { anthropicBackend, mockBackend, openaiBackend, openaiCompatibleBackend, scriptedBackend } = await import(
    '../adapters/models/index.js'
  );
  const permits = permitsOf(env, authority);
  const settings = { env, permits };
  const general = openaiCompatibleBackend(settings);
  const own = [mockBackend(), scriptedBackend(), openaiBackend(settings), anthropicBackend(settings), general];
  const all = new Map(own.map((backend) => [backend.id, backend]));
  const trusted = config.file !== undefined && trustOf(authority)(dirname(config.file));
  for (const [id, server] of config.backends) {
    if (all.has(id)) throw new UsageError(`${config.file}: [backends.${id}] is built in; choose another name.`);
    const open = openAt(general, id, server, (variable, url) => permits.maySend(variable, url), trusted);
    all.set(id, { id, defaultModel: server.model ?? '', open });
  }
  return all;
}

/**
 * A server of the config. Its address holds for all definitions, and its key goes only where the operator permits it: also in
 * a trusted directory, the config by itself sends no variable anywhere.
 */
function openAt(
  general: Backend,
  id: string,
  { baseURL, apiKeyEnv }: CustomBackend,
  maySend: Permits['maySend'],
  trusted: boolean,
): Backend['open'] {
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
  { make = true, notify }: Pick<Parts, 'make' | 'notify'>,
  now: () => number,
): Promise<Pick<Composed, 'store' | 'durable' | 'maintenance'>> {
  const left = (path: string): boolean => [path, `${path}.anchor`, `${path}-wal`].some((file) => existsSync(file));
  if (store.kind === 'memory' || !(make || left(store.path))) {
    const { memoryStore } = await import('../adapters/memory/index.js');
    return { store: memoryStore(), durable: false, maintenance: undefined };
  }
  const { openSqlite } = await import('../adapters/sqlite/index.js');
  const opened = await openSqlite(store.path, { now, ...(notify && { notify }) });
  return { store: opened, durable: true, maintenance: opened.maintenance };
}

async function clockOf({ now }: Settings): Promise<HostOptions['clock']> {
  const { systemClock } = await import('../adapters/system/index.js');
  if (now === undefined) return systemClock;
  const ahead = now - systemClock.now();
  return { ...systemClock, now: () => systemClock.now() + ahead };
}

/** Ids of a seed take in what the store holds: a second invocation with the same seed must not repeat the first's. */
async function idsOf({ seed }: Settings, store: HostOptions['store']): Promise<HostOptions['ids']> {
  if (seed === undefined) return (await import('../adapters/system/index.js')).systemIds;
  const { seededRandom } = await import('../adapters/system/seeded-ids.js');
  const sessions = await store.journal.list();
  const entries = sessions.reduce((sum, { next }) => sum + next, 0);
  const mixed = fold(`${seed}:${sessions.length}:${entries}`);
  const draw = seededRandom(mixed ^ 0x5bd1e995);
  const word = (): string =>
    Math.floor(draw() * 2 ** 32)
      .toString(16)
      .padStart(8, '0');
  return { random: seededRandom(mixed), id: () => word() + word() + word() + word() };
}

/** A text as 32 bits (FNV-1a). */
function fold(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of Buffer.from(text)) hash = Math.imul(hash ^ character, 0x01000193);
  return hash >>> 0;
}

/** A host on the store of the settings, with all definitions, backends and tools. */
export async function compose(settings: ProjectSettings, parts: Parts = {}): Promise<Composed> {
  const { definitions = await loadLoops(settings) } = parts;
  protectData(settings.data);
  const [{ Host }, models, implementations, clock] = await Promise.all([
    import('../host/host.js'),
    backends(settings),
    tools(settings),
    clockOf(settings),
  ]);
  const { store, durable, maintenance } = await openStore(settings, parts, clock.now);
  try {
    if (durable) await markData(settings.data, settings.cwd);
    const { registry, bad } = definitions;
    const ids = await idsOf(settings, store);
    const trusts = recordedTrust(settings);
    const host = new Host({ store, clock, ids, registry, backends: models, implementations, trusts });
    return { host, registry, bad, config: settings.config, store, durable, maintenance, close: () => store.close() };
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}

/** Whether commands of the toolbox can be sandboxed on this machine: undefined, or why not. */
export async function sandboxFlaw(): Promise<string | undefined> {
  const { usable } = await import('../adapters/toolbox/sandbox.js');
  const found = await usable();
  return 'flaw' in found ? found.flaw : undefined;
}

/** What the conformance suite is run with: nothing outside of this process. */
export async function suiteParts() {
  const [{ mockBackend }, { builtinTools }, { systemClock: clock, systemIds: ids }] = await Promise.all([
    import('../adapters/models/mock.js'),
    import('../adapters/tools/builtin.js'),
    import('../adapters/system/index.js'),
  ]);
  return { clock, ids, backends: [mockBackend()], implementations: [builtinTools()] };
}

/** A JSON text as a value; what is thrown has a message and, where known, a `place`. */
export async function readJson(text: string): Promise<unknown> {
  return (await import('../adapters/files/json.js')).readJson(text);
}
