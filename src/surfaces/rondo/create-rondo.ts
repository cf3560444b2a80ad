/** `createRondo`: opens a store and returns a runtime on it. Every option has a default. */
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import type { PriceOptions } from '../../host/budget/price-table.js';
import type { HostOptions } from '../../host/host-options.js';
import type { Clock, Ids } from '../../journal/clock.js';
import type { Store } from '../../journal/store.js';
import type { DefinedLoop } from '../../loops/defined-loop.js';
import type { ProviderOption } from '../../loops/model-providers.js';
import type { Rondo } from './rondo.js';

/** Options of `createRondo`. */
export interface RondoOptions {
  /**
   * The store: `memory:`, `sqlite:PATH`, `sqlite:` for a file in the data directory, or a store object, which the caller
   * closes.
   * @default the environment variable RONDO_STORE, or `sqlite:`
   */
  readonly store?: string | Store;
  /**
   * The data directory. Programs and the command line that use the same one share its turns.
   * @default the environment variable RONDO_DATA, or `.rondo`
   */
  readonly data?: string;
  /**
   * Loops that turns of other processes, or of earlier ones, need. A loop that is passed to `run` or `start` registers
   * itself.
   * @default []
   */
  readonly loops?: readonly DefinedLoop[];
  /**
   * Models and model providers by the id that loops use, in addition to `openai`, `anthropic`, `openai-compatible`,
   * `mock` and `scripted`: a provider of the AI SDK or of Rondo, a model object, or the id of another model.
   * @default {}
   */
  readonly models?: { readonly [id: string]: ProviderOption };
  /**
   * The time of entries, timers and timeouts.
   * @default the system clock
   */
  readonly clock?: Clock;
  /**
   * The ids of new sessions, turns and messages.
   * @default random ids
   */
  readonly ids?: Ids;
  /**
   * An id of the deployed code, such as a commit. It is recorded with each turn and part of what an approval is bound
   * to.
   * @default the environment variable RONDO_BUILD, or none
   */
  readonly build?: string;
  /**
   * How long an approval can be answered, in milliseconds.
   * @default 2_592_000_000 (30 days)
   */
  readonly approvalMs?: HostOptions['approvalMs'];
  /**
   * Redacts the stack of an error before it is journaled and reported. Return undefined to omit it, as in
   * `() => undefined`.
   * @default records stacks unchanged
   */
  readonly errorStacks?: HostOptions['errorStacks'];
  /**
   * The directory of the files that `contextSkills` names: paths are relative to it, and `skill:NAME` is a file of its
   * folder `skills`.
   * @default none; loops that name such files fail with CONTEXT_REFUSED
   */
  readonly context?: string;
  /**
   * The prices of models by `backend/model`, for grants that limit what models cost: whole millionths of your currency for
   * one million tokens. A list has prices `from` different days on.
   * @default {}; a grant with `costMicros` then permits no model
   */
  readonly prices?: PriceOptions;
}

const RONDO_OPTION_KEYS = optionKeys<RondoOptions>({
  store: true,
  data: true,
  loops: true,
  models: true,
  clock: true,
  ids: true,
  build: true,
  approvalMs: true,
  errorStacks: true,
  context: true,
  prices: true,
});

/**
 * Opens a store and returns a runtime on it: by default SQLite in `.rondo`, which other processes and the command line
 * share. Throws a TypeError for an unknown option or store, CONFIG_INVALID for a model that cannot be used,
 * DEFINITION_INVALID for a loop that names a model which is not configured, and a Fault if the store cannot be opened.
 *
 * @example
 * const rondo = await createRondo();
 * console.log(await rondo.output(greet, { name: 'Ada' }));
 * await rondo.close();
 */
export async function createRondo(options: RondoOptions = {}): Promise<Rondo> {
  assertKnownKeys(options, RONDO_OPTION_KEYS, 'createRondo has no');
  const [{ composeRondo }, { Rondo }] = await Promise.all([import('../compose/rondo-host.js'), import('./rondo.js')]);
  const { host, close, clock, ids } = await composeRondo(options);
  try {
    const rondo = new Rondo(host, close, { clock, ids });
    rondo.register(...(options.loops ?? []));
    return rondo;
  } catch (thrown) {
    await close();
    throw thrown;
  }
}
