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

/** `user-message`: the user submitted a prompt. */
export interface UserMessageContent {
  readonly text: string;
}

/** `assistant-message`: the model answered with text. */
export interface AssistantMessageContent {
  readonly text: string;
}

/** The state of an approval: requested, or how it was answered. */
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
  /** The id of the pending approval. Absent once it is answered. */
  readonly approvalId?: string;
}

/** `tool-result`: a tool returned. */
export interface ToolResultContent {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly result: Json;
  /** The output that the tool streamed while it ran. */
  readonly output?: string;
}

/** `tool-error`: a tool threw, or its approval was denied. */
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

/** `loop-triggered`: a loop started a child generation. */
export interface LoopTriggeredContent {
  /** The id of the loop that started it. */
  readonly triggeredBy: string;
  readonly parentGenerationId?: string;
  readonly instructions?: string;
}

/** `child-generation`: a child generation ended; a summary for the parent. */
export interface ChildGenerationContent {
  /** The name of the work item. */
  readonly item: string;
  /** Zero-based index among the children that started together. */
  readonly index: number;
  /** How many children started together. */
  readonly total: number;
  readonly durationMs: number;
  readonly parentGenerationId: string;
  readonly childGenerationId: string;
  readonly status: 'ok' | 'error';
  readonly summary?: string;
}

/** `other-agent-message`: another agent answered with text. */
export interface OtherAgentMessageContent {
  readonly text: string;
  /** The id of that agent. */
  readonly agent?: string;
}

/** `user-abort`: the user stopped a generation. */
export interface UserAbortContent {
  readonly generationId: string;
}

/** `generation-failure`: a generation failed. */
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
  /** The key of the agent's call that the event belongs to; the id of the turn for an event of no agent below it. */
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
