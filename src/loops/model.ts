/**
 * The port to models: providers, which open models of the AI SDK's provider interface (V3), and the journaled request
 * and reply.
 */
import type { Json } from '../protocol/json.js';
import type { BackendRef, JsonSchema } from '../protocol/loop.js';
import type { Model, ModelMessage, ModelTool } from '../protocol/model.js';
import type { RecordedToolCall } from '../views/messages.js';
import type { DefinitionOrigin } from './origin.js';

/** The context in which a provider opens a model. */
export interface OpenModelOptions {
  /** The origin of the definition. Relative paths in it start there. */
  readonly origin: DefinitionOrigin;
  /** The turn that calls the model. */
  readonly turnId: string;
  /** How many replies of this backend and model are recorded, in the turn for a prompt, in the session for an agent. */
  readonly replyCount: number;
}

/** Opens models by name. Definitions refer to a provider by its id. */
export interface ModelProvider {
  readonly id: string;
  /** The name of the model that is opened if a definition names none. */
  readonly defaultModel: string;
  /**
   * True if the models reply within this process and return the same reply with and without streaming. Replies without a
   * subscriber are then requested without streaming. Calls of other providers are always streamed, because some servers
   * answer the two kinds of requests differently, and the result of a turn must not depend on its subscribers.
   * @default false
   */
  readonly repliesLocally?: boolean;
  /** Opens a model. Throws a LoopError that explains what is missing, such as a package or an API key. */
  open(ref: BackendRef & { readonly model: string }, options: OpenModelOptions): Promise<Model>;
}

/** A request to a model, as it is journaled. */
export interface ModelRequest {
  readonly backendId: string;
  readonly model: string;
  /** Options of the backend. */
  readonly options?: { readonly [name: string]: Json };
  /** The length of prompt and system prompt in characters. It is approximate for a conversation. */
  readonly promptLength: number;
  /** The system prompt of a single prompt. */
  readonly system?: string;
  /** A digest of the system prompt of a conversation, so that a replay notices when it has changed. */
  readonly systemDigest?: string;
  /** The rendered prompt; absent for a conversation. */
  readonly prompt?: string;
  /** A digest of the context that is sent before the prompt; absent without one, and for a conversation. */
  readonly contextDigest?: string;
  /** The number of messages of a conversation. The messages themselves are journaled where they originate. */
  readonly messages?: number;
  /** A digest of the messages, present if replies are cached: it makes conversations with equal counts distinct. */
  readonly history?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  /** The JSON Schema of the reply, if the output is structured. */
  readonly schema?: Json;
}

/** A reply of a model, as it is journaled. A count that the provider does not report is absent, not zero. */
export interface ModelReply {
  readonly text: string;
  /** The model that answered, as the provider reports it. */
  readonly model: string;
  /** The finish reason, such as `stop`, `length` or `tool-calls`. */
  readonly finish: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** A count, recorded if the agent has a limit of it and the provider does not report it, or reports less output. */
  readonly estimatedInputTokens?: number;
  readonly estimatedOutputTokens?: number;
  readonly reasoning?: string;
  /** How long the reasoning took, in milliseconds. */
  readonly reasoningMs?: number;
  /** The tool calls. Their ids are unique within the reply, even if the model repeats one. */
  readonly toolCalls?: readonly RecordedToolCall[];
}

/** The parts of a conversation that are sent to a model but are not part of the journaled request. */
export interface ModelConversation {
  readonly system?: string | undefined;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
  /** The schema of the final answer, if the output is structured. */
  readonly schema?: JsonSchema | undefined;
}
