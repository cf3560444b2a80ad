/**
 * The conversation of a session as front ends see it: an ordered list of envelopes, each with the content of its event
 * type. Types and one list; imports no code, so it is safe in a browser. An envelope with the id of an earlier one
 * replaces it: a tool call that waits for approval is replaced by the approved call.
 */
import type { Json } from './json.js';

/**
 * All event types, in the order of the protocol.
 *
 * @example
 * import { EVENT_TYPES, type EventEnvelope } from 'rondo/events';
 *
 * const isKnown = (event: { type: string }): event is EventEnvelope =>
 *   (EVENT_TYPES as readonly string[]).includes(event.type);
 */
export const EVENT_TYPES = [
  'user-message',
  'assistant-message',
  'tool-call',
  'tool-result',
  'tool-error',
  'trigger',
  'loop-triggered',
  'other-agent-message',
  'user-abort',
  'child-generation',
  'generation-failure',
  'reasoning',
] as const;

/** The type of an event. Narrows `EventEnvelope` to the content of that type. */
export type EventType = (typeof EVENT_TYPES)[number];

/** `user-message`: the user submitted a prompt, or a message to a running agent. */
export interface UserMessageContent {
  readonly text: string;
}

/** `assistant-message`: the agent of a turn replied with text, or a turn of a prompt ended with this output. */
export interface AssistantMessageContent {
  readonly text: string;
}

/** The state of an approval: requested, or how it was answered. `rejected` also if the call ended without an answer. */
export type ApprovalStatus = 'pending_approval' | 'approved' | 'rejected';

/** `tool-call`: the model called a tool. */
export interface ToolCallContent {
  /** The id that the model gave to the call. */
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: Json;
  /** True if the tool declares that it changes nothing. Present on every call that a model makes. */
  readonly readOnly?: boolean;
  /** Absent for a call that needs no approval. */
  readonly approvalStatus?: ApprovalStatus;
  /** The question for the approver: plain text of bounded length. */
  readonly approvalDescription?: string;
  /** The id of the approval, pending or answered. Absent for a call that needs no approval. */
  readonly approvalId?: string;
}

/** `tool-result`: a tool returned, or a turn of a loop that is neither an agent nor a prompt ended with this output. */
export interface ToolResultContent {
  /** The id of the `tool-call`; for the output of a turn, the turn id. */
  readonly toolCallId: string;
  readonly toolName: string;
  readonly result: Json;
  /** The output that the tool streamed while it ran. */
  readonly output?: string;
}

/**
 * `tool-error`: a tool call ended without a result. It failed, was denied or cancelled, or was refused before it
 * started.
 */
export interface ToolErrorContent {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly error: string;
  /** True if a person denied the call. */
  readonly isUserRejection?: boolean;
}

/** `reasoning`: a block of the model's reasoning. */
export interface ReasoningContent {
  readonly text: string;
  readonly durationMs?: number;
}

/** `trigger`: an external event, such as a schedule or a webhook, started a generation. */
export interface TriggerContent {
  readonly triggerName: string;
  readonly payload?: Json;
}

/** `loop-triggered`: a loop started a child generation, or a turn of a loop that is no agent started. */
export interface LoopTriggeredContent {
  /**
   * The id of the nearest enclosing agent or, without one, of the calling loop; at the start of a turn, the id of its
   * loop.
   */
  readonly triggeredBy: string;
  /** Absent at the start of a turn. */
  readonly parentGenerationId?: string;
  /** The prompt of the child; at the start of a turn, its input: a text, or JSON. */
  readonly instructions?: string;
}

/** `child-generation`: a child generation ended; a summary for the parent. */
export interface ChildGenerationContent {
  /** The name of the work item. */
  readonly item: string;
  /**
   * The zero-based index among the tool calls of the reply that started the child; 0 for a child that no model started.
   */
  readonly index: number;
  /** The number of tool calls of that reply; 1 for a child that no model started. */
  readonly total: number;
  readonly durationMs: number;
  readonly parentGenerationId: string;
  readonly childGenerationId: string;
  readonly status: 'ok' | 'error';
  readonly summary?: string;
}

/** `other-agent-message`: an agent below the turn's root call replied with text. */
export interface OtherAgentMessageContent {
  readonly text: string;
  /** The id of that agent. */
  readonly agent?: string;
}

/** `user-abort`: the user cancelled a turn. */
export interface UserAbortContent {
  readonly generationId: string;
}

/** `generation-failure`: a turn failed. The failure of a child is a `child-generation`. */
export interface GenerationFailureContent {
  readonly error: string;
}

/** The content of each event type. */
export interface EventContents {
  'user-message': UserMessageContent;
  'assistant-message': AssistantMessageContent;
  'tool-call': ToolCallContent;
  'tool-result': ToolResultContent;
  'tool-error': ToolErrorContent;
  trigger: TriggerContent;
  'loop-triggered': LoopTriggeredContent;
  'other-agent-message': OtherAgentMessageContent;
  'user-abort': UserAbortContent;
  'child-generation': ChildGenerationContent;
  'generation-failure': GenerationFailureContent;
  reasoning: ReasoningContent;
}

/** The envelope of one event type. */
export interface EventEnvelopeOf<T extends EventType, TTimestamp = string> {
  /**
   * The position in the session, as in `12.0`: the entry's number and a counter. Envelopes are ordered by both numbers.
   */
  readonly id: string;
  readonly sessionId: string;
  /**
   * The key of the agent's call that the event belongs to. Without such an agent it is the id of the turn, or empty for
   * a message that arrives while no turn is open.
   */
  readonly generationId: string;
  readonly type: T;
  readonly content: EventContents[T];
  readonly createdAt: TTimestamp;
}

/**
 * Any envelope, narrowed by `type`. On the wire, `createdAt` is ISO 8601; a back end may use another type for it.
 *
 * @example
 * import type { EventEnvelope } from 'rondo/events';
 *
 * function render(event: EventEnvelope): string {
 *   if (event.type === 'assistant-message') return event.content.text;
 *   return event.type === 'tool-call' ? `Calling ${event.content.toolName}` : '';
 * }
 */
export type EventEnvelope<TTimestamp = string> = { [T in EventType]: EventEnvelopeOf<T, TTimestamp> }[EventType];
