/**
 * The chunks of the AI SDK's UI message stream that Rondo sends. The types are declared here, so that the SDK is not a
 * dependency; a test checks them against the SDK. A `data-rondo-…` part contains information that the protocol has no
 * part for.
 */
import type { Json } from '../../protocol/json.js';

/** A call of a composite or a handoff. Tool calls below it that need an approval are separate tool parts. */
export interface CallData {
  readonly toolCallId: string;
  readonly name: string;
  readonly input: Json;
  readonly status: 'running' | 'ok' | 'error' | 'denied';
  readonly output?: Json;
  readonly errorText?: string;
}

/** The text and the status of a sub-agent so far. */
export interface AgentData {
  readonly generationId: string;
  readonly agent?: string;
  readonly status: 'running' | 'ok' | 'error';
  readonly text?: string;
  readonly summary?: string;
}

/**
 * The data of each `data-rondo-…` part. Deltas, waits and refusals are transient: they are streamed, but not part of
 * the message.
 */
export interface RondoData {
  'rondo-call': CallData;
  'rondo-agent': AgentData;
  'rondo-agent-delta': { readonly generationId: string; readonly kind: 'text' | 'reasoning'; readonly text: string };
  'rondo-tool-delta': { readonly toolCallId: string; readonly text: string };
  /** A user message that the agent received during the turn. */
  'rondo-user-message': { readonly text: string };
  'rondo-trigger': { readonly name: string; readonly payload?: Json };
  /** The agent failed or stopped early. The text may be shown to users. */
  'rondo-failure': { readonly code: string; readonly errorText: string };
  /** A wait of a paused turn other than an approval. */
  'rondo-waiting': { readonly kind: string; readonly name?: string };
  /** An approval answer that the host refused. */
  'rondo-refused': { readonly approvalId: string };
}

/** A `data-rondo-…` chunk. */
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

/** One chunk of a UI message stream. */
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
      readonly toolMetadata?: { streamedOutput: string };
    } & ToolOutputFields)
  | ({ readonly type: 'tool-output-error'; readonly errorText: string } & ToolOutputFields)
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'finish'; readonly finishReason: 'stop' | 'tool-calls' | 'other' }
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'abort'; readonly reason?: string }
  | DataChunk;

/** Returns the text of a delta chunk; undefined for other chunks. */
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

/** Returns a copy of a delta chunk with another text; any other chunk is returned as it is. */
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

/** Returns a key that is equal for two delta chunks that may be merged; an empty string for other chunks. */
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
