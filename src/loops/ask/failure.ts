/**
 * What a provider throws or sends instead of an answer, as an outcome that says whether to try again: read field by
 * field, bounded, and told without anything that was sent to it.
 */

import { LoopError } from '../../base/errors.js';
import { singleLine, truncate } from '../../base/hidden-characters.js';
import { nonEmptyText, ownProperty } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { ConversationParts, ModelRequest } from '../model.js';

export const MAX_MESSAGE = 500;
/** A run of this many characters that the request has too is taken for an echo of it. */
const ECHO = 20;

/** What was sent: the request, and the conversation that it is part of. */
export interface Sent {
  readonly request: ModelRequest;
  readonly conversation?: ConversationParts | undefined;
}

interface FailureData {
  readonly retryable: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number;
}

export function failed({ request }: Sent, what: string, data: FailureData): LoopError {
  const who = `${request.backendId} '${request.model.slice(0, 200)}'`;
  return new LoopError('BACKEND_FAILED', bounded(`${who} ${what}`), { ...data });
}

/**
 * What a provider threw or sent, as an outcome; `otherwise` says whether to try again when it does not tell: unless
 * given, when it came from the network.
 */
export function failureOf(sent: Sent, thrown: unknown, otherwise?: boolean): LoopError {
  try {
    return thrown instanceof LoopError ? thrown : toldBy(sent, thrown, otherwise ?? fromNetwork(thrown));
  } catch {
    // It is made so that looking at it fails.
    return failed(sent, 'failed: it did not say why', { retryable: otherwise ?? false });
  }
}

/** Why a backend could not be opened: whatever it threw, the backend has failed. */
export function openFailureOf(sent: Sent, thrown: unknown): LoopError {
  try {
    if (thrown instanceof LoopError && thrown.code === 'BACKEND_FAILED') return thrown;
    return toldBy(sent, thrown, fromNetwork(thrown));
  } catch {
    return failed(sent, 'failed: it did not say why', { retryable: false });
  }
}

function toldBy(sent: Sent, thrown: unknown, otherwise: boolean): LoopError {
  const status = statusOf(thrown);
  const told = ownProperty(thrown, 'isRetryable');
  const retryable =
    status === undefined ? (typeof told === 'boolean' ? told : otherwise) : status < 400 || worthAnother(status);
  const retryAfterMs = patienceOf(ownProperty(ownProperty(thrown, 'responseHeaders'), 'retry-after'));
  const said = withoutSecrets(withoutEcho(plain(messageOf(thrown)), sent));
  const what = status === undefined ? `failed: ${said}` : `answered with status ${status}${hint(status)}: ${said}`;
  return failed(sent, what, {
    retryable,
    ...(status !== undefined && { status }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

function worthAnother(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function hint(status: number): string {
  if (status === 401 || status === 403) return ' (check the API key)';
  return status === 404 ? ' (check the name of the model and the base URL)' : '';
}

/** The HTTP status, where the AI SDK or an error document of a server puts it. */
function statusOf(thrown: unknown): number | undefined {
  const known = [ownProperty(thrown, 'statusCode'), ownProperty(thrown, 'code')].find(
    (value) => Number.isInteger(value) && Number(value) >= 100 && Number(value) < 600,
  );
  return known === undefined ? undefined : Number(known);
}

/** Seconds as milliseconds. A date would need a clock, so it counts as not told. */
function patienceOf(header: unknown): number | undefined {
  if (typeof header !== 'string' || !/^\d{1,9}(?:\.\d{1,9})?$/.test(header.trim())) return undefined;
  return Math.ceil(Number(header) * 1000);
}

const NETWORK = new Set(
  'ECONNRESET ECONNREFUSED ECONNABORTED EPIPE ETIMEDOUT ENOTFOUND EAI_AGAIN ENETUNREACH EHOSTUNREACH'.split(' '),
);

function fromNetwork(thrown: unknown): boolean {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code = ownProperty(at, 'code');
    if (typeof code === 'string' && (NETWORK.has(code) || code.startsWith('UND_ERR_'))) return true;
    if (at.name === 'AbortError' || at.name === 'TimeoutError') return true;
    if (at instanceof TypeError && /^(?:fetch failed|terminated)$/.test(at.message)) return true;
  }
  return false;
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  const message: unknown = thrown instanceof Error ? thrown.message : ownProperty(thrown, 'message');
  return nonEmptyText(message) ?? 'it did not say why';
}

/** One short line. */
function plain(said: string): string {
  return singleLine(said.slice(0, MAX_MESSAGE)).trim();
}

/** Servers like to repeat a request that they refuse; what was sent is not for messages. */
function withoutEcho(said: string, { request, conversation }: Sent): string {
  const { system = '', prompt = newest(conversation), schema } = request;
  const short = [system, prompt]
    .map((part) => singleLine(part).trim())
    .filter(({ length }) => length > 3 && length < ECHO);
  const rest = short.reduce((text, part) => text.replaceAll(part, '[…]'), said);
  const sent = singleLine(`${system}\n${prompt}\n${JSON.stringify([system, prompt, schema ?? null])}`);
  // Every run holds one of these halves whole: without it there is no need to look for the run in a long prompt.
  const half = ECHO / 2;
  const halves = Array.from({ length: Math.ceil(rest.length / half) + 1 }, (_, nth) =>
    sent.includes(rest.slice(nth * half, (nth + 1) * half)),
  );
  let kept = '';
  let echoEnd = 0;
  for (let at = 0; at < rest.length; at++) {
    const run = rest.slice(at, at + ECHO);
    if (run.length === ECHO && halves[Math.ceil(at / half)] && sent.includes(run)) {
      if (at >= echoEnd) kept += '[…]';
      echoEnd = at + ECHO;
    }
    if (at >= echoEnd) kept += rest[at];
  }
  return kept;
}

/** Of a conversation, the message that came last: servers that repeat anything repeat that. */
function newest(conversation: ConversationParts | undefined): string {
  const last = conversation?.messages.at(-1);
  if (last === undefined) return '';
  if (typeof last.content === 'string') return last.content;
  const words = last.content.map((part) =>
    part.type === 'text' ? part.text : JSON.stringify(part as unknown as Json),
  );
  return words.join('\n').slice(0, 100_000);
}

const SECRETS: readonly RegExp[] = [
  /\b(?:bearer|basic)\s+\S+/giu,
  /\b(?:authorization|(?:x-)?api[-_ ]?key|token|secret|password)["']?\s*[:=]\s*["']?[^\s"',}]+/giu,
  /\b(?:sk|pk|rk|gsk|xai|ghp)[-_][\w*-]{6,}/giu,
];

/** What has the look of a key. An adapter that knows the key has taken it out before. */
function withoutSecrets(said: string): string {
  const named = SECRETS.reduce((rest, secret) => rest.replace(secret, '[secret]'), said);
  return named.replace(/[\w+=-]{32,}/gu, (run) => (/\d/.test(run) && /[a-z]/i.test(run) ? '[secret]' : run));
}

function bounded(message: string): string {
  return message.length > MAX_MESSAGE ? truncate(message, MAX_MESSAGE - 1) : message;
}
