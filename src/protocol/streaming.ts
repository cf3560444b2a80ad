/**
 * The handlers that a caller passes to follow an agent's generation live, and the result when it ends or waits. Types only. Deltas
 * are for live display and are not journaled; the finished messages, calls and results are events of the session.
 */
import type { Json } from './json.js';

interface GenerationInfo {
  /** The key of the agent's call. */
  readonly generationId: string;
}

interface ToolInfo extends GenerationInfo {
  /** The id that the model gave to the call; for a deeper call that requests approval, the key of that call. */
  readonly toolCallId: string;
  readonly toolName: string;
}

/** An assistant message starts. */
export interface AssistantMessageInfo extends GenerationInfo {}

/** A piece of an assistant message. */
export interface AssistantMessageDeltaInfo extends GenerationInfo {
  readonly delta: string;
}

/** A block of reasoning starts. */
export interface ReasoningStartInfo extends GenerationInfo {}

/** A piece of reasoning. */
export interface ReasoningDeltaInfo extends GenerationInfo {
  readonly delta: string;
}

/** The model called a tool, or a deeper call requested an approval. */
export interface ToolCallInfo extends ToolInfo {
  readonly args: Json;
  /** True if the tool declares that it changes nothing. */
  readonly readOnly?: boolean;
}

/** A tool returned. */
export interface ToolResultInfo extends ToolInfo {
  readonly result: Json;
  /** The output that the tool streamed while it ran, up to 64 Ki characters. */
  readonly output?: string;
}

/** The model called a tool that the agent does not have. */
export interface ToolNotFoundInfo extends ToolInfo {
  /** The arguments as a JSON value, or as text if they are not valid JSON. Absent if they are unknown. */
  readonly args?: Json;
}

/** A tool call ended without a result: it failed, was denied or cancelled, or was refused before it started. */
export interface ToolErrorInfo extends ToolInfo {
  readonly error: string;
  /** True if a person denied the call. */
  readonly isUserRejection?: boolean;
}

/** A piece of the output that a tool streams while it runs. */
export interface ToolOutputDeltaInfo extends ToolInfo {
  readonly delta: string;
}

/** A tool call waits for approval. */
export interface ToolApprovalRequiredInfo extends ToolInfo {
  readonly args: Json;
  /** The question for the approver: plain text of bounded length. */
  readonly description: string;
  /** The id to answer. */
  readonly approvalId: string;
}

type Handler<Info> = (info: Info) => void | Promise<void>;

/**
 * Handlers of a generation's live events. All are optional.
 *
 * @example
 * import type { StreamHandlers } from 'rondo/streaming';
 *
 * const handlers: StreamHandlers = {
 *   onAssistantMessageDelta: ({ delta }) => void process.stdout.write(delta),
 *   onToolCall: ({ toolName, args }) => console.log(toolName, args),
 * };
 */
export interface StreamHandlers {
  readonly onAssistantMessage?: Handler<AssistantMessageInfo>;
  readonly onAssistantMessageDelta?: Handler<AssistantMessageDeltaInfo>;
  readonly onReasoningStart?: Handler<ReasoningStartInfo>;
  readonly onReasoningDelta?: Handler<ReasoningDeltaInfo>;
  readonly onToolCall?: Handler<ToolCallInfo>;
  readonly onToolResult?: Handler<ToolResultInfo>;
  readonly onToolNotFound?: Handler<ToolNotFoundInfo>;
  readonly onToolError?: Handler<ToolErrorInfo>;
  readonly onToolOutputDelta?: Handler<ToolOutputDeltaInfo>;
  readonly onToolApprovalRequired?: Handler<ToolApprovalRequiredInfo>;
}

/** How a generation ended, or the approvals that it waits for. */
export interface StreamResult extends GenerationInfo {
  readonly status: 'ok' | 'error' | 'paused' | 'stopped';
  /** The answer, if the status is `ok`. */
  readonly text?: string;
  /** What failed, or why the generation stopped. */
  readonly error?: string;
  /** The ids of the pending approvals, if the status is `paused`. */
  readonly pendingApprovals?: readonly string[];
}
