/**
 * The pieces of the AI SDK's UI message stream that we send, written out as types of our own: nothing of the SDK is
 * loaded, and a test holds these shapes to the SDK's. What the protocol has no word for is a `data-rondo-…` part.
 */
import type { Json } from '../../protocol/json.js';

/** What the call of a loop that is more than a tool looks like; its leaf tools that ask are parts of their own. */
export interface CallData {
  readonly toolCallId: string;
  readonly name: string;
  readonly input: Json;
  readonly status: 'running' | 'ok' | 'error' | 'denied';
  readonly output?: Json;
  readonly errorText?: string;
}

/** What a sub-agent said so far, and how it stands. */
export interface AgentData {
  readonly generationId: string;
  readonly agent?: string;
  readonly status: 'running' | 'ok' | 'error';
  readonly text?: string;
  readonly summary?: string;
}

/** The data of each `data-rondo-…` part. Deltas, waits and refusals are only seen live, and not kept in the message. */
export interface RondoData {
  'rondo-call': CallData;
  'rondo-agent': AgentData;
  'rondo-agent-delta': { readonly generationId: string; readonly kind: 'text' | 'reasoning'; readonly text: string };
  'rondo-tool-delta': { readonly toolCallId: string; readonly text: string };
  /** A message of the user that the agent heard while it ran. */
  'rondo-heard': { readonly text: string };
  'rondo-trigger': { readonly name: string; readonly payload?: Json };
  /** The agent failed, or stopped short; the text is what may be shown. */
  'rondo-failure': { readonly code: string; readonly errorText: string };
  /** What a paused turn waits for, beside approvals. */
  'rondo-waiting': { readonly kind: string; readonly name?: string };
  /** An answer that was not taken. */
  'rondo-refused': { readonly approvalId: string };
}

export type DataChunk = {
  [Name in keyof RondoData]: {
    readonly type: `data-${Name}`;
    readonly id?: string;
    readonly data: RondoData[Name];
    readonly transient?: boolean;
  };
}[keyof RondoData];

interface ToolInputFields {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly dynamic?: boolean;
}

interface ToolOutputFields {
  readonly toolCallId: string;
  readonly dynamic?: boolean;
}

/** One piece of the stream. */
export type UiChunk =
  | { readonly type: 'start'; readonly messageId: string }
  | { readonly type: 'start-step' | 'finish-step' }
  | { readonly type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | ({ readonly type: 'tool-input-start' } & ToolInputFields)
  | { readonly type: 'tool-input-delta'; readonly toolCallId: string; readonly inputTextDelta: string }
  | ({ readonly type: 'tool-input-available'; readonly input: Json } & ToolInputFields)
  | ({ readonly type: 'tool-input-error'; readonly input: Json; readonly errorText: string } & ToolInputFields)
  | {
      readonly type: 'tool-approval-request';
      readonly approvalId: string;
      readonly toolCallId: string;
      readonly approvalDescriptor?: { readonly description: string };
    }
  | ({
      readonly type: 'tool-output-available';
      readonly output: Json;
      readonly toolMetadata?: { said: string };
    } & ToolOutputFields)
  | ({ readonly type: 'tool-output-error'; readonly errorText: string } & ToolOutputFields)
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'finish'; readonly finishReason: 'stop' | 'tool-calls' | 'other' }
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'abort'; readonly reason?: string }
  | DataChunk;

/** The text of a piece that only adds to the one before it. */
export function deltaTextOf(chunk: UiChunk): string | undefined {
  switch (chunk.type) {
    case 'text-delta':
    case 'reasoning-delta':
      return chunk.delta;
    case 'tool-input-delta':
      return chunk.inputTextDelta;
    case 'data-rondo-agent-delta':
    case 'data-rondo-tool-delta':
      return chunk.data.text;
    default:
      return undefined;
  }
}

/** The same piece with another text. */
export function withDeltaText(chunk: UiChunk, text: string): UiChunk {
  switch (chunk.type) {
    case 'text-delta':
    case 'reasoning-delta':
      return { ...chunk, delta: text };
    case 'tool-input-delta':
      return { ...chunk, inputTextDelta: text };
    case 'data-rondo-agent-delta':
      return { ...chunk, data: { ...chunk.data, text } };
    case 'data-rondo-tool-delta':
      return { ...chunk, data: { ...chunk.data, text } };
    default:
      return chunk;
  }
}

/** What two additions have in common when the second continues the first. */
export function deltaTargetOf(chunk: UiChunk): string {
  switch (chunk.type) {
    case 'text-delta':
    case 'reasoning-delta':
      return `${chunk.type} ${chunk.id}`;
    case 'tool-input-delta':
      return `${chunk.type} ${chunk.toolCallId}`;
    case 'data-rondo-agent-delta':
      return `${chunk.type} ${chunk.data.kind} ${chunk.data.generationId}`;
    case 'data-rondo-tool-delta':
      return `${chunk.type} ${chunk.data.toolCallId}`;
    default:
      return '';
  }
}
