/**
 * `rondo/protocol`: the data types that cross process boundaries (definitions, entries, events, traces, approvals) and
 * `loopsTool`. Safe to import without the runtime.
 */
export type {
  Approval,
  ApprovalAnswer,
  ApprovalState,
  ApprovalTarget,
  RecordedAnswer,
  StandingGrant,
} from './approval.js';
export { approvalText } from './approval-text.js';
export type {
  Entry,
  EntryDraft,
  ErrorRecord,
  KernelEntry,
  KernelEntryFields,
  KernelEntryType,
  Resolution,
  Safety,
} from './entry.js';
export type {
  ApprovalStatus,
  AssistantMessageContent,
  ChildGenerationContent,
  EventContents,
  EventEnvelope,
  EventEnvelopeOf,
  EventType,
  GenerationFailureContent,
  LoopTriggeredContent,
  OtherAgentMessageContent,
  ReasoningContent,
  ToolCallContent,
  ToolErrorContent,
  ToolResultContent,
  TriggerContent,
  UserAbortContent,
  UserMessageContent,
} from './events.js';
export { EVENT_TYPES } from './events.js';
export type { Json, JsonObject } from './json.js';
export type { LiveDelta } from './live.js';
export type {
  AgentComposite,
  AgentSpec,
  ApprovalPolicy,
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
  StepsSpec,
  StopSpec,
  ToolSpec,
} from './loop.js';
export type {
  AssistantMessageDeltaInfo,
  AssistantMessageInfo,
  ReasoningDeltaInfo,
  ReasoningStartInfo,
  StreamHandlers,
  StreamResult,
  ToolApprovalRequiredInfo,
  ToolCallInfo,
  ToolErrorInfo,
  ToolNotFoundInfo,
  ToolOutputDeltaInfo,
  ToolResultInfo,
} from './streaming.js';
export type {
  LoopsTool,
  LoopsToolDefinition,
  LoopsToolOptions,
  LoopsToolSet,
  ToolCallOptions,
  ToolContext,
  ToolMessage,
  ToolModelOutput,
  ToolSchema,
  TurnTool,
} from './tool.js';
export { ApprovalRequiredError, loopsTool, tool } from './tool.js';
export type {
  CancelledResult,
  CoreEvent,
  CoreEventType,
  ErrorResult,
  LoopResult,
  OkResult,
  PausedResult,
  PendingItem,
  ResultError,
  StoppedResult,
  TraceEvent,
  TracePayloads,
  TurnResult,
  TurnStatus,
  VendorPayloads,
} from './trace.js';
