/**
 * `rondo`: defines loops, agents and tools, and runs them. `createRondo` opens a runtime with a default for everything.
 * Its parts (host, stores, clocks, registries, providers) are in `rondo/host`, wire types in `rondo/protocol`, the SQLite
 * store in `rondo/sqlite`, the tools of a coding agent in `rondo/toolbox`, the AI SDK integration in `rondo/ai-sdk`, and
 * helpers for tests in `rondo/testing`.
 */
export { type ErrorCode, errorCodes, Fault, LoopError, NonRetryableError } from './base/errors.js';
export type { PriceOptions } from './host/budget/price-table.js';
export type { ForkedTurn, ForkOptions } from './host/fork-turn.js';
export {
  defineHostedLoop,
  type HostedLoop,
  type HostedLoopDefinition,
  type NextInput,
} from './host/hosted/define-hosted-loop.js';
export type { HostedActor, HostedControl } from './host/hosted/hosted-loops.js';
export type { HostedLoopPause, HostedLoopStop, WorkOptions, WorkProblem } from './host/worker.js';
export type { BodyLoopSpec, PromptLoopSpec, ToolLoopSpec } from './loops/define.js';
export type { AgentDefinition, AgentInput, AgentTool } from './loops/define-agent.js';
export type { CodePlanState, CodePlanStep, PlanDefinition } from './loops/define-plan.js';
export { defineSignal } from './loops/define-signal.js';
export type { DefinedLoop } from './loops/defined-loop.js';
export type { ModelProvider, ModelReply, ModelRequest, OpenModelOptions } from './loops/model.js';
export type { ProviderOption } from './loops/model-providers.js';
export type { ModelOption, PolicyOption, RouteOption } from './loops/model-ref.js';
export type { AnySchema, InputOf, OutputOf, StandardSchema } from './loops/standard-schema.js';
export type { ToolCallContext } from './loops/tool-implementation.js';
export type { ModelPrice } from './policy/prices.js';
export type { Approval } from './protocol/approval.js';
export type {
  Branch,
  BranchResults,
  Effect,
  EffectArguments,
  EffectContext,
  EffectOptions,
  EffectPolicy,
  EffectRules,
  Loop,
  PerformEffect,
  Scope,
  SignalType,
  TargetBinding,
  Validate,
} from './protocol/body.js';
export type { EventEnvelope } from './protocol/events.js';
export type {
  HostedLoopDocument,
  HostedLoopStatus,
  HostedPauseReason,
  HostedProjection,
  HostedSchedule,
  HostedSignal,
  HostedSignalDelivery,
  HostedStopReason,
  SignalReceipt,
  StopPolicy,
  TurnGrant,
} from './protocol/hosted-loop.js';
export type { LiveDelta } from './protocol/live.js';
export { ApprovalRequiredError, tool } from './protocol/tool.js';
export type {
  CancelledResult,
  ErrorResult,
  OkResult,
  PausedResult,
  PendingItem,
  ResultError,
  StoppedResult,
  TurnResult,
  TurnStatus,
} from './protocol/trace.js';
export { type CallableLoop, defineAgent, defineLoop, definePlan } from './surfaces/rondo/callable-loop.js';
export { createRondo, type RondoOptions } from './surfaces/rondo/create-rondo.js';
export type { EffectResolution, LoopRef, Rondo, RunOptions, RunRequest, TurnInput } from './surfaces/rondo/rondo.js';
export type { Handoff, HostedSignalOptions, RondoHosted } from './surfaces/rondo/rondo-hosted.js';
export type { AnswerOptions, ApproveOptions, PendingApproval, SignalOptions, Turn } from './surfaces/rondo/turn.js';
export { TurnPaused, TurnStopped } from './surfaces/rondo/turn-outcome.js';
export type { HostedTurnListing } from './views/hosted-turns.js';
