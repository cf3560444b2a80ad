export { memoryStore } from './adapters/memory/index.js';
export {
  anthropicBackend,
  mockBackend,
  openaiBackend,
  openaiCompatibleBackend,
  type ProviderSettings,
  type ScriptedBackend,
  scriptedBackend,
} from './adapters/models/index.js';
export { systemClock, systemIds } from './adapters/system/index.js';
export { builtinTools, execTools, httpsTools, httpTools, moduleTools } from './adapters/tools/index.js';
export { type Code, codes, Fault, LoopError } from './base/errors.js';
export { type PermitLists, type Permits, permitsOf } from './base/permits.js';
export { Host, type HostOptions, type InFlight, type TurnOptions, type TurnRequest } from './host/host.js';
export type { Replay } from './host/replay.js';
export type { Clock, Ids } from './journal/clock.js';
export type { Batch, Blobs, Claim, Journal, Listed, Snapshot, Snapshots, Store } from './journal/store.js';
export type { Upcasts } from './journal/upcast.js';
export type { Invariant, View, Violation } from './journal/view.js';
export type { Outcome, Pending, Timers } from './kernel/attempt.js';
export type { Layer } from './kernel/layer.js';
export { Session, type SessionOptions, type Signal } from './kernel/session.js';
export { type BodyLoop, defineLoop, type PromptLoop, type ToolLoop } from './loops/define.js';
export { type AgentDefinition, type AgentInput, type AgentTool, defineAgent } from './loops/define-agent.js';
export type { DefinedLoop } from './loops/defined.js';
export type { Implementation, ToolCall, ToolFunction } from './loops/implementation.js';
export type { Asking, Backend, ModelReply, ModelRequest } from './loops/model.js';
export type { Origin } from './loops/origin.js';
export { type Dangling, type Registered, Registry } from './loops/registry.js';
export type { InputOf, OutputOf, Schema, StandardSchema } from './loops/standard.js';
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
