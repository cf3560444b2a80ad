/**
 * What the agent loop calls while it works, and what it says at the end. Pure types. Pieces are for whoever watches: the
 * finished messages, calls and results are events of the session.
 */
import type { Json } from './json.js';

/** The call of the agent that everything below belongs to. */
interface GenerationInfo {
  readonly generationId: string;
}

interface ToolInfo extends GenerationInfo {
  readonly toolCallId: string;
  readonly toolName: string;
}

/** A message of the assistant begins. */
export interface AssistantMessageInfo extends GenerationInfo {}

/** A piece of it comes. */
export interface AssistantMessageDeltaInfo extends GenerationInfo {
  readonly delta: string;
}

/** Thinking begins. */
export interface ReasoningStartInfo extends GenerationInfo {}

/** A piece of it comes. */
export interface ReasoningDeltaInfo extends GenerationInfo {
  readonly delta: string;
}

/** The model calls a tool. */
export interface ToolCallInfo extends ToolInfo {
  readonly args: Json;
  readonly readOnly?: boolean;
}

/** A tool gave something back. */
export interface ToolResultInfo extends ToolInfo {
  readonly result: Json;
  /** What the tool streamed while it worked. */
  readonly output?: string;
}

/** The model calls a tool that there is not. */
export interface ToolNotFoundInfo extends ToolInfo {
  /** Absent when they could not be read. */
  readonly args?: Json;
}

/** A tool threw, or a person did not let it run. */
export interface ToolErrorInfo extends ToolInfo {
  readonly error: string;
  readonly isUserRejection?: boolean;
}

/** A tool puts something out. */
export interface ToolOutputDeltaInfo extends ToolInfo {
  readonly delta: string;
}

/** A tool waits for an approval. */
export interface ToolApprovalRequiredInfo extends ToolInfo {
  readonly args: Json;
  /** What the person is asked: plain text of bounded length. */
  readonly description: string;
  /** What an answer is given to. */
  readonly approvalId: string;
}

type Handler<Info> = (info: Info) => void | Promise<void>;

/** Who watches a generation; each handler is there only if somebody cares. */
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

/** How a generation ended, or what it waits for. */
export interface StreamResult extends GenerationInfo {
  readonly status: 'ok' | 'error' | 'paused' | 'stopped';
  /** The answer, when it is done. */
  readonly text?: string;
  /** What failed, or why it stopped short. */
  readonly error?: string;
  /** The ids of the approvals that it waits for, when it is paused. */
  readonly pendingApprovals?: readonly string[];
}
