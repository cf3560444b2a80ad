/**
 * Asking a model once: a journaled request becomes a call of the provider interface, the stream that comes back a
 * journaled reply. Always by stream, so that there is one path. What a provider throws or sends is not trusted: it is
 * read field by field, bounded, and told without anything that was sent to it.
 */
import type { Model, ModelCallOptions } from '../protocol/model.js';
import { userMessage } from '../views/messages.js';
import { Answer, type ModelDelta } from './ask/answer.js';
import { failed, failureOf, fromNetwork, type Sent } from './ask/failure.js';
import type { ConversationParts, ModelReply, ModelRequest } from './model.js';

export type { ModelDelta } from './ask/answer.js';

/** How many parts are read before other work of the process gets its turn: a stream that is never empty would starve it. */
const BREATH = 256;
export interface AskOptions {
  readonly signal: AbortSignal;
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Where the request is part of a conversation, the rest of it. */
  readonly conversation?: ConversationParts | undefined;
  /** The time, for how long the thinking took. */
  readonly now?: (() => number) | undefined;
  /** The most that a reply may have, 8 MiB unless told. */
  readonly maxBytes?: number;
}

/** Asks a model once. Every failure is BACKEND_FAILED and says whether to try again; an abort rejects with its reason. */
export function ask(model: Model, request: ModelRequest, options: AskOptions): Promise<ModelReply> {
  const { signal } = options;
  const stop = new AbortController();
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const leave = (): void => {
      reject(signal.reason);
      stop.abort(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    void answerOf(model, { request, conversation: options.conversation }, options, stop)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', leave));
  });
}

/** Reads until the answer is whole; whatever happens, the model is stopped when this ends. */
async function answerOf(model: Model, sent: Sent, options: AskOptions, stop: AbortController): Promise<ModelReply> {
  try {
    const reader = await open(model, sent, stop.signal);
    const leave = (): void => void cancel(reader);
    if (stop.signal.aborted) leave();
    else stop.signal.addEventListener('abort', leave, { once: true });
    const answer = new Answer(sent, options);
    for (let count = 1; ; count++) {
      const part = await next(reader, sent);
      stop.signal.throwIfAborted();
      if (answer.take(part)) return answer.reply();
      if (count % BREATH === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    stop.abort();
  }
}

async function open(model: Model, sent: Sent, signal: AbortSignal): Promise<ReadableStreamDefaultReader<unknown>> {
  const version: unknown = model.specificationVersion;
  if (version !== 'v3') {
    const found = typeof version === 'string' ? `version ${version.toUpperCase().slice(0, 20)}` : 'no known version';
    const what = `speaks ${found} of the provider interface; Rondo needs V3 (the packages made for AI SDK 6)`;
    throw failed(sent, what, { retryable: false });
  }
  try {
    const { stream } = await model.doStream(callOf(sent, signal));
    return stream.getReader();
  } catch (thrown) {
    throw failureOf(sent, thrown, fromNetwork(thrown));
  }
}

/** Whether a stream that nobody wants any more ends well is nobody's business. */
async function cancel(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  try {
    await reader.cancel();
  } catch {}
}

async function next(reader: ReadableStreamDefaultReader<unknown>, sent: Sent): Promise<unknown> {
  let read: { done: boolean; value?: unknown };
  try {
    read = await reader.read();
  } catch (thrown) {
    throw failureOf(sent, thrown, true);
  }
  if (read.done) throw failed(sent, 'stopped in the middle of its answer', { retryable: true });
  return read.value;
}

function callOf({ request, conversation }: Sent, abortSignal: AbortSignal): ModelCallOptions {
  const { system = conversation?.system, prompt = '', maxTokens, temperature } = request;
  const messages = conversation?.messages.slice() ?? [userMessage(prompt)];
  // Some providers refuse an empty system prompt.
  if (system) messages.unshift({ role: 'system', content: system });
  const call: ModelCallOptions = { prompt: messages, abortSignal };
  if (maxTokens !== undefined) call.maxOutputTokens = maxTokens;
  if (temperature !== undefined) call.temperature = temperature;
  if (conversation !== undefined && conversation.tools.length > 0) {
    call.tools = conversation.tools.slice();
    call.toolChoice = { type: 'auto' };
  }
  const schema = conversation === undefined ? request.schema : conversation.schema;
  if (schema === undefined) return call;
  call.responseFormat = typeof schema === 'object' && schema !== null ? { type: 'json', schema } : { type: 'json' };
  return call;
}
