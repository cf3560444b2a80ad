/**
 * What a provider throws or sends instead of an answer, as an outcome that says whether to try again: read field by
 * field, bounded, and told without anything that was sent to it.
 */

import { LoopError } from '../../base/errors.js';
import { singleLine, truncate } from '../../base/hidden-characters.js';
import { nonEmptyText, ownProperty } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { ModelConversation, ModelRequest } from '../model.js';

export const MAX_MESSAGE_CHARS = 500;
/** A run of this many characters that the request has too is taken for an echo of it. */
const MIN_ECHO_CHARS = 20;

/** What was sent: the request, and the conversation that it is part of. */
export interface SentRequest {
  readonly request: ModelRequest;
  readonly conversation?: ModelConversation | undefined;
}

interface FailureData {
  readonly retryable: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number;
}

export function backendError({ request }: SentRequest, what: string, data: FailureData): LoopError {
  const who = `${request.backendId} '${request.model.slice(0, 200)}'`;
  return new LoopError('BACKEND_FAILED', truncateMessage(`${who} ${what}`), { ...data });
}

/**
 * What a provider threw or sent, as an outcome; `otherwise` says whether to try again when it does not tell: unless
 * given, when it came from the network.
 */
export function toBackendError(sent: SentRequest, thrown: unknown, otherwise?: boolean): LoopError {
  try {
    return thrown instanceof LoopError ? thrown : backendErrorFrom(sent, thrown, otherwise ?? isNetworkError(thrown));
  } catch {
    // It is made so that looking at it fails.
    return backendError(sent, 'failed: it did not say why', { retryable: otherwise ?? false });
  }
}

/** Why a backend could not be opened: whatever it threw, the backend has failed. */
export function toOpenError(sent: SentRequest, thrown: unknown): LoopError {
  try {
    if (thrown instanceof LoopError && thrown.code === 'BACKEND_FAILED') return thrown;
    return backendErrorFrom(sent, thrown, isNetworkError(thrown));
  } catch {
    return backendError(sent, 'failed: it did not say why', { retryable: false });
  }
}

function backendErrorFrom(sent: SentRequest, thrown: unknown, otherwise: boolean): LoopError {
  const status = httpStatusOf(thrown);
  const told = ownProperty(thrown, 'isRetryable');
  const retryable =
    status === undefined ? (typeof told === 'boolean' ? told : otherwise) : status < 400 || isRetryableStatus(status);
  const retryAfterMs = retryAfterMsOf(ownProperty(ownProperty(thrown, 'responseHeaders'), 'retry-after'));
  const said = redactSecrets(removeEcho(toShortLine(thrownMessageOf(thrown)), sent));
  const what =
    status === undefined ? `failed: ${said}` : `answered with status ${status}${statusHint(status)}: ${said}`;
  return backendError(sent, what, {
    retryable,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function statusHint(status: number): string {
  if (status === 401 || status === 403) return ' (check the API key)';
  return status === 404 ? ' (check the name of the model and the base URL)' : '';
}

/** The HTTP status, where the AI SDK or an error document of a server puts it. */
function httpStatusOf(thrown: unknown): number | undefined {
  const known = [ownProperty(thrown, 'statusCode'), ownProperty(thrown, 'code')].find(
    (value) => Number.isInteger(value) && Number(value) >= 100 && Number(value) < 600,
  );
  return known === undefined ? undefined : Number(known);
}

/** Seconds as milliseconds. A date would need a clock, so it counts as not told. */
function retryAfterMsOf(header: unknown): number | undefined {
  if (typeof header !== 'string' || !/^\d{1,9}(?:\.\d{1,9})?$/.test(header.trim())) return undefined;
  return Math.ceil(Number(header) * 1000);
}

const NETWORK_ERROR_CODES = new Set(
  'ECONNRESET ECONNREFUSED ECONNABORTED EPIPE ETIMEDOUT ENOTFOUND EAI_AGAIN ENETUNREACH EHOSTUNREACH'.split(' '),
);

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
  return nonEmptyText(message) ?? 'it did not say why';
}

/** One short line. */
function toShortLine(said: string): string {
  return singleLine(said.slice(0, MAX_MESSAGE_CHARS)).trim();
}

/** Servers like to repeat a request that they refuse; what was sent is not for messages. */
function removeEcho(said: string, { request, conversation }: SentRequest): string {
  const { system = '', prompt = lastMessageText(conversation), schema } = request;
  const short = [system, prompt]
    .map((part) => singleLine(part).trim())
    .filter(({ length }) => length > 3 && length < MIN_ECHO_CHARS);
  const rest = short.reduce((text, part) => text.replaceAll(part, '[…]'), said);
  const sent = singleLine(`${system}\n${prompt}\n${JSON.stringify([system, prompt, schema ?? null])}`);
  // Every run holds one of these halves whole: without it there is no need to look for the run in a long prompt.
  const half = MIN_ECHO_CHARS / 2;
  const halves = Array.from({ length: Math.ceil(rest.length / half) + 1 }, (_, nth) =>
    sent.includes(rest.slice(nth * half, (nth + 1) * half)),
  );
  let kept = '';
  let echoEnd = 0;
  for (let at = 0; at < rest.length; at++) {
    const run = rest.slice(at, at + MIN_ECHO_CHARS);
    if (run.length === MIN_ECHO_CHARS && halves[Math.ceil(at / half)] && sent.includes(run)) {
      if (at >= echoEnd) kept += '[…]';
      echoEnd = at + MIN_ECHO_CHARS;
    }
    if (at >= echoEnd) kept += rest[at];
  }
  return kept;
}

/** Of a conversation, the message that came last: servers that repeat anything repeat that. */
function lastMessageText(conversation: ModelConversation | undefined): string {
  const last = conversation?.messages.at(-1);
  if (last === undefined) return '';
  if (typeof last.content === 'string') return last.content;
  const words = last.content.map((part) =>
    part.type === 'text' ? part.text : JSON.stringify(part as unknown as Json),
  );
  return words.join('\n').slice(0, 100_000);
}

const SECRET_PATTERNS: readonly RegExp[] = [
  /\b(?:bearer|basic)\s+\S+/giu,
  /\b(?:authorization|(?:x-)?api[-_ ]?key|token|secret|password)["']?\s*[:=]\s*["']?[^\s"',}]+/giu,
  /\b(?:sk|pk|rk|gsk|xai|ghp)[-_][\w*-]{6,}/giu,
];

/** What has the look of a key. An adapter that knows the key has taken it out before. */
function redactSecrets(said: string): string {
  const named = SECRET_PATTERNS.reduce((rest, secret) => rest.replace(secret, '[secret]'), said);
  return named.replace(/[\w+=-]{32,}/gu, (run) => (/\d/.test(run) && /[a-z]/i.test(run) ? '[secret]' : run));
}

function truncateMessage(message: string): string {
  return message.length > MAX_MESSAGE_CHARS ? truncate(message, MAX_MESSAGE_CHARS - 1) : message;
}
