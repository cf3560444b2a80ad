/** Composes a host from the settings. Only this file and those in compose/ pick adapters. */
import { dirname } from 'node:path';
import type { BadFile, ProjectConfig } from '../adapters/files/index.js';
import type { Host } from '../host/host.js';
import type { Registry } from '../loops/registry.js';
import { type TrustPredicate, trustPredicateOf } from './authority.js';
import {
  createClock,
  createIds,
  loadProviders,
  loadToolImplementations,
  type OpenedStore,
  openStore,
  type StoreOptions,
} from './compose/adapters.js';
import { type Definitions, loadLoops } from './compose/project-loops.js';
import type { ProjectSettings } from './compose/project-settings.js';
import { markDataDirectory, protectDataDirectory } from './data-directory.js';
import type { Settings } from './settings.js';

export type { BadFile, ProjectConfig } from '../adapters/files/index.js';
export type { Damage, Incident, Maintenance, MaintenanceLog, VerifyCursor } from '../adapters/sqlite/index.js';
export {
  type Definitions,
  emptyDefinitions,
  type FileWarning,
  findUnknownBackends,
  loadLoops,
} from './compose/project-loops.js';
export { loadSettings, type ProjectSettings, readOperatorFile, writeOperatorFile } from './compose/project-settings.js';

/** A host with all that belongs to it. */
export interface ComposedHost extends OpenedStore {
  readonly host: Host;
  readonly registry: Registry;
  readonly badFiles: readonly BadFile[];
  readonly config: ProjectConfig;
  close(): Promise<void>;
}

export interface ComposeOptions extends StoreOptions {
  /** Definitions that were loaded before; they are loaded unless given. */
  readonly definitions?: Definitions;
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

/** A host on the store of the settings, with all definitions, backends and tools. */
export async function composeHost(settings: ProjectSettings, parts: ComposeOptions = {}): Promise<ComposedHost> {
  const { definitions = await loadLoops(settings) } = parts;
  protectDataDirectory(settings.dataDirectory);
  const [{ Host }, models, implementations, clock] = await Promise.all([
    import('../host/host.js'),
    loadProviders(settings),
    loadToolImplementations(settings),
    createClock(settings),
  ]);
  const { store, isDurable, maintenance } = await openStore(settings, parts, clock.now);
  try {
    if (isDurable) await markDataDirectory(settings.dataDirectory, settings.cwd);
    const { registry, badFiles } = definitions;
    const ids = await createIds(settings, store);
    const trusts = recordedTrustPredicate(settings);
    const host = new Host({ store, clock, ids, registry, providers: models, implementations, trusts });
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
  const [{ mockProvider }, { builtinTools }, { systemClock: clock, systemIds: ids }] = await Promise.all([
    import('../adapters/models/mock.js'),
    import('../adapters/tools/builtin.js'),
    import('../adapters/system/index.js'),
  ]);
  return { clock, ids, providers: [mockProvider()], implementations: [builtinTools()] };
}

/** A JSON text as a value; what is thrown has a message and, where known, a `place`. */
export async function parseJson(text: string): Promise<unknown> {
  return (await import('../adapters/files/parse-json.js')).parseJson(text);
}
