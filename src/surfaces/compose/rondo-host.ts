/** Composes the host of `createRondo` from its options and the environment. */
import { resolve } from 'node:path';
import { priceOfTable, priceTableOf } from '../../host/budget/price-table.js';
import type { Host } from '../../host/host.js';
import type { Clock, Ids } from '../../journal/clock.js';
import type { Store } from '../../journal/store.js';
import { markDataDirectory, protectDataDirectory } from '../data-directory.js';
import type { RondoOptions } from '../rondo/create-rondo.js';
import { resolveSettings, type Settings, UsageError } from '../settings.js';
import { createClock, createIds, loadProviders, openStore } from './adapters.js';
import { createContextFiles } from './context-files.js';
import { EMPTY_CONFIG } from './project-settings.js';
import { openReceiptKeys, openWitnesses } from './receipt-keys.js';

/** A host and the function that closes its store. */
interface ComposedRondo {
  readonly host: Host;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Closes the store, unless the caller of `createRondo` supplied it. */
  close(): Promise<void>;
}

/** Opens the store and creates the host. Throws a TypeError for an unknown store. */
export async function composeRondo(options: RondoOptions): Promise<ComposedRondo> {
  const settings = settingsOf(options);
  const [{ Host }, { Registry }, { createProviders }, builtIn, clock] = await Promise.all([
    import('../../host/host.js'),
    import('../../loops/registry.js'),
    import('../../loops/model-providers.js'),
    loadProviders(settings),
    options.clock ?? createClock(settings),
  ]);
  const providers = createProviders(options.models ?? {}, builtIn);
  const priceOf = options.prices && priceOfTable(priceTableOf(options.prices));
  const store = await openStoreOf(options.store, settings, clock.now);
  const { build = settings.build, approvalMs, errorStacks, context } = options;
  const registry = new Registry(new Map(), { providerIds: [...providers.keys()] });
  const receiptKeys = store.isDurable ? await openReceiptKeys(settings) : undefined;
  const notice = await receiptKeys?.foreignKeysNotice();
  if (notice !== undefined) process.emitWarning(notice, { type: 'RondoWarning', code: 'KEYS_FOREIGN' });
  const witnesses = receiptKeys === undefined ? {} : await openWitnesses(settings, receiptKeys, store);
  const ids = options.ids ?? (await createIds(settings, store.store));
  const host = new Host({
    store: store.store,
    clock,
    ids,
    registry,
    providers,
    ...(build !== undefined && { build }),
    ...(approvalMs !== undefined && { approvalMs }),
    ...(errorStacks !== undefined && { errorStacks }),
    ...(receiptKeys !== undefined && { receiptKeys }),
    ...witnesses,
    ...(priceOf !== undefined && { priceOf }),
    ...(context !== undefined && { contextFiles: createContextFiles(resolve(settings.cwd, context), registry) }),
  });
  return { host, clock, ids, close: store.close };
}

function settingsOf({ store, data }: RondoOptions): Settings<typeof EMPTY_CONFIG> {
  const flags = { ...(typeof store === 'string' && { store }), ...(data !== undefined && { data }) };
  try {
    return resolveSettings({ flags, env: process.env, cwd: process.cwd() }, EMPTY_CONFIG);
  } catch (thrown) {
    throw thrown instanceof UsageError ? new TypeError(thrown.message) : thrown;
  }
}

async function openStoreOf(
  given: RondoOptions['store'],
  settings: Settings,
  now: () => number,
): Promise<{ readonly store: Store; readonly isDurable: boolean; assertKey(): void; close(): Promise<void> }> {
  if (given !== undefined && typeof given !== 'string')
    return { store: given, isDurable: false, assertKey: () => {}, close: async () => {} };
  protectDataDirectory(settings.dataDirectory);
  const { store, isDurable, assertKey } = await openStore(settings, {}, now);
  if (isDurable) await markDataDirectory(settings.dataDirectory, settings.cwd);
  return { store, isDurable, assertKey, close: () => store.close() };
}
