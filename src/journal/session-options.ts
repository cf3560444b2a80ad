/** The options of a session, and the check that there are no others. */

import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import type { Effect } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Admit, Layer, PendingStep } from '../protocol/session.js';
import type { Clock, Ids } from './clock.js';
import type { RedactStack } from './journal-writer.js';
import type { Store } from './store.js';
import type { Upcasts } from './upcast.js';
import type { Invariant, View } from './view.js';

/** Options of a session. */
export interface SessionOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The layers around every effect, outermost first, or a function that chooses them for each effect. @default [] */
  readonly layers?: readonly Layer[] | ((effect: Effect, key: string) => readonly Layer[]);
  /** Decides on each attempt at an effect. @default every effect may be performed */
  readonly admit?: Admit | undefined;
  /** Views to keep up to date; `state` returns their states. @default [] */
  readonly views?: readonly View<never>[];
  /** Rules that may refuse an entry before it is written. @default [] */
  readonly invariants?: readonly Invariant<never>[];
  /** Conversions of entries that an older program wrote. @default {} */
  readonly upcasts?: Upcasts;
  /** The maximum nesting depth of calls and branches. @default 2000 */
  readonly maxDepth?: number;
  /** Called synchronously with each new entry, before it is durable. */
  readonly onEntry?: (entry: Entry) => void;
  /**
   * If true, no effect is performed: a run throws REPLAY_INCOMPLETE at the first effect without a recorded result.
   * Other new steps still run and are written, so use a store that ignores writes.
   * @default false
   */
  readonly replayOnly?: boolean;
  /**
   * Returns when a paused run is due at the latest, in milliseconds since the epoch. Timers count without it.
   * @default no time
   */
  readonly wakeAt?: (pending: readonly PendingStep[]) => number | undefined;
  /** Passed to every body as `scope.context`. */
  readonly context?: unknown;
  /** Redacts the stack of an error before it is written; undefined omits it. @default records stacks unchanged */
  readonly errorStacks?: RedactStack | undefined;
}

const SESSION_OPTION_NAMES = optionKeys<SessionOptions>({
  store: true,
  clock: true,
  ids: true,
  layers: true,
  admit: true,
  views: true,
  invariants: true,
  upcasts: true,
  maxDepth: true,
  onEntry: true,
  replayOnly: true,
  wakeAt: true,
  context: true,
  errorStacks: true,
});

/** Throws a TypeError if a session has an unknown option. */
export function assertSessionOptions(options: SessionOptions): void {
  assertKnownKeys(options, SESSION_OPTION_NAMES, 'A session has no option');
}
