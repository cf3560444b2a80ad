/** The port to models: a backend by id, which opens models that speak the provider interface of the AI SDK (V3). */
import type { Json } from '../protocol/json.js';
import type { BackendRef } from '../protocol/loop.js';
import type { Model } from '../protocol/model.js';
import type { Origin } from './origin.js';

/** Where a model is asked from. */
export interface Asking {
  /** Where the definition comes from: relative paths in it start there. */
  readonly origin: Origin;
  /** The turn that asks. */
  readonly turn: string;
  /** How many answers of this backend and model the turn has already recorded, in this process or an earlier one. */
  readonly answered: number;
}

/** A kind of model that definitions name by id. */
export interface Backend {
  readonly id: string;
  /** What answers when a definition names no model. */
  readonly defaultModel: string;
  /** Loads what is needed and makes the model; a LoopError says what is missing and how to get it. */
  open(ref: BackendRef & { readonly model: string }, asking: Asking): Promise<Model>;
}

/** What is sent to a model, as it is journaled. */
export interface ModelRequest {
  readonly backendId: string;
  readonly model: string;
  readonly options?: { readonly [name: string]: Json };
  /** Characters of the rendered prompt, the system prompt included. */
  readonly promptLength: number;
  readonly system?: string;
  readonly prompt: string;
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
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly input: string }[];
}
