/** Composes a host from the settings. Only this file and those in compose/ choose adapters. */
import { dirname } from 'node:path';
import type { BadFile, ProjectConfig } from '../adapters/files/index.js';
import type { Host } from '../host/host.js';
import type { Clock } from '../journal/clock.js';
import type { ModelProvider } from '../loops/model.js';
import type { Registry } from '../loops/registry.js';
import { isInside, realPathOf, type TrustPredicate, trustPredicateOf } from './authority.js';
import {
  createClock,
  createIds,
  loadProviders,
  loadToolImplementations,
  type OpenedStore,
  openStore,
  type StoreOptions,
} from './compose/adapters.js';
import { createContextFiles } from './compose/context-files.js';
import { type Definitions, loadLoops } from './compose/project-loops.js';
import type { ProjectSettings } from './compose/project-settings.js';
import { openReceiptKeys, openWitnesses } from './compose/receipt-keys.js';
import { markDataDirectory, protectDataDirectory } from './data-directory.js';

export type { DocumentReadError } from '../adapters/files/document-read-error.js';
export type { BadFile, HostedFile, ProjectConfig } from '../adapters/files/index.js';
export type { Damage, Incident, Maintenance, MaintenanceLog, VerifyCursor } from '../adapters/sqlite/index.js';
export { type CaseClock, createCaseClock } from './compose/case-clock.js';
export { type DefinitionFormat, readDefinitionFile, renderDefinition } from './compose/convert-definition.js';
export {
  assertStartable,
  findHostedLoopFile,
  type HostedLoopFile,
  listHostedLoopFiles,
  locatedStartError,
  readHostedLoopFile,
  unknownToolWarnings,
  untrustedDirectoryOf,
} from './compose/hosted-files.js';
export {
  type Definitions,
  emptyDefinitions,
  type FileWarning,
  loadLoops,
} from './compose/project-loops.js';
export { loadSettings, type ProjectSettings, readTrustFile, writeTrustFile } from './compose/project-settings.js';
export { loadVerifierKeys, openReceiptKeys, type StoredKeys } from './compose/receipt-keys.js';

/** A host with its store, registry and config. */
export interface ComposedHost extends OpenedStore {
  readonly host: Host;
  readonly registry: Registry;
  /** The definition files that could not be loaded. */
  readonly badFiles: readonly BadFile[];
  readonly config: ProjectConfig;
  /** Closes the store. */
  close(): Promise<void>;
}

/** Options of `composeHost`. */
interface ComposeOptions extends StoreOptions {
  /**
   * The definitions of the host.
   * @default the definitions of the project, loaded from its files
   */
  readonly definitions?: Definitions;
  /**
   * Opens every model in place of its provider, for tests.
   * @default every model is opened by its provider
   */
  readonly modelOverride?: ModelProvider;
  /**
   * The clock, for tests.
   * @default the clock of the settings
   */
  readonly clock?: Clock;
}

/**
 * Returns the predicate for definitions that a journal recorded. A cloned repository may contain a journal whose
 * definitions claim any directory. Their claims count only if the operator trusts the journal.
 */
function recordedTrustPredicate(settings: ProjectSettings): TrustPredicate {
  // guard: journal-trust-needs-trusted-directory
  return trustsJournal(settings) ? trustPredicateOf(settings.authority) : () => false;
}

/** True if the operator trusts the directory of a journal, or the definitions of the project beside it. */
function trustsJournal({ store, authority, loopsDirectory }: ProjectSettings): boolean {
  if (store.kind === 'memory') return true;
  const trusts = trustPredicateOf(authority);
  const directory = dirname(store.path);
  const [project, loops] = [realPathOf(dirname(directory)), realPathOf(loopsDirectory)];
  const isBeside = project !== undefined && loops !== undefined && isInside(project, loops) && trusts(loops);
  return isBeside || trusts(directory);
}

/**
 * Returns the directory of a journal that is not trusted, unless the operator or a trusted config chose its place; otherwise
 * undefined. The working directory may be a clone, which may ship one. Trust in the definitions of a project includes the
 * journal beside them.
 */
