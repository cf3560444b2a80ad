/** The port to models: a backend by id, which opens models that speak the provider interface of the AI SDK (V3). */
import type { Json } from '../protocol/json.js';
import type { BackendRef, JsonSchema } from '../protocol/loop.js';
import type { Model, ModelMessage, ModelTool } from '../protocol/model.js';
import type { RecordedToolCall } from '../views/messages.js';
import type { DefinitionOrigin } from './origin.js';

/** Where a model is asked from. */
export interface OpenModelOptions {
  /** Where the definition comes from: relative paths in it start there. */
  readonly origin: DefinitionOrigin;
  /** The turn that asks. */
  readonly turnId: string;
  /** How many answers of this backend and model the turn has already recorded, in this process or an earlier one. */
  readonly replyCount: number;
}

/** A kind of model that definitions name by id. */
export interface ModelProvider {
  readonly id: string;
  /** What answers when a definition names no model. */
  readonly defaultModel: string;
  /** Loads what is needed and makes the model; a LoopError says what is missing and how to get it. */
  open(ref: BackendRef & { readonly model: string }, asking: OpenModelOptions): Promise<Model>;
}

/** What is sent to a model, as it is journaled. */
export interface ModelRequest {
  readonly backendId: string;
  readonly model: string;
  readonly options?: { readonly [name: string]: Json };
  /** Characters of the rendered prompt, the system prompt included; of a conversation, about how many. */
  readonly promptLength: number;
  readonly system?: string;
  /** What is asked, when it is one question. */
  readonly prompt?: string;
  /** Of a conversation: how many messages it has by now. They are journaled where they arose. */
  readonly messages?: number;
  /** A digest over them, where answers are kept: it is all that tells one conversation from another there. */
  readonly history?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  /** The schema of the answer, when it is more than text. */
  readonly schema?: Json;
}

/** What came back, as it is journaled. A count that the provider did not tell is absent, not zero. */
export interface ModelReply {
  readonly text: string;
  readonly model: string;
  readonly finish: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly reasoning?: string;
  /** How long the thinking took, in milliseconds. */
  readonly reasoningMs?: number;
  /** Each under an id of its own, whatever the model called it. */
  readonly toolCalls?: readonly RecordedToolCall[];
}

/** What a conversation shows a model beside what is journaled of the request. */
export interface ModelConversation {
  readonly system?: string | undefined;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
  /** The schema of the final answer, when it is more than text. */
  readonly schema?: JsonSchema | undefined;
}
