/**
 * The way in for signals of hosted loops: a fetch-style handler that authenticates a delivery over its raw bytes, parses
 * it, and hands it to the inbox of the loop. Until a delivery is authentic, every refusal of it is the same 401.
 */
import { Fault, LoopError } from '../../base/errors.js';
import { assertKnownKeys, optionKeys } from '../../base/option-keys.js';
import { type DeliveryHeaders, isAuthenticDelivery, readDeliveryHeaders } from '../../host/hosted/verify-signal.js';
import { ignoringErrors } from '../../host/session-feed.js';
import { parseStrictJson } from '../../json/strict-json.js';
import type { HostedLoopDocument, HostedSignalDelivery, SignalReceipt } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import { warnOfError } from '../http/operator-warning.js';
import { isRebuilt } from '../http/parsed-body.js';
import { HttpProblem, problemResponse } from '../http/problem.js';
import { assertJsonContent, readBody } from '../http/request-body.js';
import { deliveryProblemOf, isRetryableFault, notAuthentic, unavailable } from './delivery-problem.js';
import { environmentSecret, type SecretLookup, type SignalKey, signalKeyOf } from './signal-secrets.js';

/** What receives the signals of hosted loops. */
export interface SignalTarget {
  /** Returns the document of a hosted loop; undefined if there is no such loop. */
  definition(loop: string): Promise<HostedLoopDocument | undefined>;
  /** Puts an authentic signal into the inbox of its loop. A known delivery id has no effect. */
  deliver(delivery: HostedSignalDelivery): Promise<SignalReceipt>;
  /** The current time, in milliseconds since 1970. */
  now(): number;
}

/** Options of `signalHandler`. */
export interface SignalHandlerOptions {
  /**
   * The path above `LOOP/SIGNAL`, as the handler sees it.
   * @default '/signals'
   */
  readonly basePath?: string;
  /**
   * Returns the secret for a reference of a document: `whsec_` and base64, or any other text of at least 16 bytes.
   * @default environment variables whose names end with _SECRET
   */
  readonly secret?: SecretLookup;
  /**
   * The maximum number of bytes in the body of a request.
   * @default 65536
   */
  readonly maxBytes?: number;
  /**
   * Receives errors that the operator must fix: secrets that cannot be used (once each), and internal errors.
   * @default a warning of the process
   */
  readonly onError?: (thrown: unknown) => void;
}

/** Answers the requests of senders. It never rejects. */
export type SignalHandler = (request: Request) => Promise<Response>;

const OPTION_KEYS = optionKeys<SignalHandlerOptions>({ basePath: true, secret: true, maxBytes: true, onError: true });
const BASE_PATH = /^(?:\/[A-Za-z0-9_-][A-Za-z0-9_.~-]*)*$/;
/** The ids of hosted loops and the names of signals need no encoding in a path, so an encoded one is refused. */
const LOOP_ID = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,59}$/;
const SIGNAL_NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const MAX_REPORTS = 1000;
const PARSED_BODY_REASON =
  'A signature covers the bytes of a body, and a middleware has parsed them: mount the signal handler before ' +
  'express.json(), or keep the bytes with express.json({ verify: (req, _res, bytes) => { req.rawBody = bytes; } }).';
const SIZE_ADVICE = 'send less, or a reference to what is large';
/** Verifies deliveries for signals that do not exist, which takes as long and never succeeds. */
const DECOY: SignalKey = { key: new Uint8Array(32), windowMs: undefined };
const STATUS_OF: ReadonlyMap<SignalReceipt, number> = new Map([
  ['accepted', 202],
  ['duplicate', 200],
]);

/**
 * Returns a handler for `POST {basePath}/LOOP/SIGNAL`, which any fetch-style server can mount. Deliveries are signed as in
 * Standard Webhooks; a signal without `verify` cannot be sent here.
 *
 * @example
 * const handler = signalHandler(target);
 * app.post('/signals/*', (context) => handler(context.req.raw)); // Hono
 * createServer(nodeListener(handler)).listen(3000); // node:http
 */
export function signalHandler(target: SignalTarget, options: SignalHandlerOptions = {}): SignalHandler {
  assertKnownKeys(options, OPTION_KEYS, 'signalHandler has no option');
  const handler = new SignalReceiver(target, options);
  return (request) => handler.handle(request);
}

class SignalReceiver {
  private readonly target: SignalTarget;
  private readonly basePath: string;
  private readonly maxBytes: number;
  private readonly secret: SecretLookup;
  private readonly onError: (thrown: unknown) => void;
  private readonly reported = new Set<string>();

