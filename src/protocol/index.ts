export type { Decision, Draft, Entry, ErrorRecord, KernelEntry, KernelFacts, KernelType, Safety } from './entry.js';
export type { Json } from './json.js';
export type {
  BackendRef,
  CacheSpec,
  CompositeSpec,
  CompositeStep,
  FilterSpec,
  JsonSchema,
  LoopDef,
  LoopKind,
  Mapping,
  PolicySpec,
  PromptSpec,
  RateLimitSpec,
  RetrySpec,
  RouteSpec,
  ToolSpec,
} from './loop.js';
export type {
  CoreEvent,
  CoreEventType,
  LoopResult,
  PendingItem,
  ResultError,
  TraceEvent,
  TracePayloads,
  TurnResult,
  TurnStatus,
} from './trace.js';
