/** Adapts a fetch-style handler to Node's HTTP server. Response bodies are written with backpressure. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { markRebuilt, parsedBodyOf } from './parsed-body.js';
import { HttpProblem, problemResponse } from './problem.js';

const BASE_URL = 'http://localhost';
/** The maximum number of bytes that are discarded at the end of a request. A longer request is disconnected. */
const MAX_DRAINED_BYTES = 16 * 1024 * 1024;

/**
 * Returns a listener for `createServer` of `node:http`, or a handler for Express, that calls a fetch-style handler. A body
 * that a middleware has read is taken from `req.rawBody` or `req.body`.
 *
 * @example createServer(nodeListener(chatHandler({ host: rondo, agent: support }))).listen(3000, '127.0.0.1');
 */
export function nodeListener(
  handler: (request: Request) => Promise<Response>,
): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  return (incoming, outgoing) => {
    outgoing.on('error', () => {});
    serve(handler, incoming, outgoing).catch(() => outgoing.destroy());
  };
}

async function serve(
  handler: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const response = await responseOf(handler, incoming);
  outgoing.statusCode = response.status;
  outgoing.setHeaders(response.headers);
  outgoing.flushHeaders();
  const reader = response.body?.getReader();
  // A disconnect cancels the reader even while no chunk is written.
  outgoing.once('close', () => void reader?.cancel().catch(() => {}));
  for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
    if (!outgoing.write(read.value)) await waitForDrain(outgoing);
  }
  outgoing.end();
  if (!incoming.complete) drain(incoming);
}

/**
 * Discards the rest of a request body. A client that is still sending may not read the response, and the next request
 * on the connection must not start inside this body.
 */
function drain(incoming: IncomingMessage): void {
  let remainingBytes = MAX_DRAINED_BYTES;
  // The unread body stream would exert backpressure on the request.
  incoming.unpipe();
  incoming
    .on('error', () => {})
    .on('data', (bytes: Buffer) => {
      remainingBytes -= bytes.length;
      if (remainingBytes < 0) incoming.destroy();
    });
  incoming.resume();
}

/** Resolves when the response accepts more data or is closed. */
function waitForDrain(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      outgoing.off('drain', finish).off('close', finish);
      resolve();
    };
    if (outgoing.destroyed) resolve();
    else outgoing.on('drain', finish).on('close', finish);
  });
}

async function responseOf(
  handler: (request: Request) => Promise<Response>,
  incoming: IncomingMessage,
): Promise<Response> {
  try {
    return await handler(requestOf(incoming));
  } catch (thrown) {
    return problemResponse(thrown);
  }
}

function requestOf(incoming: IncomingMessage): Request {
  const { method = 'GET', url = '/', headers } = incoming;
  // The constructor of Request forbids these methods.
  if (method === 'TRACE' || method === 'TRACK') {
    throw new HttpProblem(405, 'METHOD_NOT_ALLOWED', `${method} is not supported.`, { allow: 'GET, POST' });
  }
  // HTTP/1.0 requests may lack it. Without a host, the origin of the request cannot be checked.
  if (!headers.host) throw new HttpProblem(403, 'HOST_NOT_ALLOWED', 'The request has no host; send the header "host".');
  const requestHeaders = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const item of Array.isArray(value) ? value : [value ?? '']) requestHeaders.append(name, item);
  }
  // Only the path of the URL is used. The client's host stays in the header, where the handler checks it.
  const address = URL.canParse(url, BASE_URL) ? new URL(url, BASE_URL) : BASE_URL;
  const isBodyless = method === 'GET' || method === 'HEAD';
  const parsed = isBodyless ? undefined : parsedBodyOf(incoming);
  const body = parsed === undefined && !isBodyless ? bodyStreamOf(incoming) : (parsed?.bytes ?? null);
  const request = new Request(address, { method, headers: requestHeaders, body, duplex: 'half' });
  if (parsed?.isExact === false) markRebuilt(request);
  return request;
}

/** Returns the body as a separate stream. A handler that does not read it to the end does not close the connection. */
function bodyStreamOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const body = new PassThrough();
  incoming.once('close', () => {
    if (!incoming.complete) body.destroy(new Error('The client disconnected before the request was complete.'));
  });
  return Readable.toWeb(incoming.pipe(body)) as ReadableStream<Uint8Array>;
}
