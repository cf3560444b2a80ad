/**
 * `rondo/host`: the parts below `createRondo`, for programs that compose their own runtime: the host, its stores, clocks,
 * registry, model providers and tool implementations, and the session of the kernel.
 */
export { contextFilesIn } from './adapters/files/context-files.js';
export { memoryStore } from './adapters/memory/index.js';
export {
  anthropicProvider,
  mockProvider,
  openaiCompatibleProvider,
  openaiProvider,
  type ProviderSettings,
  type ScriptedProvider,
  type ScriptedReply,
  scriptedProvider,
} from './adapters/models/index.js';
export { systemClock, systemIds } from './adapters/system/index.js';
export { builtinTools, execTools, httpsTools, httpTools, moduleTools } from './adapters/tools/index.js';
export { type PermitLists, type Permits, permitsOf } from './base/permits.js';
export type { ForkedTurn, ForkOptions } from './host/fork-turn.js';
export {
  Host,
  type HostOptions,
  type InFlightTurn,
  type SignalRequest,
  type TurnOptions,
  type TurnRequest,
} from './host/host.js';
export type { ReplayReport } from './host/replay.js';
export type { Clock, Ids } from './journal/clock.js';
export type { DueChange, DueTurn, DueTurns } from './journal/due-turns.js';
export { expandLeaves } from './journal/leaf-entries.js';
export type { SessionOptions } from './journal/session-options.js';
export type { Batch, Blobs, Claim, Journal, SessionListing, Snapshot, Snapshots, Store } from './journal/store.js';
export type { Upcasts } from './journal/upcast.js';
export type { Invariant, View, Violation } from './journal/view.js';
export { Session } from './kernel/session.js';
export type { ContextFile, ContextFiles, SummarizeReceipts } from './loops/context/context-source.js';
export type { FileReference } from './loops/context/reference.js';
export type { DefinitionOrigin } from './loops/origin.js';
export { type MissingReference, type RegisteredLoop, Registry, type RegistryOptions } from './loops/registry.js';
export type { ToolFunction, ToolImplementation } from './loops/tool-implementation.js';
export type {
  Layer,
  LayerScope,
  PendingStep,
  ResolutionDetails,
  RunOutcome,
  Signal,
  TimerMode,
} from './protocol/session.js';
