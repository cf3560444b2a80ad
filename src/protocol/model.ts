/**
 * A model as the AI SDK's provider interface V3 has it, in types of our own: a real LanguageModelV3 is a Model and a
 * Model is a LanguageModelV3 (src/adapters/models/port.test.ts holds both to it). Members that nobody here reads or
 * writes are left out where leaving them out keeps that true.
 */

/** JSON as providers type it: their lists and objects may be written to. */
export type ProviderJson =
  | null
  | string
  | number
  | boolean
  | ProviderJson[]
  | { [key: string]: ProviderJson | undefined };

/** Settings for one provider, by the provider's name. */
export type ProviderOptions = Record<string, { [key: string]: ProviderJson | undefined }>;

export interface ModelText {
  type: 'text';
  text: string;
}

export interface ModelReasoning {
  type: 'reasoning';
  text: string;
}

/** A call in the history that a model is shown: the input is a value. */
export interface PromptToolCall {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: unknown;
}

/** What a tool answered, in the history that a model is shown. */
export interface PromptToolResult {
  type: 'tool-result';
  toolCallId: string;
  toolName: string;
  output:
    | { type: 'text' | 'error-text'; value: string }
    | { type: 'json' | 'error-json'; value: ProviderJson }
    | { type: 'execution-denied'; reason?: string };
}

/** One message of the history. */
export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: ModelText[] }
  | { role: 'assistant'; content: (ModelText | ModelReasoning | PromptToolCall)[] }
  | { role: 'tool'; content: PromptToolResult[] };

/** A tool that the model may ask for. */
export interface ModelTool {
  type: 'function';
  name: string;
  description?: string;
  /** A JSON Schema document. */
  inputSchema: object;
}

export type ModelToolChoice = { type: 'auto' | 'none' | 'required' } | { type: 'tool'; toolName: string };

/** What a model is asked. */
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

/** A call that the model makes: the input is JSON as text, and may not parse. */
export interface ModelToolCall {
  type: 'tool-call';
  toolCallId: string;
  toolName: string;
  input: string;
  /** The provider runs it by itself. */
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

/** A piece of a whole answer. */
export type ModelContent =
  | ModelText
  | ModelReasoning
  | ModelToolCall
  | ModelToolResult
  | ModelToolApproval
  | ModelFile
  | ModelSource;

/** Why a model stopped: in words that all providers share, and in its own. */
export interface ModelFinishReason {
  unified: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
  raw: string | undefined;
}

/** What was used. Undefined is unknown, not zero. */
export interface ModelUsage {
  inputTokens: {
    total: number | undefined;
    noCache: number | undefined;
    cacheRead: number | undefined;
    cacheWrite: number | undefined;
  };
  outputTokens: { total: number | undefined; text: number | undefined; reasoning: number | undefined };
}

/** What a model could not do as it was asked. */
export type ModelWarning =
  | { type: 'unsupported' | 'compatibility'; feature: string; details?: string }
  | { type: 'other'; message: string };

/** A piece of an answer as it comes. */
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

/** A whole answer. */
export interface ModelGenerateResult {
  content: ModelContent[];
  finishReason: ModelFinishReason;
  usage: ModelUsage;
  warnings: ModelWarning[];
}

/** An answer as it comes. */
export interface ModelStreamResult {
  stream: ReadableStream<ModelStreamPart>;
}

/** Something that answers. */
export interface Model {
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  /** Which addresses the model fetches by itself, by media type. */
  supportedUrls: PromiseLike<Record<string, RegExp[]>> | Record<string, RegExp[]>;
  doGenerate(options: ModelCallOptions): PromiseLike<ModelGenerateResult>;
  doStream(options: ModelCallOptions): PromiseLike<ModelStreamResult>;
}
