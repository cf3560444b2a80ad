/**
 * Asking a model once: a journaled request becomes a call of the provider interface, what comes back a journaled
 * reply. By stream, but for a conversation that nobody watches: such a stream costs ten times the call and is put
 * together again unseen. Both ways the same parts make the answer. What a provider throws or sends is not trusted: it
 * is read field by field, bounded, and told without anything that was sent to it.
 */

import { abortListenersOf } from '../base/abort-listeners.js';
import { withLazyProperty } from '../base/lazy-property.js';
import { nonNegativeInteger, ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import type { Model, ModelCallOptions } from '../protocol/model.js';
import { userMessage } from '../views/messages.js';
import type { ModelConversation, ModelReply, ModelRequest } from './model.js';
import { backendError, type SentRequest, toBackendError } from './model-call/backend-error.js';
import { type ModelDelta, ModelReplyBuilder } from './model-call/reply-builder.js';

export type { ModelDelta } from './model-call/reply-builder.js';

/** How many parts are read before other work of the process gets its turn: a stream that is never empty would starve it. */
const PARTS_PER_YIELD = 256;
export interface CallModelOptions {
  readonly signal: AbortSignal;
  /** The signal that a model is handed which looks at it; the same unless told. */
  readonly signalForModel?: () => AbortSignal;
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Where the request is part of a conversation, the rest of it. */
  readonly conversation?: ModelConversation | undefined;
  /** The monotonic clock, for how long the thinking took. */
  readonly clock?: Pick<Clock, 'elapsed'> | undefined;
  /** Adds what is known of the tools that a reply calls. */
  readonly annotateReply?: ((reply: ModelReply) => ModelReply) | undefined;
  /** The most that a reply may have, 8 MiB unless told. */
  readonly maxBytes?: number;
}

type PartReader = ReadableStreamDefaultReader<unknown>;

/** Asks a model once. Every failure is BACKEND_FAILED and says whether to try again; an abort rejects with its reason. */
export function callModel(model: Model, request: ModelRequest, options: CallModelOptions): Promise<ModelReply> {
  const { signal, conversation, onDelta, annotateReply = unannotated } = options;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const sent: SentRequest = { request, conversation };
    assertV3(model, sent);
    const held: { reader?: PartReader } = {};
    // A model need not listen to the signal: whoever asked must not wait for it.
    const leave = (): void => {
      reject(signal.reason);
      if (held.reader !== undefined) cancelReader(held.reader);
    };
    const listeners = abortListenersOf(signal).add(leave);
    const whole = conversation !== undefined && onDelta === undefined;
    const answered = whole ? generateReply(model, sent, options) : streamReply(model, sent, options, held);
    answered.then(
      (reply) => {
        listeners.delete(leave);
        resolve(annotateReply(reply));
      },
      (thrown) => {
        listeners.delete(leave);
        reject(thrown);
      },
    );
  });
}

const unannotated = (reply: ModelReply): ModelReply => reply;

/** The version of the interface that a model speaks. What a backend opens need not be a model at all. */
function specificationVersionOf(model: Partial<Model> | null | undefined): unknown {
  try {
    return model?.specificationVersion;
  } catch {
    return undefined;
  }
}

function assertV3(model: Model, sent: SentRequest): void {
  const version = specificationVersionOf(model);
  if (version === 'v3') return;
  const found = typeof version === 'string' ? `version ${version.toUpperCase().slice(0, 20)}` : 'no known version';
  const what = `speaks ${found} of the provider interface; Rondo needs V3 (the packages made for AI SDK 6)`;
  throw backendError(sent, what, { retryable: false });
}

/** By `then` and not by waiting, which would cost as much as all the rest of it. */
function generateReply(model: Model, sent: SentRequest, options: CallModelOptions): Promise<ModelReply> {
  const fail = (thrown: unknown): Promise<never> => Promise.reject(toBackendError(sent, thrown));
  let asking: PromiseLike<unknown>;
  try {
    asking = model.doGenerate(modelCallOptionsOf(sent, options));
  } catch (thrown) {
    return fail(thrown);
  }
  return Promise.resolve(asking).then((result) => readGenerated(result, sent, options), fail);
}

