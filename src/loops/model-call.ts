/**
 * Calls a model once: converts a journaled request to a call of the provider interface, and its result to a journaled
 * reply. It streams, except for a conversation without a subscriber whose model may be called without streaming:
 * streaming costs ten times as much as the call itself. Both ways build the reply from the same parts. Data and errors of a provider are untrusted: they are read
 * field by field, bounded, and reported without echoing the request.
 */

import { abortListenersOf } from '../base/abort-listeners.js';
import { LoopError } from '../base/errors.js';
import { withLazyProperty } from '../base/lazy-property.js';
import { asNonNegativeInteger, ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import type { OutputMeter } from '../protocol/body.js';
import type { Model, ModelCallOptions, ModelMessage } from '../protocol/model.js';
import { userMessage } from '../views/messages.js';
import type { ModelConversation, ModelReply, ModelRequest } from './model.js';
import { backendError, type SentRequest, toBackendError } from './model-call/backend-error.js';
import { type ModelDelta, ModelReplyBuilder } from './model-call/reply-builder.js';
import type { Watchdog } from './watchdog.js';

export type { ModelDelta } from './model-call/reply-builder.js';

/**
 * The number of parts that are read before yielding to the event loop. A stream that always has data would block it.
 */
const PARTS_PER_YIELD = 256;

/** The options of `callModel`. */
export interface CallModelOptions {
  /** Cancels the call. It may be shared: all listeners are removed when the call ends. */
  readonly signal: AbortSignal;
  /**
   * Ends the call with TIMEOUT after `ms` milliseconds, even if the model ignores its signal.
   * @default no timeout
   */
  readonly timeout?: { readonly ms: number; readonly watchdog: Watchdog } | undefined;
  /** Receives each piece of the reply as it arrives. */
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Counts each piece of a streamed reply before it is passed on. */
  readonly outputMeter?: OutputMeter | undefined;
  /**
   * True to stream the reply even without a subscriber, so that the reply does not depend on subscribers.
   * @default false
   */
  readonly alwaysStreams?: boolean;
  /** The rest of the conversation that the request belongs to. */
  readonly conversation?: ModelConversation | undefined;
  /** The user message that is sent before the prompt of a request without a conversation. */
  readonly contextMessage?: ModelMessage | undefined;
  /** The monotonic clock that measures the reasoning time. */
  readonly clock?: Pick<Clock, 'elapsed'> | undefined;
  /** Adds information about the called tools to the reply. */
  readonly annotateReply?: ((reply: ModelReply) => ModelReply) | undefined;
  /**
   * The maximum size of a reply in bytes of UTF-8. Data that is not part of the reply has the same limit.
   * @default 8_388_608 (8 MiB)
   */
  readonly maxBytes?: number;
}

type PartReader = ReadableStreamDefaultReader<unknown>;

/** The state of a call that ends it early. */
interface OpenCall {
  /** The stream, once the model has opened it. */
  reader?: PartReader;
  /** Aborts the signal that the model gets. Created when the model first reads it: few calls need one. */
  controller?: AbortController;
  /** Why the call was ended early. */
  ended?: { readonly reason: unknown };
}

/** Throws the reason if the call was ended early. */
function assertNotEnded({ ended }: OpenCall): void {
  if (ended !== undefined) throw ended.reason;
}

/**
 * Calls a model once. Rejects with BACKEND_FAILED, which states whether a retry may help, with a LoopError that the
 * provider threw, or with the reason of an abort.
 */
export function callModel(model: Model, request: ModelRequest, options: CallModelOptions): Promise<ModelReply> {
  const { signal, conversation, contextMessage, onDelta, alwaysStreams, timeout } = options;
  const { annotateReply = unannotated } = options;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const sent: SentRequest = { request, conversation, contextMessage };
    assertV3(model, sent);
    const open: OpenCall = {};
    // The model may ignore the signal, so an abort rejects at once.
    const end = (reason: unknown): void => {
      reject(reason);
      open.ended = { reason };
      open.controller?.abort(reason);
      if (open.reader !== undefined) cancelReader(open.reader);
    };
    const onAbort = (): void => end(signal.reason);
    const listeners = abortListenersOf(signal).add(onAbort);
    const finish = timeout?.watchdog.watch(timeout.ms, () => end(modelTimeoutError(request, timeout.ms)));
    const canGenerate = conversation !== undefined && onDelta === undefined && alwaysStreams !== true;
    const result = canGenerate ? generateReply(model, sent, options, open) : streamReply(model, sent, options, open);
    result.then(
      (reply) => {
        listeners.delete(onAbort);
        finish?.();
        resolve(annotateReply(reply));
      },
      (thrown) => {
        listeners.delete(onAbort);
        finish?.();
        reject(thrown);
      },
    );
  });
}

/** Returns the error of a model call that took longer than its timeout. */
export function modelTimeoutError({ backendId }: ModelRequest, ms: number): LoopError {
  const message = `"${backendId}" did not end within ${ms} ms. Set policy.timeoutMs if it needs longer.`;
  return new LoopError('TIMEOUT', message, { retryable: true, timeoutMs: ms });
}

const unannotated = (reply: ModelReply): ModelReply => reply;

