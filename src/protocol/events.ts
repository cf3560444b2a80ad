/**
 * A session as front ends see it: an ordered list of envelopes, each of one of twelve kinds with the content of its kind.
 * Pure types and one list, safe in a browser. An envelope that comes again under its id replaces the earlier one: so a
 * tool call that waits for an approval becomes one that was approved.
 */
import type { Json } from './json.js';

/** The kinds of events, in the protocol's order. */
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

export type EventType = (typeof EVENT_TYPES)[number];

/** The user submitted a prompt. */
export interface UserMessageContent {
  readonly text: string;
}

/** The model spoke. */
export interface AssistantMessageContent {
  readonly text: string;
}

/** How an approval stands: asked for, or how it was answered. */
export type ApprovalStatus = 'pending_approval' | 'approved' | 'rejected';

/** The model wants a tool to run. */
export interface ToolCallContent {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: Json;
  /** Whether the tool declares that it changes nothing: true or false for each call that a model makes. */
  readonly readOnly?: boolean;
  readonly approvalStatus?: ApprovalStatus;
  /** What a person is asked: plain text of bounded length. */
  readonly approvalDescription?: string;
  /** What an answer is given to; there while one is waited for. */
  readonly approvalId?: string;
}

/** A tool gave something back. */
export interface ToolResultContent {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly result: Json;
  /** What the tool streamed while it worked. */
  readonly output?: string;
}

/** A tool threw, or a person did not let it run. */
export interface ToolErrorContent {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly error: string;
  readonly isUserRejection?: boolean;
}

/** A block of thinking. */
export interface ReasoningContent {
  readonly text: string;
  readonly durationMs?: number;
}

/** Something outside (a timer, a webhook) started a generation. */
export interface TriggerContent {
  readonly triggerName: string;
  readonly payload?: Json;
}

/** A child was kicked off. */
export interface LoopTriggeredContent {
  /** The loop that did it. */
  readonly triggeredBy: string;
  readonly parentGenerationId?: string;
  readonly instructions?: string;
}

/** A child generation finished; this is its summary for the parent. */
export interface ChildGenerationContent {
  /** What the child was given to do, by its name. */
  readonly item: string;
  /** Its place among those begun together, and how many they were. */
  readonly index: number;
  readonly total: number;
  readonly durationMs: number;
  readonly parentGenerationId: string;
  readonly childGenerationId: string;
  readonly status: 'ok' | 'error';
  readonly summary?: string;
}

/** Another agent spoke. */
export interface OtherAgentMessageContent {
  readonly text: string;
  readonly agent?: string;
}

/** The user stopped a generation. */
export interface UserAbortContent {
  readonly generationId: string;
}

/** A generation failed before it was done. */
export interface GenerationFailureContent {
  readonly error: string;
}

/** The content of each kind. */
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

/** The envelope of one kind. */
export interface EventEnvelopeOf<T extends EventType, TTimestamp = string> {
  /** Its place in the session: envelopes are in the order of their ids' numbers. */
  readonly id: string;
  readonly sessionId: string;
  /** The call of the agent that it is about; a turn's id for what belongs to no agent below it. */
  readonly generationId: string;
  readonly type: T;
  readonly content: EventContents[T];
  readonly createdAt: TTimestamp;
}

/** Any envelope, narrowed by `type`. Times are ISO 8601 on the wire; a back end may hold them as it likes. */
export type EventEnvelope<TTimestamp = string> = { [T in EventType]: EventEnvelopeOf<T, TTimestamp> }[EventType];