function readGenerated(
  result: unknown,
  sent: SentRequest,
  options: CallModelOptions,
): ModelReply | Promise<ModelReply> {
  const content = ownProperty(result, 'content');
  const length = nonNegativeInteger(ownProperty(content, 'length'));
  if (length === undefined || !Array.isArray(content))
    throw backendError(sent, 'failed: what it gave has no list of content', { retryable: false });
  const answer = new ModelReplyBuilder(sent, options);
  const response = ownProperty(result, 'response');
  if (response !== undefined) answer.addResponseMetadata(response);
  answer.finishPart = result;
  if (length > PARTS_PER_YIELD) return readGeneratedInBatches(content, length, answer, options.signal);
  for (let nth = 0; nth < length; nth++) answer.addContentPart(ownProperty(content, nth));
  return answer.build();
}

async function readGeneratedInBatches(
  content: readonly unknown[],
  length: number,
  answer: ModelReplyBuilder,
  signal: AbortSignal,
): Promise<ModelReply> {
  for (let nth = 0; nth < length; nth++) {
    answer.addContentPart(ownProperty(content, nth));
    if ((nth + 1) % PARTS_PER_YIELD > 0) continue;
    await yieldToEventLoop();
    signal.throwIfAborted();
  }
  return answer.build();
}

/** Reads until the answer is whole; whatever happens, the stream is over when this ends. */
async function streamReply(
  model: Model,
  sent: SentRequest,
  options: CallModelOptions,
  held: { reader?: PartReader },
): Promise<ModelReply> {
  const { signal } = options;
  let reader: PartReader;
  try {
    const { stream } = await model.doStream(modelCallOptionsOf(sent, options));
    reader = stream.getReader();
  } catch (thrown) {
    throw toBackendError(sent, thrown);
  }
  held.reader = reader;
  try {
    signal.throwIfAborted();
    const answer = new ModelReplyBuilder(sent, options);
    for (let taken = 1; ; taken++) {
      let read: unknown;
      try {
        read = await reader.read();
      } catch (thrown) {
        throw toBackendError(sent, thrown, true);
      }
      signal.throwIfAborted();
      if (answer.addStreamPart(streamPartOf(read, sent))) return answer.build();
      if (taken % PARTS_PER_YIELD === 0) await yieldToEventLoop();
    }
  } finally {
    cancelReader(reader);
  }
}

/** The part that was read. No promise may hold it by itself: one that has a `then` would be called and waited for. */
function streamPartOf(read: unknown, sent: SentRequest): unknown {
  if (typeof read !== 'object' || read === null)
    throw backendError(sent, 'failed: what its stream gave is no part of one', { retryable: false });
  if (ownProperty(read, 'done') === true)
    throw backendError(sent, 'stopped in the middle of its answer', { retryable: true });
  return ownProperty(read, 'value');
}

/** Whether a stream that nobody wants any more ends well is nobody's business. */
function cancelReader(reader: PartReader): void {
  try {
    reader.cancel().then(undefined, () => {});
  } catch {}
}

function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function modelCallOptionsOf(
  { request, conversation }: SentRequest,
  { signal, signalForModel }: CallModelOptions,
): ModelCallOptions {
  const { system = conversation?.system, prompt = '', maxTokens, temperature } = request;
  const messages = conversation?.messages.slice() ?? [userMessage(prompt)];
  // Some providers refuse an empty system prompt.
  if (system) messages.unshift({ role: 'system', content: system });
  const call: ModelCallOptions = { prompt: messages, abortSignal: signal };
  if (maxTokens !== undefined) call.maxOutputTokens = maxTokens;
  if (temperature !== undefined) call.temperature = temperature;
  if (conversation !== undefined && conversation.tools.length > 0) {
    call.tools = conversation.tools.slice();
    call.toolChoice = { type: 'auto' };
  }
  const schema = conversation === undefined ? request.schema : conversation.schema;
  if (schema !== undefined)
    call.responseFormat = typeof schema === 'object' && schema !== null ? { type: 'json', schema } : { type: 'json' };
  return signalForModel === undefined ? call : withLazyProperty(call, 'abortSignal', signalForModel);
}
