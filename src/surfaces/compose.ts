/**
 * Puts a host together. The only file that picks adapters, and it loads each when it is needed: a verb that opens no
 * store pays for none.
 */
import { existsSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import type { BadFile, Config, Found } from '../adapters/files/index.js';
import type { Host, HostOptions } from '../host/host.js';
import { LoopError } from '../journal/errors.js';
import type { Implementation } from '../loops/implementation.js';
import type { Backend } from '../loops/model.js';
import type { Registered, Registry } from '../loops/registry.js';
import type { ToolSpec } from '../protocol/loop.js';
import { markData, protectData } from './data-directory.js';
import { type Asked, configNamed, type Settings, settle, UsageError } from './settings.js';

export type { BadFile, Config } from '../adapters/files/index.js';

export type ProjectSettings = Settings<Config>;

/** The definitions of a project, as far as they are any good. */
export interface Definitions {
  readonly registry: Registry;
  readonly bad: readonly BadFile[];
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
  const named = configNamed(asked);
  const lost = asked.flags.trust?.find((directory) => trueOf(resolve(asked.cwd, directory)) === undefined);
  if (lost !== undefined) throw new UsageError(`--trust ${lost}: there is no such directory.`);
  if (named === undefined && !existsSync(join(asked.cwd, 'rondo.toml'))) return settle(asked, NO_CONFIG);
  const { loadConfig } = await import('../adapters/files/config.js');
  return settle(asked, await loadConfig(named, asked.cwd));
}

const NO_CONFIG: Config = { file: undefined, trusted: [], prices: new Map(), backends: new Map() };

/** Whether the operator trusts a directory to run code: it is one of those named, or inside one; links are followed. */
export function trustOf({ trusted }: Settings): (directory: string | undefined) => boolean {
  const places = trusted.flatMap((directory) => trueOf(directory) ?? []);
  const inside = (place: string, directory: string): boolean => {
    const way = relative(place, directory);
    return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
  };
  return (directory) => {
    const real = directory === undefined ? undefined : trueOf(directory);
    return real !== undefined && places.some((place) => inside(place, real));
  };
}

function trueOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

/** No definitions at all, for verbs that only look at what was recorded. */
export async function noDefinitions(): Promise<Definitions> {
  const { Registry } = await import('../loops/registry.js');
  return { registry: new Registry(), bad: [], found: [] };
}

/** The definitions of the project's directory, or of files and the directories they are in. */
export async function loadLoops(settings: Settings, files: readonly string[] = []): Promise<Definitions> {
  const [{ loadDefinitionFile, loadDefinitions }, { parseDefinition: parse }, { Registry }] = await Promise.all([
    import('../adapters/files/load.js'),
    import('../loops/definition/definition.js'),
    import('../loops/registry.js'),
  ]);
  const options = { parse, trusted: trustOf(settings) };
  const absent = !settings.loopsNamed && !existsSync(settings.loops);
  const directories = files.length > 0 ? [...new Set(files.map(dirname))] : absent ? [] : [settings.loops];
  const loads = await Promise.all([
    ...files.map((file) => loadDefinitionFile(file, options)),
    ...directories.map((directory) => loadDefinitions(directory, options)),
  ]);
  const all = onePerFile(loads.flatMap(({ found }) => found));
  const registry = new Registry(await tools(settings, schemesOf(all)));
  const { found, bad } = await register(registry, all);
  return { registry, found, bad: distinct([...loads.flatMap((load) => load.bad), ...bad]) };
}

/** A file that was named and is also in its directory counts once; a module may hold several loops. */
function onePerFile(found: readonly Found[]): readonly Found[] {
  const known = new Map(found.map((item) => [`${item.file}\n${'name' in item ? item.name : ''}`, item]));
  return [...known.values()];
}

function distinct(bad: readonly BadFile[]): readonly BadFile[] {
  return [...new Map(bad.map((item) => [JSON.stringify(item), item])).values()];
}

async function register(registry: Registry, all: readonly Found[]): Promise<Pick<Definitions, 'found' | 'bad'>> {
  const found: Definitions['found'][number][] = [];
  const bad: BadFile[] = [];
  for (const item of all) {
    try {
      const definition = 'definition' in item ? item.definition : item.code;
      found.push({ file: item.file, registered: registry.add(definition, item.origin) });
    } catch (thrown) {
      if (!(thrown instanceof LoopError)) throw thrown;
      bad.push(...(await placed(item, thrown)));
    }
  }
  return { found, bad };
}

/** What the registry refused, with the line of the file that it is about. */
async function placed(item: Found, error: LoopError): Promise<readonly BadFile[]> {
  const { file } = item;
  const { path = '', reason = error.message } = (error.data ?? {}) as { path?: string; reason?: string };
  // A schema's path begins with where its definition stands, for people.
  const pointer = /: (\/(?:input|output)Schema.*)$/s.exec(path)?.[1] ?? path;
  if (!('definition' in item)) return [{ file, reason: `${item.name}: ${error.message}` }];
  const { judgeText } = await import('../adapters/files/document.js');
  const judged = judgeText(file, await readFile(file, 'utf8').catch(() => ''), () => {
    throw new LoopError(error.code, error.message, { flaws: [{ path: pointer, reason }] });
  });
  return 'bad' in judged ? judged.bad : [{ file, reason }];
}

/** How each kind of tool is loaded. Some take long, so a registry gets only those that its definitions name. */
const TOOLS = new Map<string, (environment: NodeJS.ProcessEnv) => Promise<Implementation>>([
  ['builtin', async () => (await import('../adapters/tools/builtin.js')).builtinTools()],
  ['exec', async (environment) => (await import('../adapters/tools/exec.js')).execTools({ environment })],
  ['module', async () => (await import('../adapters/tools/module.js')).moduleTools()],
  ['http', async (environment) => (await import('../adapters/tools/http.js')).httpTools({ environment })],
  ['toolbox', async () => (await import('../adapters/toolbox/implementation.js')).toolboxTools()],
  ['https', async (environment) => (await import('../adapters/tools/http.js')).httpsTools({ environment })],
]);

async function tools({ env }: Settings, schemes: Iterable<string> = TOOLS.keys()) {
  const loads = [...schemes].flatMap((scheme) => TOOLS.get(scheme)?.({ ...env }) ?? []);
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

async function backends({ env, config }: ProjectSettings): Promise<ReadonlyMap<string, Backend>> {
  const { anthropicBackend, mockBackend, openaiBackend, openaiCompatibleBackend, scriptedBackend } = await import(
    '../adapters/models/index.js'
  );
  const general = openaiCompatibleBackend({ env });
  const own = [mockBackend(), scriptedBackend(), openaiBackend({ env }), anthropicBackend({ env }), general];
  const all = new Map(own.map((backend) => [backend.id, backend]));
  for (const [id, { baseURL, apiKeyEnv, model = '' }] of config.backends) {
    if (all.has(id)) throw new UsageError(`${config.file}: [backends.${id}] is built in; choose another name.`);
    const options = { baseURL, ...(apiKeyEnv !== undefined && { apiKeyEnv }) };
    all.set(id, { id, defaultModel: model, open: openAt(general, id, options) });
  }
  return all;
}

/** A server of the config: the operator named its address, so a definition may not send the key anywhere else. */
function openAt(general: Backend, id: string, options: { readonly [name: string]: string }): Backend['open'] {
  return (ref, asking) => {
    if (Object.keys(ref.options ?? {}).length > 0) {
      const message = `The backend '${id}' takes no options: its address and its key stand in the config.`;
      throw new LoopError('BACKEND_FAILED', message, { retryable: false });
    }
    return general.open({ ...ref, options }, { ...asking, origin: { ...asking.origin, trusted: true } });
  };
}

/** The store of the settings, shared with the processes that have it open; a Fault says why it cannot be used. */
async function openStore(
  { store }: Settings,
  { make = true, notify }: Pick<Parts, 'make' | 'notify'>,
  now: () => number,
): Promise<Pick<Composed, 'store' | 'durable'>> {
  const left = (path: string): boolean => [path, `${path}.anchor`, `${path}-wal`].some((file) => existsSync(file));
  if (store.kind === 'memory' || !(make || left(store.path))) {
    return { store: (await import('../adapters/memory/index.js')).memoryStore(), durable: false };
  }
  const { openSqlite } = await import('../adapters/sqlite/index.js');
  return { store: await openSqlite(store.path, { now, ...(notify && { notify }) }), durable: true };
}

async function clockOf({ now }: Settings): Promise<HostOptions['clock']> {
  const { systemClock } = await import('../adapters/system/index.js');
  if (now === undefined) return systemClock;
  const ahead = now - systemClock.now();
  return {
    now: () => systemClock.now() + ahead,
    sleep: (until, signal) => systemClock.sleep(until - ahead, signal),
  };
}

/** Ids of a seed take in what the store holds: a second invocation with the same seed must not repeat the first's. */
async function idsOf({ seed }: Settings, store: HostOptions['store']): Promise<HostOptions['ids']> {
  if (seed === undefined) return (await import('../adapters/system/index.js')).systemIds;
  const { seededRandom } = await import('../testing/seeded-ids.js');
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
  const { store, durable } = await openStore(settings, parts, clock.now);
  try {
    if (durable) await markData(settings.data, settings.cwd);
    const { registry, bad } = definitions;
    const ids = await idsOf(settings, store);
    const trusts = trustOf(settings);
    const host = new Host({ store, clock, ids, registry, backends: models, implementations, trusts });
    return { host, registry, bad, config: settings.config, store, durable, close: () => store.close() };
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
