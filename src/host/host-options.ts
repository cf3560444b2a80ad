/** The options of a host and of one turn. */
import type { Clock, Ids } from '../journal/clock.js';
import type { Store } from '../journal/store.js';
import type { ModelProvider } from '../loops/model.js';
import type { Registry } from '../loops/registry.js';
import type { ToolImplementation } from '../loops/tool-implementation.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import type { TraceEvent } from '../protocol/trace.js';

export interface HostOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly registry: Registry;
  readonly providers?: ReadonlyMap<string, ModelProvider>;
  readonly implementations?: ReadonlyMap<string, ToolImplementation>;
  /** Whether a recorded definition that claims this directory may run code; none unless told. */
  readonly trusts?: (directory: string | undefined) => boolean;
  readonly maxDepth?: number;
  /** How long an approval may wait, in milliseconds; thirty days unless told. */
  readonly approvalMs?: number;
}

export interface TurnOptions {
  /** Receives the id of the turn before anything of it is written. */
  readonly onTurn?: (turnId: string) => void;
  /** Hears of each event of the trace when it happens. */
  readonly onEvent?: (event: TraceEvent) => void;
  /** Hears of each envelope of the session when it arises, or changes. */
  readonly onEnvelope?: (envelope: EventEnvelope) => void;
  /** Hears of pieces of messages and of tools' output while they come. */
  readonly onDelta?: (delta: LiveDelta) => void;
  /** The protocol's handlers, called one after another; all have been when the result is returned. */
  readonly stream?: StreamHandlers;
}