/** Returns the version of the provider interface. The value is untrusted: a provider may return anything as a model. */
function specificationVersionOf(model: Partial<Model> | null | undefined): unknown {
  try {
    return model?.specificationVersion;
  } catch {
    return undefined;
  }
}

/** Throws BACKEND_FAILED if the model does not implement version 3 of the provider interface. */
function assertV3(model: Model, sent: SentRequest): void {
  const version = specificationVersionOf(model);
  if (version === 'v3') return;
  const actual = typeof version === 'string' ? `version ${version.toUpperCase().slice(0, 20)}` : 'no known version';
  const problem = `speaks ${actual} of the provider interface; Rondo needs V3 (the packages made for AI SDK 6)`;
  throw backendError(sent, problem, { retryable: false });
}

/** Calls `doGenerate`. It uses `then` instead of `await`, whose overhead would double the cost of the call. */
function generateReply(
  model: Model,
  sent: SentRequest,
  options: CallModelOptions,
  open: OpenCall,
): Promise<ModelReply> {
  const fail = (thrown: unknown): Promise<never> => Promise.reject(toBackendError(sent, thrown));
  let generated: PromiseLike<unknown>;
  try {
    generated = model.doGenerate(modelCallOptionsOf(sent, options, open));
  } catch (thrown) {
    return fail(thrown);
  }
  return Promise.resolve(generated).then((result) => readGenerated(result, sent, options), fail);
}

function readGenerated(
  result: unknown,
  sent: SentRequest,
  options: CallModelOptions,
): ModelReply | Promise<ModelReply> {
  const content = ownProperty(result, 'content');
  const length = asNonNegativeInteger(ownProperty(content, 'length'));
  if (length === undefined || !Array.isArray(content))
    throw backendError(sent, 'failed: its result has no list of content', { retryable: false });
  const builder = new ModelReplyBuilder(sent, options);
  const response = ownProperty(result, 'response');
  if (response !== undefined) builder.addResponseMetadata(response);
  builder.finishPart = result;
  if (length > PARTS_PER_YIELD) return readGeneratedInBatches(content, length, builder, options.signal);
  for (let index = 0; index < length; index++) builder.addContentPart(ownProperty(content, index));
  return builder.build();
}

async function readGeneratedInBatches(
  content: readonly unknown[],
  length: number,
  builder: ModelReplyBuilder,
  signal: AbortSignal,
): Promise<ModelReply> {
  for (let index = 0; index < length; index++) {
    builder.addContentPart(ownProperty(content, index));
    if ((index + 1) % PARTS_PER_YIELD > 0) continue;
    await yieldToEventLoop();
    signal.throwIfAborted();
  }
  return builder.build();
}

/** Reads the stream until the reply is complete. The stream is always cancelled at the end. */
async function streamReply(
  model: Model,
  sent: SentRequest,
  options: CallModelOptions,
  open: OpenCall,
): Promise<ModelReply> {
  let reader: PartReader;
  try {
    const { stream } = await model.doStream(modelCallOptionsOf(sent, options, open));
    reader = stream.getReader();
  } catch (thrown) {
    throw toBackendError(sent, thrown);
  }
  open.reader = reader;
  try {
    const builder = new ModelReplyBuilder(sent, options);
    for (let partCount = 1; ; partCount++) {
      assertNotEnded(open);
      let read: unknown;
      try {
        read = await reader.read();
      } catch (thrown) {
        throw toBackendError(sent, thrown);
      }
      assertNotEnded(open);
      if (builder.addStreamPart(streamPartOf(read, sent))) return builder.build();
      if (partCount % PARTS_PER_YIELD === 0) await yieldToEventLoop();
    }
  } finally {
    cancelReader(reader);
  }
}

/**
 * Returns the part that was read. Throws BACKEND_FAILED if the stream has ended before its finish part. The part is
 * never returned from an async function, which would call its `then` if it has one.
 */
function streamPartOf(read: unknown, sent: SentRequest): unknown {
  if (typeof read !== 'object' || read === null)
    throw backendError(sent, 'failed: its stream returned an invalid result', { retryable: false });
  if (ownProperty(read, 'done') === true)
    throw backendError(sent, 'stopped before its reply was complete', { retryable: true });
  return ownProperty(read, 'value');
}

/** Cancels a stream and ignores errors: its result is no longer needed. */
function cancelReader(reader: PartReader): void {
  try {
    reader.cancel().then(undefined, () => {});
  } catch {}
}

function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function modelCallOptionsOf(
  { request, conversation, contextMessage }: SentRequest,
  { signal }: CallModelOptions,
  open: OpenCall,
): ModelCallOptions {
  const { system = conversation?.system, prompt = '', maxTokens, temperature } = request;
  const messages = conversation?.messages.slice() ?? [userMessage(prompt)];
  if (conversation === undefined && contextMessage !== undefined) messages.unshift(contextMessage);
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
  return withLazyProperty(call, 'abortSignal', () => modelSignalOf(open));
}

/** Returns a signal of the call itself: a model may leave listeners on it. */
function modelSignalOf(open: OpenCall): AbortSignal {
  open.controller ??= new AbortController();
  if (open.ended !== undefined) open.controller.abort(open.ended.reason);
  return open.controller.signal;
}
