/**
 * Asking a model once: a journaled request becomes a call of the provider interface, the stream that comes back a
 * journaled reply. Always by stream, so that there is one path. What a provider throws or sends is not trusted: it is
 * read field by field, bounded, and told without anything that was sent to it.
 */
import { LoopError } from '../journal/errors.js';
import type { Model, ModelCallOptions, ModelMessage } from '../protocol/model.js';
import type { ModelReply, ModelRequest } from './model.js';

const MAX_BYTES = 8 * 1024 * 1024;
const MAX_MESSAGE = 500;
/** How many parts are read before other work of the process gets its turn: a stream that is never empty would starve it. */
const BREATH = 256;
/** A run of this many characters that the request has too is taken for an echo of it. */
const ECHO = 20;
const FINISHES: ReadonlySet<unknown> = new Set(['stop', 'length', 'content-filter', 'tool-calls', 'error']);

/** A piece of an answer, for those who watch. */
export interface ModelDelta {
  readonly kind: 'text' | 'reasoning';
  readonly text: string;
}

export interface AskOptions {
  readonly signal: AbortSignal;
  readonly onDelta?: (delta: ModelDelta) => void;
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
    void answerOf(model, request, options, stop)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', leave));
  });
}

/** Reads until the answer is whole; whatever happens, the model is stopped when this ends. */
async function answerOf(
  model: Model,
  request: ModelRequest,
  options: AskOptions,
  stop: AbortController,
): Promise<ModelReply> {
  try {
    const reader = await open(model, request, stop.signal);
    const leave = (): void => void cancel(reader);
    if (stop.signal.aborted) leave();
    else stop.signal.addEventListener('abort', leave, { once: true });
    const answer = new Answer(request, options);
    for (let count = 1; ; count++) {
      const part = await next(reader, request);
      stop.signal.throwIfAborted();
      if (answer.take(part)) return answer.reply();
      if (count % BREATH === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    stop.abort();
  }
}

async function open(
  model: Model,
  request: ModelRequest,
  signal: AbortSignal,
): Promise<ReadableStreamDefaultReader<unknown>> {
  const version: unknown = model.specificationVersion;
  if (version !== 'v3') {
    const found = typeof version === 'string' ? `version ${version.toUpperCase().slice(0, 20)}` : 'no known version';
    const what = `speaks ${found} of the provider interface; Rondo needs V3 (the packages made for AI SDK 6)`;
    throw failed(request, what, { retryable: false });
  }
  try {
    const { stream } = await model.doStream(callOf(request, signal));
    return stream.getReader();
  } catch (thrown) {
    throw failureOf(request, thrown, fromNetwork(thrown));
  }
}

/** Whether a stream that nobody wants any more ends well is nobody's business. */
async function cancel(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  try {
    await reader.cancel();
  } catch {}
}

async function next(reader: ReadableStreamDefaultReader<unknown>, request: ModelRequest): Promise<unknown> {
  let read: { done: boolean; value?: unknown };
  try {
    read = await reader.read();
  } catch (thrown) {
    throw failureOf(request, thrown, true);
  }
  if (read.done) throw failed(request, 'stopped in the middle of its answer', { retryable: true });
  return read.value;
}

function callOf(request: ModelRequest, abortSignal: AbortSignal): ModelCallOptions {
  const { system, prompt, maxTokens, temperature, schema } = request;
  const messages: ModelMessage[] = [{ role: 'user', content: [{ type: 'text', text: prompt }] }];
  // Some providers refuse an empty system prompt.
  if (system) messages.unshift({ role: 'system', content: system });
  const call: ModelCallOptions = { prompt: messages, abortSignal };
  if (maxTokens !== undefined) call.maxOutputTokens = maxTokens;
  if (temperature !== undefined) call.temperature = temperature;
  if (schema === undefined) return call;
  call.responseFormat = typeof schema === 'object' && schema !== null ? { type: 'json', schema } : { type: 'json' };
  return call;
}

/** An answer in the making. */
class Answer {
  readonly #request: ModelRequest;
  readonly #onDelta: ((delta: ModelDelta) => void) | undefined;
  readonly #max: number;
  #text = '';
  #reasoning = '';
  readonly #toolCalls: { id: string; name: string; input: string }[] = [];
  #model: string;
  /** Bytes that are kept, and the cost of what is only passing: each must end somewhere. */
  #kept = 0;
  #passing = 0;
  #finish: unknown;

  constructor(request: ModelRequest, { onDelta, maxBytes = MAX_BYTES }: AskOptions) {
    this.#request = request;
    this.#model = request.model;
    this.#onDelta = onDelta;
    this.#max = maxBytes;
  }

  /** Takes one part of the stream, of a shape that nobody has checked; true when it was the last. */
  take(part: unknown): boolean {
    const delta = field(part, 'delta');
    switch (field(part, 'type')) {
      case 'text-delta':
        if (!this.#keeps(delta)) return false;
        this.#text += delta;
        this.#onDelta?.({ kind: 'text', text: delta });
        return false;
      case 'reasoning-delta':
        if (!this.#keeps(delta)) return false;
        this.#reasoning += delta;
        this.#onDelta?.({ kind: 'reasoning', text: delta });
        return false;
      case 'tool-call':
        this.#call(part);
        return false;
      case 'response-metadata':
        this.#model = text(field(part, 'modelId'))?.slice(0, 200) ?? this.#model;
        return this.#pass('');
      case 'finish':
        this.#finish = part;
        return true;
      case 'error':
        throw failureOf(this.#request, field(part, 'error'), true);
      default:
        return this.#pass(text(delta) ?? '');
    }
  }

  reply(): ModelReply {
    const unified = field(field(this.#finish, 'finishReason'), 'unified');
    const finish = FINISHES.has(unified) ? String(unified) : 'other';
    if (finish === 'error') throw failed(this.#request, 'says that it failed, and not why', { retryable: true });
    if (this.#text === '' && this.#toolCalls.length === 0) {
      // The same request would be cut short or filtered again.
      const retryable = finish !== 'length' && finish !== 'content-filter';
      throw failed(this.#request, `answered nothing (finish reason: ${finish})`, { retryable });
    }
    const usage = field(this.#finish, 'usage');
    const inputTokens = count(field(field(usage, 'inputTokens'), 'total'));
    const outputTokens = count(field(field(usage, 'outputTokens'), 'total'));
    return {
      text: this.#text,
      model: this.#model,
      finish,
      ...(inputTokens !== undefined && { inputTokens }),
      ...(outputTokens !== undefined && { outputTokens }),
      ...(this.#reasoning !== '' && { reasoning: this.#reasoning }),
      ...(this.#toolCalls.length > 0 && { toolCalls: this.#toolCalls }),
    };
  }

  #call(part: unknown): void {
    const id = text(field(part, 'toolCallId'));
    const name = text(field(part, 'toolName'));
    const input = field(part, 'input');
    const ours = field(part, 'providerExecuted') !== true;
    if (id === undefined || name === undefined || typeof input !== 'string' || !ours) {
      this.#pass('');
      return;
    }
    if (this.#keeps(`${id}${name}${input}`)) this.#toolCalls.push({ id, name, input });
  }

  /** Counts what is kept; false for what is not text, or is none. */
  #keeps(piece: unknown): piece is string {
    if (typeof piece !== 'string' || piece === '') return this.#pass('');
    this.#kept += Buffer.byteLength(piece);
    if (this.#kept > this.#max) this.#refuse();
    return true;
  }

  /** Counts what is not kept, so that an endless stream of nothing ends too. */
  #pass(piece: string): false {
    this.#passing += Math.max(1, Buffer.byteLength(piece));
    if (this.#passing > this.#max) this.#refuse();
    return false;
  }

  #refuse(): never {
    throw failed(this.#request, `answered more than ${this.#max} bytes; ask for less`, { retryable: false });
  }
}

interface FailureData {
  readonly retryable: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number;
}

function failed(request: ModelRequest, what: string, data: FailureData): LoopError {
  const who = `${request.backendId} '${request.model.slice(0, 200)}'`;
  return new LoopError('BACKEND_FAILED', bounded(`${who} ${what}`), { ...data });
}

/** What a provider threw or sent, as an outcome; `otherwise` says whether to try again when it does not tell. */
function failureOf(request: ModelRequest, thrown: unknown, otherwise: boolean): LoopError {
  if (thrown instanceof LoopError) return thrown;
  const status = statusOf(thrown);
  const told = field(thrown, 'isRetryable');
  const retryable =
    status === undefined ? (typeof told === 'boolean' ? told : otherwise) : status < 400 || worthAnother(status);
  const retryAfterMs = patienceOf(field(field(thrown, 'responseHeaders'), 'retry-after'));
  const said = withoutSecrets(withoutEcho(plain(messageOf(thrown)), request));
  const what = status === undefined ? `failed: ${said}` : `answered with status ${status}${hint(status)}: ${said}`;
  return failed(request, what, {
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
  const known = [field(thrown, 'statusCode'), field(thrown, 'code')].find(
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
    const code = field(at, 'code');
    if (typeof code === 'string' && (NETWORK.has(code) || code.startsWith('UND_ERR_'))) return true;
    if (at.name === 'AbortError' || at.name === 'TimeoutError') return true;
    if (at instanceof TypeError && /^(?:fetch failed|terminated)$/.test(at.message)) return true;
  }
  return false;
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === 'string') return thrown;
  const message: unknown = thrown instanceof Error ? thrown.message : field(thrown, 'message');
  return text(message) ?? 'it did not say why';
}

/** One short line. */
function plain(said: string): string {
  return oneLine(said.slice(0, MAX_MESSAGE)).trim();
}

function oneLine(lines: string): string {
  return lines.replace(/[\p{Cc}\s]+/gu, ' ');
}

/** Servers like to repeat a request that they refuse; what was sent is not for messages. */
function withoutEcho(said: string, { system = '', prompt, schema }: ModelRequest): string {
  const short = [system, prompt]
    .map((part) => oneLine(part).trim())
    .filter(({ length }) => length > 3 && length < ECHO);
  const rest = short.reduce((text, part) => text.replaceAll(part, '[…]'), said);
  const sent = oneLine(`${system}\n${prompt}\n${JSON.stringify([system, prompt, schema ?? null])}`);
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
  const cut = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE - 1)}…` : message;
  // A pair of surrogates that the cut went through is no text.
  return cut.replace(/[\ud800-\udbff](?=…$)/, '');
}

/** An own field of anything; no getter runs. */
function field(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function count(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}
