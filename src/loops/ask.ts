/**
 * Asking a model once: a journaled request becomes a call of the provider interface, what comes back a journaled
 * reply. By stream, but for a conversation that nobody watches: such a stream costs ten times the call and is put
 * together again unseen. Both ways the same parts make the answer. What a provider throws or sends is not trusted: it
 * is read field by field, bounded, and told without anything that was sent to it.
 */

import { listenersOf } from '../base/abort-listeners.js';
import { lazy } from '../base/lazy.js';
import { nonNegativeInteger, ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import type { Model, ModelCallOptions } from '../protocol/model.js';
import { userMessage } from '../views/messages.js';
import { Answer, type ModelDelta } from './ask/answer.js';
import { failed, failureOf, type Sent } from './ask/failure.js';
import type { ConversationParts, ModelReply, ModelRequest } from './model.js';

export type { ModelDelta } from './ask/answer.js';

/** How many parts are read before other work of the process gets its turn: a stream that is never empty would starve it. */
const BREATH = 256;
export interface AskOptions {
  readonly signal: AbortSignal;
  /** The signal that a model is handed which looks at it; the same unless told. */
  readonly handed?: () => AbortSignal;
  readonly onDelta?: ((delta: ModelDelta) => void) | undefined;
  /** Where the request is part of a conversation, the rest of it. */
  readonly conversation?: ConversationParts | undefined;
  /** The monotonic clock, for how long the thinking took. */
  readonly clock?: Pick<Clock, 'elapsed'> | undefined;
  /** Adds what is known of the tools that a reply calls. */
  readonly known?: ((reply: ModelReply) => ModelReply) | undefined;
  /** The most that a reply may have, 8 MiB unless told. */
  readonly maxBytes?: number;
}

type Reader = ReadableStreamDefaultReader<unknown>;

/** Asks a model once. Every failure is BACKEND_FAILED and says whether to try again; an abort rejects with its reason. */
export function ask(model: Model, request: ModelRequest, options: AskOptions): Promise<ModelReply> {
  const { signal, conversation, onDelta, known = asItIs } = options;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const sent: Sent = { request, conversation };
    demandV3(model, sent);
    const held: { reader?: Reader } = {};
    // A model need not listen to the signal: whoever asked must not wait for it.
    const leave = (): void => {
      reject(signal.reason);
      if (held.reader !== undefined) cancel(held.reader);
    };
    const listeners = listenersOf(signal).add(leave);
    const whole = conversation !== undefined && onDelta === undefined;
    const answered = whole ? generated(model, sent, options) : streamed(model, sent, options, held);
    answered.then(
      (reply) => {
        listeners.delete(leave);
        resolve(known(reply));
      },
      (thrown) => {
        listeners.delete(leave);
        reject(thrown);
      },
    );
  });
}

const asItIs = (reply: ModelReply): ModelReply => reply;

/** The version of the interface that a model speaks. What a backend opens need not be a model at all. */
function versionOf(model: Partial<Model> | null | undefined): unknown {
  try {
    return model?.specificationVersion;
  } catch {
    return undefined;
  }
}

function demandV3(model: Model, sent: Sent): void {
  const version = versionOf(model);
  if (version === 'v3') return;
  const found = typeof version === 'string' ? `version ${version.toUpperCase().slice(0, 20)}` : 'no known version';
  const what = `speaks ${found} of the provider interface; Rondo needs V3 (the packages made for AI SDK 6)`;
  throw failed(sent, what, { retryable: false });
}

/** By `then` and not by waiting, which would cost as much as all the rest of it. */
function generated(model: Model, sent: Sent, options: AskOptions): Promise<ModelReply> {
  const fail = (thrown: unknown): Promise<never> => Promise.reject(failureOf(sent, thrown));
  let asking: PromiseLike<unknown>;
  try {
    asking = model.doGenerate(callOf(sent, options));
  } catch (thrown) {
    return fail(thrown);
  }
  return Promise.resolve(asking).then((result) => wholeOf(result, sent, options), fail);
}

function wholeOf(result: unknown, sent: Sent, options: AskOptions): ModelReply | Promise<ModelReply> {
  const content = ownProperty(result, 'content');
  const length = nonNegativeInteger(ownProperty(content, 'length'));
  if (length === undefined || !Array.isArray(content))
    throw failed(sent, 'failed: what it gave has no list of content', { retryable: false });
  const answer = new Answer(sent, options);
  const response = ownProperty(result, 'response');
  if (response !== undefined) answer.takeAbout(response);
  answer.finish = result;
  if (length > BREATH) return readSlowly(content, length, answer, options.signal);
  for (let nth = 0; nth < length; nth++) answer.takeWhole(ownProperty(content, nth));
  return answer.reply();
}

async function readSlowly(
  content: readonly unknown[],
  length: number,
  answer: Answer,
  signal: AbortSignal,
): Promise<ModelReply> {
  for (let nth = 0; nth < length; nth++) {
    answer.takeWhole(ownProperty(content, nth));
    if ((nth + 1) % BREATH > 0) continue;
    await breath();
    signal.throwIfAborted();
  }
  return answer.reply();
}

/** Reads until the answer is whole; whatever happens, the stream is over when this ends. */
async function streamed(model: Model, sent: Sent, options: AskOptions, held: { reader?: Reader }): Promise<ModelReply> {
  const { signal } = options;
  let reader: Reader;
  try {
    const { stream } = await model.doStream(callOf(sent, options));
    reader = stream.getReader();
  } catch (thrown) {
    throw failureOf(sent, thrown);
  }
  held.reader = reader;
  try {
    signal.throwIfAborted();
    const answer = new Answer(sent, options);
    for (let taken = 1; ; taken++) {
      let read: unknown;
      try {
        read = await reader.read();
      } catch (thrown) {
        throw failureOf(sent, thrown, true);
      }
      signal.throwIfAborted();
      if (answer.take(partIn(read, sent))) return answer.reply();
      if (taken % BREATH === 0) await breath();
    }
  } finally {
    cancel(reader);
  }
}

/** The part that was read. No promise may hold it by itself: one that has a `then` would be called and waited for. */
function partIn(read: unknown, sent: Sent): unknown {
  if (typeof read !== 'object' || read === null)
    throw failed(sent, 'failed: what its stream gave is no part of one', { retryable: false });
  if (ownProperty(read, 'done') === true)
    throw failed(sent, 'stopped in the middle of its answer', { retryable: true });
  return ownProperty(read, 'value');
}

/** Whether a stream that nobody wants any more ends well is nobody's business. */
function cancel(reader: Reader): void {
  try {
    reader.cancel().then(undefined, () => {});
  } catch {}
}

function breath(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function callOf({ request, conversation }: Sent, { signal, handed }: AskOptions): ModelCallOptions {
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
  return handed === undefined ? call : lazy(call, 'abortSignal', handed);
}
