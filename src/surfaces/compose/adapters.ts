/**
 * Creates the adapters that the settings select. Each is imported on demand, so that a verb loads only what it uses.
 */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CustomBackend, FoundDefinition, ProjectConfig } from '../../adapters/files/index.js';
import type { Maintenance } from '../../adapters/sqlite/index.js';
import { LoopError } from '../../base/errors.js';
import { type Permits, permitsOf, sendRefusal } from '../../base/permits.js';
import type { HostOptions } from '../../host/host.js';
import { storeKeyFileOf } from '../../journal/store-files.js';
import type { ModelProvider } from '../../loops/model.js';
import { builtInProviderIds } from '../../loops/model-ref.js';
import type { ToolImplementation } from '../../loops/tool-implementation.js';
import type { ToolSpec } from '../../protocol/loop.js';
import { trustPredicateOf } from '../authority.js';
import { type Settings, UsageError } from '../settings.js';
import type { ProjectSettings } from './project-settings.js';

/** Options of `openStore`. */
export interface StoreOptions {
  /**
   * True if a missing store is created. If false, an empty store in memory replaces it, and nothing is written to disk.
   * @default true
   */
  readonly createIfMissing?: boolean;
  /** Receives messages for the operator, such as that another process does not answer. */
  readonly notify?: (message: string) => void;
}

/** An open store. */
export interface OpenedStore {
  readonly store: HostOptions['store'];
  /** True if the store outlives the process. */
  readonly isDurable: boolean;
  /** Maintenance operations of a durable store. */
  readonly maintenance: Maintenance | undefined;
  /** Throws a Fault with the code KEYS_UNUSABLE if the store has a key that is not in its file any more. */
  assertKey(): void;
}

/** The environment variables, and the hosts to which each may be sent. */
interface ToolAdapterOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly permits: Permits;
}

/** The loader of each tool scheme. Some modules load slowly, so a registry gets only the schemes of its definitions. */
const TOOL_LOADERS = new Map<string, (options: ToolAdapterOptions) => Promise<ToolImplementation>>([
  ['builtin', async () => (await import('../../adapters/tools/builtin.js')).builtinTools()],
  ['exec', async ({ environment }) => (await import('../../adapters/tools/exec.js')).execTools({ environment })],
  ['module', async () => (await import('../../adapters/tools/module.js')).moduleTools()],
  ['http', async (options) => (await import('../../adapters/tools/http.js')).httpTools(options)],
  ['toolbox', async () => (await import('../../adapters/toolbox/implementation.js')).toolboxTools()],
  ['https', async (options) => (await import('../../adapters/tools/http.js')).httpsTools(options)],
]);

/** Loads the tool implementations of the schemes, by scheme. Unknown schemes are left out. */
export async function loadToolImplementations(
  { env, authority }: Settings,
  schemes: Iterable<string> = TOOL_LOADERS.keys(),
) {
  const options = { environment: { ...env }, permits: permitsOf(env, authority) };
  const loads = [...schemes].flatMap((scheme) => TOOL_LOADERS.get(scheme)?.(options) ?? []);
  const implementations = await Promise.all(loads);
  return new Map(implementations.map((implementation) => [implementation.scheme, implementation]));
}

/** Returns the tool schemes of definitions. If one is unknown, returns all schemes, so that the error can list them. */
export function toolSchemesOf(definitions: readonly FoundDefinition[]): Iterable<string> {
  const schemes = new Set(
    definitions.flatMap((item) => {
      const { tool } = ('definition' in item ? item.definition : item.code) as { tool?: Partial<ToolSpec> };
      return typeof tool?.implementation === 'string' ? [tool.implementation.split(':', 1)[0] ?? ''] : [];
    }),
  );
  return [...schemes].every((scheme) => TOOL_LOADERS.has(scheme)) ? schemes : TOOL_LOADERS.keys();
}

/** Returns the ids of the model providers: the built-in ones, and those of the project's config. Loads none. */
export function providerIdsOf({ backends }: Pick<ProjectConfig, 'backends'>): readonly string[] {
  return [...builtInProviderIds, ...backends.keys()];
}

/**
 * Loads the model providers: the built-in ones, and those of the project's config. Throws a UsageError if the config
 * uses the name of a built-in one.
 */
