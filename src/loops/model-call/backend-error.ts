/**
 * Converts errors of a provider to BACKEND_FAILED, which states whether a retry may help. Provider errors are
 * untrusted: they are read field by field and bounded, and echoes of the request and secrets are removed.
 */

import { LoopError, withStackOf } from '../../base/errors.js';
import { singleLine, truncate } from '../../base/hidden-characters.js';
import { asNonEmptyText, ownProperty } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { ModelMessage } from '../../protocol/model.js';
import type { ModelConversation, ModelRequest } from '../model.js';

/** Upper bound on error messages and streamed tool names. */
export const MAX_MESSAGE_CHARS = 500;
/** A run of this many characters that also occurs in the request counts as an echo of it. */
const MIN_ECHO_CHARS = 20;

/** A request that was sent, and the conversation that it belongs to. */
export interface SentRequest {
  readonly request: ModelRequest;
  readonly conversation?: ModelConversation | undefined;
  /** The user message that was sent before the prompt of a request without a conversation. */
  readonly contextMessage?: ModelMessage | undefined;
}

/** The reason of an error without a message. */
const NO_REASON = 'it gave no reason';

interface FailureData {
  readonly retryable: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number;
}

/** Returns BACKEND_FAILED. `problem` continues a message that begins with the backend and the model. */
export function backendError({ request }: SentRequest, problem: string, data: FailureData): LoopError {
  const subject = `${request.backendId} '${request.model.slice(0, 200)}'`;
  return new LoopError('BACKEND_FAILED', truncateMessage(`${subject} ${problem}`), { ...data });
}

/**
 * Converts an error that a provider threw or sent; a LoopError is returned as it is. The error is retryable unless its
 * HTTP status or its `isRetryable` says otherwise.
 */
export function toBackendError(sent: SentRequest, thrown: unknown): LoopError {
  try {
    if (thrown instanceof LoopError) return thrown;
    return backendErrorFrom(sent, thrown, true);
  } catch {
    // A hostile error whose properties throw when they are read.
    return backendError(sent, `failed: ${NO_REASON}`, { retryable: true });
  }
}

/**
 * Converts an error of opening a model. Every error other than BACKEND_FAILED is converted, also other LoopErrors.
 * Without an HTTP status and `isRetryable`, only a network error is retryable: any other is a wrong setting.
 */
export function toOpenError(sent: SentRequest, thrown: unknown): LoopError {
  try {
    if (thrown instanceof LoopError && thrown.code === 'BACKEND_FAILED') return thrown;
    return backendErrorFrom(sent, thrown, isNetworkError(thrown));
  } catch {
    return backendError(sent, `failed: ${NO_REASON}`, { retryable: false });
  }
}

function backendErrorFrom(sent: SentRequest, thrown: unknown, retryableByDefault: boolean): LoopError {
  const status = httpStatusOf(thrown);
  const declared = ownProperty(thrown, 'isRetryable');
  const withoutStatus = typeof declared === 'boolean' ? declared : retryableByDefault;
  const retryable = status === undefined ? withoutStatus : status < 400 || isRetryableStatus(status);
  const retryAfterMs = retryAfterMsOf(ownProperty(ownProperty(thrown, 'responseHeaders'), 'retry-after'));
  const reason = redactSecrets(removeEcho(toShortLine(thrownMessageOf(thrown)), sent));
  const problem =
    status === undefined ? `failed: ${reason}` : `answered with status ${status}${statusHint(status)}: ${reason}`;
  const data = {
    retryable,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
  return withStackOf(backendError(sent, problem, data), thrown);
}

function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function statusHint(status: number): string {
  if (status === 401 || status === 403) return ' (check the API key)';
  return status === 404 ? ' (check the name of the model and the base URL)' : '';
}

/** Returns the HTTP status from `statusCode` (errors of the AI SDK) or `code` (error documents of servers). */
function httpStatusOf(thrown: unknown): number | undefined {
  const status = [ownProperty(thrown, 'statusCode'), ownProperty(thrown, 'code')].find(
    (value) => Number.isInteger(value) && Number(value) >= 100 && Number(value) < 600,
  );
  return status === undefined ? undefined : Number(status);
}

/** Converts the seconds of a `Retry-After` header to milliseconds. A date is ignored, because it would need a clock. */
function retryAfterMsOf(header: unknown): number | undefined {
  if (typeof header !== 'string' || !/^\d{1,9}(?:\.\d{1,9})?$/.test(header.trim())) return undefined;
  return Math.ceil(Number(header) * 1000);
}

const NETWORK_ERROR_CODES = new Set(
  'ECONNRESET ECONNREFUSED ECONNABORTED EPIPE ETIMEDOUT ENOTFOUND EAI_AGAIN ENETUNREACH EHOSTUNREACH'.split(' '),
);

/** True if the error or one of its first four causes is a network error, an abort or a timeout. */
function isNetworkError(thrown: unknown): boolean {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code = ownProperty(at, 'code');
    if (typeof code === 'string' && (NETWORK_ERROR_CODES.has(code) || code.startsWith('UND_ERR_'))) return true;
    if (at.name === 'AbortError' || at.name === 'TimeoutError') return true;
    if (at instanceof TypeError && /^(?:fetch failed|terminated)$/.test(at.message)) return true;
  }
  return false;
}

function thrownMessageOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  const message: unknown = thrown instanceof Error ? thrown.message : ownProperty(thrown, 'message');
  return asNonEmptyText(message) ?? NO_REASON;
}

function toShortLine(message: string): string {
  return singleLine(message.slice(0, MAX_MESSAGE_CHARS)).trim();
}

/**
 * Replaces echoes of the request with `[…]`. Servers often repeat a request that they refuse, and messages must not
 * contain it.
 */
function removeEcho(message: string, { request, conversation, contextMessage }: SentRequest): string {
  const { system = '', prompt = messageText(conversation?.messages.at(-1)), schema } = request;
  const context = messageText(contextMessage);
  const shortTexts = [system, prompt]
    .map((part) => singleLine(part).trim())
    .filter(({ length }) => length > 3 && length < MIN_ECHO_CHARS);
  const text = shortTexts.reduce((rest, part) => rest.replaceAll(part, '[…]'), message);
  const sent = singleLine(`${system}\n${prompt}\n${context}\n${JSON.stringify([system, prompt, schema ?? null])}`);
  // Every run contains one aligned half completely: if that half does not occur, the run need not be searched for.
  const half = MIN_ECHO_CHARS / 2;
  const isHalfSent = Array.from({ length: Math.ceil(text.length / half) + 1 }, (_, index) =>
    sent.includes(text.slice(index * half, (index + 1) * half)),
  );
  let clean = '';
  let echoEnd = 0;
  for (let at = 0; at < text.length; at++) {
    const run = text.slice(at, at + MIN_ECHO_CHARS);
    if (run.length === MIN_ECHO_CHARS && isHalfSent[Math.ceil(at / half)] && sent.includes(run)) {
      if (at >= echoEnd) clean += '[…]';
      echoEnd = at + MIN_ECHO_CHARS;
    }
    if (at >= echoEnd) clean += text[at];
  }
  return clean;
}

/** Returns the text of a message that servers may echo: of a conversation, the last one. */
function messageText(message: ModelMessage | undefined): string {
  if (message === undefined) return '';
  if (typeof message.content === 'string') return message.content;
  const texts = message.content.map((part) =>
    part.type === 'text' ? part.text : JSON.stringify(part as unknown as Json),
  );
  return texts.join('\n').slice(0, 100_000);
}

const SECRET_PATTERNS: readonly RegExp[] = [
  /\b(?:bearer|basic)\s+\S+/giu,
  /\b(?:authorization|(?:x-)?api[-_ ]?key|token|secret|password)["']?\s*[:=]\s*["']?[^\s"',}]+/giu,
  /\b(?:sk|pk|rk|gsk|xai|ghp)[-_][\w*-]{6,}/giu,
];

/** Redacts text that looks like a credential. Adapters remove the API keys that they use themselves. */
function redactSecrets(message: string): string {
  const redacted = SECRET_PATTERNS.reduce((text, pattern) => text.replace(pattern, '[secret]'), message);
  return redacted.replace(/[\w+=-]{32,}/gu, (run) => (/\d/.test(run) && /[a-z]/i.test(run) ? '[secret]' : run));
}

function truncateMessage(message: string): string {
  return message.length > MAX_MESSAGE_CHARS ? truncate(message, MAX_MESSAGE_CHARS - 1) : message;
}
