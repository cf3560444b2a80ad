/**
 * `rondo`: defines loops and agents, and runs them on a host with a store. Wire types are in `rondo/protocol`, the
 * SQLite store in `rondo/sqlite`, `loopsTool` in `rondo/tools`, the tools of a coding agent in `rondo/toolbox`, the AI
 * SDK integration in `rondo/ai-sdk`, and helpers for tests in `rondo/testing`.
 */
export { memoryStore } from './adapters/memory/index.js';
export {
  anthropicProvider,
  mockProvider,
  openaiCompatibleProvider,
  openaiProvider,
  type ProviderSettings,
  type ScriptedProvider,
  scriptedProvider,
} from './adapters/models/index.js';
export { systemClock, systemIds } from './adapters/system/index.js';
export { builtinTools, execTools, httpsTools, httpTools, moduleTools } from './adapters/tools/index.js';
export { type ErrorCode, errorCodes, Fault, LoopError } from './base/errors.js';
export { type PermitLists, type Permits, permitsOf } from './base/permits.js';
export { Host, type HostOptions, type InFlightTurn, type TurnOptions, type TurnRequest } from './host/host.js';
export type { ReplayReport } from './host/replay.js';
export type { Clock, Ids } from './journal/clock.js';
export type { Batch, Blobs, Claim, Journal, SessionListing, Snapshot, Snapshots, Store } from './journal/store.js';
export type { Upcasts } from './journal/upcast.js';
export type { Invariant, View, Violation } from './journal/view.js';
export { Session, type SessionOptions } from './kernel/session.js';
export { type BodyLoopSpec, defineLoop, type PromptLoopSpec, type ToolLoopSpec } from './loops/define.js';
export { type AgentDefinition, type AgentInput, type AgentTool, defineAgent } from './loops/define-agent.js';
export type { DefinedLoop } from './loops/defined-loop.js';
export type { ModelProvider, ModelReply, ModelRequest, OpenModelOptions } from './loops/model.js';
export type { ModelOption, PolicyOption, RouteOption } from './loops/model-ref.js';
export type { DefinitionOrigin } from './loops/origin.js';
export { type MissingReference, type RegisteredLoop, Registry, type RegistryOptions } from './loops/registry.js';
export type { AnySchema, InputOf, OutputOf, StandardSchema } from './loops/standard-schema.js';
export type { ToolCallContext, ToolFunction, ToolImplementation } from './loops/tool-implementation.js';
export type {
  Branch,
  BranchResults,
  Effect,
  EffectContext,
  EffectRules,
  Loop,
  Scope,
  TargetBinding,
  Validate,
} from './protocol/body.js';
export type {
  Layer,
  PendingStep,
  ResolutionDetails,
  RunOptions,
  RunOutcome,
  Signal,
  TimerMode,
} from './protocol/session.js';