export async function loadProviders({
  env,
  config,
  authority,
}: ProjectSettings): Promise<ReadonlyMap<string, ModelProvider>> {
  const { anthropicProvider, mockProvider, openaiProvider, openaiCompatibleProvider, scriptedProvider } = await import(
    '../../adapters/models/index.js'
  );
  const permits = permitsOf(env, authority);
  const options = { env, permits };
  const compatible = openaiCompatibleProvider(options);
  const builtIn: { readonly [id in (typeof builtInProviderIds)[number]]: ModelProvider } = {
    anthropic: anthropicProvider(options),
    openai: openaiProvider(options),
    'openai-compatible': compatible,
    scripted: scriptedProvider(),
    mock: mockProvider(),
  };
  const providers = new Map<string, ModelProvider>(Object.entries(builtIn));
  const trusted = config.file !== undefined && trustPredicateOf(authority)(dirname(config.file));
  for (const [id, backend] of config.backends) {
    if (providers.has(id)) throw new UsageError(`${config.file}: [backends.${id}] is built in; choose another name.`);
    const open = openConfiguredProvider(
      compatible,
      id,
      backend,
      (variable, url) => permits.canSend(variable, url),
      trusted,
    );
    providers.set(id, { id, defaultModel: backend.model ?? '', open });
  }
  return providers;
}

/**
 * Returns the function that opens models on a server of the config. The address of the server is fixed; definitions
 * cannot change it. Its API key is sent only with the operator's permission: even in a trusted directory, the config
 * cannot send a variable anywhere.
 */
function openConfiguredProvider(
  compatible: ModelProvider,
  id: string,
  { baseURL, apiKeyEnv }: CustomBackend,
  canSend: Permits['canSend'],
  trusted: boolean,
): ModelProvider['open'] {
  const options = { baseURL, ...(apiKeyEnv !== undefined && { apiKeyEnv }) };
  const failure = (message: string): LoopError => new LoopError('BACKEND_FAILED', message, { retryable: false });
  return async (ref, request) => {
    if (Object.keys(ref.options ?? {}).length > 0) {
      throw failure(`The backend '${id}' takes no options: the config defines its address and its key.`);
    }
    const url = new URL(baseURL);
    // guard: config-key-variable-permitted
    if (apiKeyEnv !== undefined && !canSend(apiKeyEnv, url)) {
      throw failure(`The backend '${id}' of the config ${sendRefusal(apiKeyEnv, url)}.`);
    }
    return compatible.open({ ...ref, options }, { ...request, origin: { ...request.origin, trusted } });
  };
}

/** Opens the store of the settings, which several processes may share. Throws a Fault if it cannot be used. */
export async function openStore(
  { store }: Settings,
  { createIfMissing = true, notify }: StoreOptions,
  now: () => number,
): Promise<OpenedStore> {
  const exists = (path: string): boolean => [path, `${path}.anchor`, `${path}-wal`].some((file) => existsSync(file));
  if (store.kind === 'memory' || !(createIfMissing || exists(store.path))) {
    const { memoryStore } = await import('../../adapters/memory/index.js');
    return { store: memoryStore(), isDurable: false, maintenance: undefined, assertKey: () => {} };
  }
  const { openSqlite } = await import('../../adapters/sqlite/index.js');
  const opened = await openSqlite(store.path, { now, keyFile: storeKeyFileOf(store.path), ...(notify && { notify }) });
  const assertKey = (): void => opened.assertKey();
  return { store: opened, isDurable: true, maintenance: opened.maintenance, assertKey };
}

/** Returns the system clock, or for tests a clock whose wall clock starts at `clockStartAt`. */
export async function createClock({ clockStartAt }: Settings): Promise<HostOptions['clock']> {
  const { systemClock } = await import('../../adapters/system/index.js');
  if (clockStartAt === undefined) return systemClock;
  const offsetMs = clockStartAt - systemClock.now();
  return { ...systemClock, now: () => systemClock.now() + offsetMs };
}

/**
 * Returns random ids, or seeded ones. A seed is mixed with the size of the store, so that a second invocation gets new
 * ids.
 */
export async function createIds({ seed }: Settings, store: HostOptions['store']): Promise<HostOptions['ids']> {
  if (seed === undefined) return (await import('../../adapters/system/index.js')).systemIds;
  const { seededRandom } = await import('../../adapters/system/seeded-ids.js');
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

/** Returns the 32-bit FNV-1a hash of a text. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}