function untrustedJournalOf(settings: ProjectSettings): string | undefined {
  const { store, authority, hasExplicitStore, config } = settings;
  const { file, data = config.store } = config;
  const isChosen = hasExplicitStore || (data !== undefined && trustPredicateOf(authority)(file && dirname(file)));
  if (store.kind === 'memory' || isChosen) return undefined;
  // guard: journal-of-the-working-directory-needs-trust
  return trustsJournal(settings) ? undefined : dirname(store.path);
}

/** Creates a host on the store of the settings, with the definitions and all model providers and tools. */
export async function composeHost(settings: ProjectSettings, options: ComposeOptions = {}): Promise<ComposedHost> {
  const { definitions = await loadLoops(settings), modelOverride } = options;
  protectDataDirectory(settings.dataDirectory);
  const receiptKeys = await openReceiptKeys(settings);
  const [{ Host }, models, implementations, clock] = await Promise.all([
    import('../host/host.js'),
    loadProviders(settings),
    loadToolImplementations(settings),
    options.clock ?? createClock(settings),
  ]);
  const { store, isDurable, maintenance, assertKey } = await openStore(settings, options, clock.now);
  try {
    if (isDurable) await markDataDirectory(settings.dataDirectory, settings.cwd);
    const notice = isDurable ? await receiptKeys.foreignKeysNotice() : undefined;
    if (notice !== undefined) options.notify?.(notice);
    const { registry, badFiles } = definitions;
    const ids = await createIds(settings, store);
    const trusts = recordedTrustPredicate(settings);
    const { build } = settings;
    const named = build === undefined ? {} : { build };
    const fileExists = async (path: string): Promise<boolean> =>
      (await import('../adapters/files/file-exists.js')).fileExistsIn(settings.cwd)(path);
    const contextFiles = createContextFiles(settings.loopsDirectory, registry);
    const deps = { store, clock, ids, registry, providers: models, implementations, fileExists, contextFiles, trusts };
    const { limitPricesOf } = await import('./compose/limit-prices.js');
    const priceOf = limitPricesOf(settings, models);
    const receipts = isDurable
      ? { receiptKeys, ...(await openWitnesses(settings, receiptKeys, { store, assertKey })) }
      : {};
    const untrustedJournal = untrustedJournalOf(settings);
    const host = new Host({ ...deps, ...named, priceOf, modelOverride, untrustedJournal, ...receipts });
    return {
      host,
      registry,
      badFiles,
      config: settings.config,
      store,
      isDurable,
      maintenance,
      assertKey,
      close: async () => {
        await host.receipts?.flush();
        await store.close();
      },
    };
  } catch (thrown) {
    await store.close();
    throw thrown;
  }
}

/** Returns why toolbox commands cannot be sandboxed on this machine; undefined if they can. */
export async function sandboxUnavailableReason(): Promise<string | undefined> {
  const { probeSandbox } = await import('../adapters/toolbox/sandbox.js');
  const probe = await probeSandbox();
  return 'problem' in probe ? probe.problem : undefined;
}

/** Returns the dependencies of the conformance suite, none of which leave this process. */
export async function conformanceDeps() {
  const [{ mockProvider }, { builtinTools }, { systemClock: clock, systemIds: ids }] = await Promise.all([
    import('../adapters/models/mock.js'),
    import('../adapters/tools/builtin.js'),
    import('../adapters/system/index.js'),
  ]);
  return { clock, ids, providers: [mockProvider()], implementations: [builtinTools()] };
}

/** Reads a JSON or TOML file inside a directory. Throws a DocumentReadError if it cannot be read. */
export async function readDocumentIn(directory: string, path: string, maxBytes: number): Promise<unknown> {
  const [{ readTextWithin }, { parseJson: parse }, { parseToml }] = await Promise.all([
    import('../adapters/files/read-text.js'),
    import('../adapters/files/parse-json.js'),
    import('../adapters/files/parse-toml.js'),
  ]);
  const { text } = await readTextWithin(directory, path, maxBytes);
  const content = text.replace(/^\uFEFF/, '');
  return path.endsWith('.toml') ? parseToml(content) : parse(content);
}

/** Parses a JSON text. Throws a DocumentReadError, which has the position of the error if it is known. */
export async function parseJson(text: string): Promise<unknown> {
  return (await import('../adapters/files/parse-json.js')).parseJson(text);
}