  constructor(target: SignalTarget, options: SignalHandlerOptions) {
    const { basePath = '/signals', secret = environmentSecret, maxBytes = 65_536, onError = warnOfError } = options;
    if (!BASE_PATH.test(basePath))
      throw new TypeError('"basePath" must be a path such as "/signals", without a slash at its end, or "".');
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 1) throw new TypeError('"maxBytes" must be a positive integer.');
    this.target = target;
    this.basePath = basePath;
    this.secret = secret;
    this.maxBytes = maxBytes;
    this.onError = onError;
  }

  async handle(request: Request): Promise<Response> {
    try {
      return await this.receive(request);
    } catch (thrown) {
      if (!(thrown instanceof HttpProblem)) ignoringErrors(() => this.onError(thrown));
      return problemResponse(isRetryableFault(thrown) ? unavailable() : thrown);
    }
  }

  private async receive(request: Request): Promise<Response> {
    const { loop, name } = signalOf(new URL(request.url).pathname, this.basePath);
    assertPost(request);
    // guard: signal-is-json
    assertJsonContent(request);
    const headers = deliveryHeadersOf(request);
    const body = await this.bodyOf(request);
    const key = await this.keyOf(loop, name);
    const check = { ...(key ?? DECOY), nowMs: this.target.now() };
    // guard: authentic-before-parsed
    if (!isAuthenticDelivery(headers, body, check)) throw notAuthentic();
    // guard: signal-without-key-refused
    if (key === undefined) throw notAuthentic();
    const payload = payloadOf(body);
    return receiptResponse(await this.deliver({ loop, name, payload, id: headers.id }));
  }

  private async bodyOf(request: Request): Promise<Uint8Array> {
    if (isRebuilt(request)) {
      this.reportOnce(new TypeError(PARSED_BODY_REASON));
      throw new HttpProblem(500, 'BODY_READ_BEFORE', PARSED_BODY_REASON);
    }
    if (request.bodyUsed || request.body?.locked === true)
      throw new TypeError('The body of the request was read before: mount the signal handler before body parsers.');
    try {
      return await readBody(request, this.maxBytes, SIZE_ADVICE);
    } catch (thrown) {
      if (thrown instanceof HttpProblem) throw thrown;
      throw new HttpProblem(400, 'INPUT_VALIDATION_FAILED', 'The body of the request ended early.');
    }
  }

  /** Delivers an authentic signal. Throws the problem that its sender may see, or an internal error. */
  private async deliver(delivery: HostedSignalDelivery): Promise<SignalReceipt> {
    try {
      return await this.target.deliver(delivery);
    } catch (thrown) {
      throw deliveryProblemOf(thrown) ?? thrown;
    }
  }

  /** Returns the key of a signal; undefined if there is none, or if it cannot be used, which is reported. */
  private async keyOf(loop: string, name: string): Promise<SignalKey | undefined> {
    try {
      const document = await this.target.definition(loop);
      // guard: document-of-the-path
      if (document?.id !== loop) return undefined;
      return signalKeyOf(document, name, this.secret);
    } catch (thrown) {
      if (thrown instanceof Fault) throw thrown;
      this.reportOnce(thrown);
      return undefined;
    }
  }

  /** Reports an error, but not again for each request: anyone can send them. */
  private reportOnce(thrown: unknown): void {
    if (thrown instanceof LoopError && thrown.code === 'HOSTED_LOOP_NOT_FOUND') return;
    const text = thrown instanceof Error ? thrown.message : 'unknown';
    // guard: secret-problem-reported-once
    if (this.reported.has(text) || this.reported.size >= MAX_REPORTS) return;
    this.reported.add(text);
    ignoringErrors(() => this.onError(thrown));
  }
}

/** Returns the loop and the signal of a path. Throws a 404 problem for another route, and a 400 problem for a bad name. */
function signalOf(path: string, basePath: string): { readonly loop: string; readonly name: string } {
  const segments = path.startsWith(`${basePath}/`) ? path.slice(basePath.length + 1).split('/') : [];
  const [loop = '', name = ''] = segments;
  // guard: signal-route-exact
  if (segments.length !== 2 || loop === '' || name === '')
    throw new HttpProblem(404, 'NOT_FOUND', `Signals are sent to ${basePath}/LOOP/SIGNAL.`);
  // guard: signal-path-checked
  if (!LOOP_ID.test(loop) || !SIGNAL_NAME.test(name))
    throw new HttpProblem(400, 'INPUT_VALIDATION_FAILED', 'The path has no valid loop id or signal name.');
  return { loop, name };
}

function assertPost({ method }: Request): void {
  if (method !== 'POST') throw new HttpProblem(405, 'METHOD_NOT_ALLOWED', 'Use POST.', { allow: 'POST' });
}

function deliveryHeadersOf({ headers }: Request): DeliveryHeaders {
  const delivery = readDeliveryHeaders((name) => headers.get(name));
  if (delivery === 'missing') throw notAuthentic();
  if (delivery !== 'malformed') return delivery;
  const detail =
    'Send webhook-id, webhook-timestamp and webhook-signature once each, in the form of Standard Webhooks.';
  throw new HttpProblem(400, 'INPUT_VALIDATION_FAILED', detail);
}

/** Parses a body: strict JSON, of bounded depth. Throws a 400 problem for anything else. */
function payloadOf(body: Uint8Array): Json {
  try {
    return parseStrictJson(body);
  } catch (thrown) {
    if (!(thrown instanceof LoopError)) throw thrown;
    throw new HttpProblem(400, 'INPUT_VALIDATION_FAILED', thrown.message);
  }
}

function receiptResponse(receipt: SignalReceipt): Response {
  const status = STATUS_OF.get(receipt);
  if (status === undefined) throw new TypeError('The target returned neither "accepted" nor "duplicate".');
  return Response.json({ status: receipt }, { status, headers: { 'cache-control': 'no-store' } });
}
