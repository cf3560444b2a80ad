/**
 * The types of one tool call: its options, its messages and its output. They are structurally identical to the AI SDK's
 * types without a dependency on it; src/protocol/tool.test.ts checks that each is assignable to the other.
 */
import type { ApprovalTarget } from './approval.js';
import type { Confinement } from './body.js';
import type { ModelReasoning, ModelText, PromptToolCall, ProviderJson } from './model.js';

/** A value, now or later. */
export type MaybePromise<T> = T | PromiseLike<T>;

/**
 * What `execute` may return: a value, a promise of one, or a stream of values in which each replaces the one before.
 */
export type ToolExecuteResult<OUTPUT> = AsyncIterable<OUTPUT> | PromiseLike<OUTPUT> | OUTPUT;

/** The turn that a tool runs in. */
export interface ToolContext {
  /** How the turn is supervised, such as `unsupervised`. */
  readonly mode?: string;
  /** Receives the output that the tool streams. */
  readonly onToolOutputDelta?: (delta: string, toolCallId: string) => void;
}

interface ImagePart {
  type: 'image';
  image: string | Uint8Array | ArrayBuffer | URL;
}

interface FilePart {
  type: 'file';
  data: string | Uint8Array | ArrayBuffer | URL;
  mediaType: string;
}

type ToolOutputPart =
  | ModelText
  | { type: 'media' | 'file-data' | 'image-data'; data: string; mediaType: string }
  | { type: 'file-url' | 'image-url'; url: string }
  | { type: 'file-id' | 'image-file-id'; fileId: string | Record<string, string> }
  | { type: 'custom' };

/** The result of a tool call in the form that the model gets. */
export type ToolModelOutput =
  | { type: 'text' | 'error-text'; value: string }
  | { type: 'json' | 'error-json'; value: ProviderJson }
  | { type: 'execution-denied'; reason?: string }
  | { type: 'content'; value: ToolOutputPart[] };

interface ToolResultPart {
  type: 'tool-result';
  toolCallId: string;
  toolName: string;
  output: ToolModelOutput;
}

interface ApprovalRequestPart {
  type: 'tool-approval-request';
  approvalId: string;
  toolCallId: string;
}

interface ApprovalResponsePart {
  type: 'tool-approval-response';
  approvalId: string;
  approved: boolean;
}

type AssistantPart = ModelText | FilePart | ModelReasoning | PromptToolCall | ToolResultPart | ApprovalRequestPart;

/** A message of the conversation that led to a call, as in the AI SDK. */
export type ToolMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string | (ModelText | ImagePart | FilePart)[] }
  | { role: 'assistant'; content: string | AssistantPart[] }
  | { role: 'tool'; content: (ToolResultPart | ApprovalResponsePart)[] };

/**
 * The options of a tool call, as the AI SDK passes them. Rondo adds `idempotencyKey`, and `onToolOutputDelta` if the call
 * has a subscriber.
 */
export interface ToolCallOptions {
  /** The id that the model gave to the call. It is not unique: a model may use it again in another conversation. */
  toolCallId: string;
  messages: ToolMessage[];
  abortSignal?: AbortSignal;
  experimental_context?: unknown;
  /**
   * The same for every attempt at this call, and different for every other call of any turn. A tool with the safety
   * `keyed` passes it to the service that it calls. Undefined outside of Rondo's runtime.
   */
  idempotencyKey?: string;
  onToolOutputDelta?(delta: string): void;
}

/** The second argument of `execute`. */
export interface LoopsToolOptions extends ToolCallOptions {
  /** The target that a person approved. Act on no other target. Absent for a call that needed no approval. */
  readonly approvedTarget?: ApprovalTarget | undefined;
  /** Under a grant: the directories and hosts that the call may use. */
  readonly confinement?: Confinement | undefined;
  /** Streams a piece of output to subscribers. Does nothing if there are none. */
  onToolOutputDelta(delta: string): void;
}
