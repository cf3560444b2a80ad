/**
 * The model interface, structurally compatible with the AI SDK's LanguageModelV3 without a dependency on it: each type is
 * assignable to the other (src/adapters/models/port.test.ts checks both directions). Members that Rondo neither reads
 * nor writes are omitted where assignability does not need them.
 */

/** JSON as provider packages type it: arrays and objects are mutable. */
export type ProviderJson =
  | null
  | string
  | number
  | boolean
  | ProviderJson[]
  | { [key: string]: ProviderJson | undefined };

/** Provider-specific settings by provider name. */
export type ProviderOptions = Record<string, { [key: string]: ProviderJson | undefined }>;

/** A text part of a message. */
export interface ModelText {
  type: 'text';
  text: string;
}

/** A reasoning part of a message. */
export interface ModelReasoning {
  type: 'reasoning';
  text: string;
}

/** A tool call in the prompt's message history. Its input is a parsed value. */
export interface PromptToolCall {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: unknown;
}

/** A tool result in the prompt's message history. */
export interface PromptToolResult {
  type: 'tool-result';
  toolCallId: string;
  toolName: string;
  output:
    | { type: 'text' | 'error-text'; value: string }
    | { type: 'json' | 'error-json'; value: ProviderJson }
    | { type: 'execution-denied'; reason?: string };
}

/** One message of the prompt. */
export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: ModelText[] }
  | { role: 'assistant'; content: (ModelText | ModelReasoning | PromptToolCall)[] }
  | { role: 'tool'; content: PromptToolResult[] };

/** A tool that the model may call. */
export interface ModelTool {
  type: 'function';
  name: string;
  description?: string;
  /** A JSON Schema document. */
  inputSchema: object;
}

type ModelToolChoice = { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string };

/** The arguments of one model call. */
export interface ModelCallOptions {
  prompt: ModelMessage[];
  maxOutputTokens?: number;
  temperature?: number;
  responseFormat?: { type: 'text' } | { type: 'json'; schema?: object };
  tools?: ModelTool[];
  toolChoice?: ModelToolChoice;
  abortSignal?: AbortSignal;
  providerOptions?: ProviderOptions;
}

/** A tool call that the model makes. Its input is JSON text, and may be malformed. */
export interface ModelToolCall {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: string;
  /** True if the provider runs the tool itself. */
  providerExecuted?: boolean;
}

interface ModelToolResult {
  type: 'tool-result';
  toolCallId: string;
  toolName: string;
  result: NonNullable<ProviderJson>;
}

interface ModelToolApproval {
  type: 'tool-approval-request';
  approvalId: string;
  toolCallId: string;
}

interface ModelFile {
  type: 'file';
  mediaType: string;
  data: string | Uint8Array;
}

type ModelSource =
  | { type: 'source'; sourceType: 'url'; id: string; url: string }
  | { type: 'source'; sourceType: 'document'; id: string; mediaType: string; title: string };

/** One part of a complete answer. */
export type ModelContent =
  | ModelText
  | ModelReasoning
  | ModelToolCall
  | ModelToolResult
  | ModelToolApproval
  | ModelFile
  | ModelSource;

/** Why a model stopped: in terms common to all providers (`unified`), and as the provider reports it (`raw`). */
export interface ModelFinishReason {
  unified: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
  raw: string | undefined;
}

/** Token usage of a call. Undefined means unknown, not zero. */
export interface ModelUsage {
  inputTokens: {
    total: number | undefined;
    noCache: number | undefined;
    cacheRead: number | undefined;
    cacheWrite: number | undefined;
  };
  outputTokens: { total: number | undefined; text: number | undefined; reasoning: number | undefined };
}

/** A warning about a call: a feature that the model does not fully support, or another message. */
type ModelWarning =
  | { type: 'unsupported' | 'compatibility'; feature: string; details?: string }
  | { type: 'other'; message: string };

/** One part of a streamed answer. */
export type ModelStreamPart =
  | { type: 'stream-start'; warnings: ModelWarning[] }
  | { type: 'response-metadata'; id?: string; timestamp?: Date; modelId?: string }
  | { type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end' | 'tool-input-end'; id: string }
  | { type: 'text-delta' | 'reasoning-delta' | 'tool-input-delta'; id: string; delta: string }
  | { type: 'tool-input-start'; id: string; toolName: string }
  | ModelToolCall
  | ModelToolResult
  | ModelToolApproval
  | ModelFile
  | ModelSource
  | { type: 'finish'; usage: ModelUsage; finishReason: ModelFinishReason }
  | { type: 'raw'; rawValue: unknown }
  | { type: 'error'; error: unknown };

/** A complete answer. */
export interface ModelGenerateResult {
  content: ModelContent[];
  finishReason: ModelFinishReason;
  usage: ModelUsage;
  warnings: ModelWarning[];
}

interface ModelStreamResult {
  stream: ReadableStream<ModelStreamPart>;
}

/** A language model. Any AI SDK model with the V3 interface is one. */
export interface Model {
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  /** The URLs that the provider fetches itself, by media type. */
  supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>;
  /** Calls the model and returns its complete answer. */
  doGenerate(options: ModelCallOptions): PromiseLike<ModelGenerateResult>;
  /** Calls the model and returns its answer as a stream. */
  doStream(options: ModelCallOptions): PromiseLike<ModelStreamResult>;
}
