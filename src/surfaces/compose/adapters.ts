/** Picks the adapters that the settings ask for, and loads each when it is needed: a verb that opens no store loads none. */
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { CustomBackend, FoundDefinition } from '../../adapters/files/index.js';
import type { Maintenance } from '../../adapters/sqlite/index.js';
import { LoopError } from '../../base/errors.js';
import { type Permits, permitsOf, sendRefusal } from '../../base/permits.js';
import type { HostOptions } from '../../host/host.js';
import type { ModelProvider } from '../../loops/model.js';
import type { ToolImplementation } from '../../loops/tool-implementation.js';
import type { ToolSpec } from '../../protocol/loop.js';
import { trustPredicateOf } from '../authority.js';
import { type Settings, UsageError } from '../settings.js';
import type { ProjectSettings } from './project-settings.js';

export interface StoreOptions {
  /** Whether to create a store that does not exist; without it, nothing is left behind on the disk. @default true */
  readonly createIfMissing?: boolean;
  /** Receives a sentence for the operator when another process has not answered for five seconds. */
  readonly notify?: (message: string) => void;
}

export interface OpenedStore {
  readonly store: HostOptions['store'];
  /** Whether the store outlives the process. */
  readonly isDurable: boolean;
  /** The maintenance of a store that outlives the process. */
  readonly maintenance: Maintenance | undefined;
}

/** The environment, and what of it may be sent where. */
interface ToolAdapterOptions {
  readonly environment: NodeJS.ProcessEnv;
  readonly permits: Permits;
}

/** How each kind of tool is loaded. Some take long, so a registry gets only those that its definitions name. */
const TOOL_LOADERS = new Map<string, (options: ToolAdapterOptions) => Promise<ToolImplementation>>([
  ['builtin', async () => (await import('../../adapters/tools/builtin.js')).builtinTools()],
  ['exec', async ({ environment }) => (await import('../../adapters/tools/exec.js')).execTools({ environment })],
  ['module', async () => (await import('../../adapters/tools/module.js')).moduleTools()],
  ['http', async (options) => (await import('../../adapters/tools/http.js')).httpTools(options)],
  ['toolbox', async () => (await import('../../adapters/toolbox/implementation.js')).toolboxTools()],
  ['https', async (options) => (await import('../../adapters/tools/http.js')).httpsTools(options)],
]);

export async function loadToolImplementations(
  { env, authority }: Settings,
  schemes: Iterable<string> = TOOL_LOADERS.keys(),
) {
  const options = { environment: { ...env }, permits: permitsOf(env, authority) };
  const loads = [...schemes].flatMap((scheme) => TOOL_LOADERS.get(scheme)?.(options) ?? []);
  const all = await Promise.all(loads);
  return new Map(all.map((implementation) => [implementation.scheme, implementation]));
}

/** The kinds of tools that definitions name; all that there are if one of them is unknown, so that it is told of them. */
export function toolSchemesOf(found: readonly FoundDefinition[]): Iterable<string> {
  const schemes = new Set(
    found.flatMap((item) => {
      const { tool } = ('definition' in item ? item.definition : item.code) as { tool?: Partial<ToolSpec> };
      return typeof tool?.implementation === 'string' ? [tool.implementation.split(':', 1)[0] ?? ''] : [];
    }),
  );
  return [...schemes].every((scheme) => TOOL_LOADERS.has(scheme)) ? schemes : TOOL_LOADERS.keys();
}

export async function loadProviders({
  env,
  config,
  authority,
}: ProjectSettings): Promise<ReadonlyMap<string, ModelProvider>> {
  const { anthropicProvider, mockProvider, openaiProvider, openaiCompatibleProvider, scriptedProvider } = await import(
    '../../adapters/models/index.js'
  );
  const permits = permitsOf(env, authority);
  const settings = { env, permits };
  const general = openaiCompatibleProvider(settings);
  const own = [mockProvider(), scriptedProvider(), openaiProvider(settings), anthropicProvider(settings), general];
  const all = new Map(own.map((backend) => [backend.id, backend]));
  const trusted = config.file !== undefined && trustPredicateOf(authority)(dirname(config.file));
  for (const [id, server] of config.backends) {
    if (all.has(id)) throw new UsageError(`${config.file}: [backends.${id}] is built in; choose another name.`);
    const open = openConfiguredProvider(
      general,
      id,
      server,
      (variable, url) => permits.canSend(variable, url),
      trusted,
    );
    all.set(id, { id, defaultModel: server.model ?? '', open });
  }
  return all;
}

/**
 * A server of the config. Its address holds for all definitions, and its key goes only where the operator permits it: also in
 * a trusted directory, the config by itself sends no variable anywhere.
 */
function openConfiguredProvider(
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
export async function openStore(
  { store }: Settings,
  { createIfMissing = true, notify }: StoreOptions,
  now: () => number,
): Promise<OpenedStore> {
  const left = (path: string): boolean => [path, `${path}.anchor`, `${path}-wal`].some((file) => existsSync(file));
  if (store.kind === 'memory' || !(createIfMissing || left(store.path))) {
    const { memoryStore } = await import('../../adapters/memory/index.js');
    return { store: memoryStore(), isDurable: false, maintenance: undefined };
  }
  const { openSqlite } = await import('../../adapters/sqlite/index.js');
  const opened = await openSqlite(store.path, { now, ...(notify && { notify }) });
  return { store: opened, isDurable: true, maintenance: opened.maintenance };
}

export async function createClock({ clockStartAt }: Settings): Promise<HostOptions['clock']> {
  const { systemClock } = await import('../../adapters/system/index.js');
  if (clockStartAt === undefined) return systemClock;
  const ahead = clockStartAt - systemClock.now();
  return { ...systemClock, now: () => systemClock.now() + ahead };
}

/** Ids of a seed take in what the store holds: a second invocation with the same seed must not repeat the first's. */
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

/** A text as 32 bits (FNV-1a). */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of Buffer.from(text)) hash = Math.imul(hash ^ character, 0x01000193);
  return hash >>> 0;
}
