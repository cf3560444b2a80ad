/** A fetch-style handler on node's own HTTP server: requests in, responses out, as fast as the other side reads them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import { HttpProblem, problemResponse } from './problem.js';

const BASE_URL = 'http://localhost';
const MAX_DRAINED_BYTES = 16 * 1024 * 1024;

/** What `createServer` of `node:http` takes, for a handler that takes a `Request`. */
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
  // Who goes away is noticed while nothing is written, too; reading then ends.
  outgoing.once('close', () => void reader?.cancel().catch(() => {}));
  for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
    if (!outgoing.write(read.value)) await waitForDrain(outgoing);
  }
  outgoing.end();
  if (!incoming.complete) drain(incoming);
}

/** Drops the rest of a request: a client that still sends would not see the response, and its next request must not begin in it. */
function drain(incoming: IncomingMessage): void {
  let left = MAX_DRAINED_BYTES;
  // A body that nobody reads holds back what is piped into it.
  incoming.unpipe();
  incoming
    .on('error', () => {})
    .on('data', (bytes: Buffer) => {
      left -= bytes.length;
      if (left < 0) incoming.destroy();
    });
  incoming.resume();
}

/** Resolves when more can be written, or nobody is there to read it. */
function waitForDrain(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      outgoing.off('drain', go).off('close', go);
      resolve();
    };
    if (outgoing.destroyed) resolve();
    else outgoing.on('drain', go).on('close', go);
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
  // A method that no Request can have.
  if (method === 'TRACE' || method === 'TRACK') {
    throw new HttpProblem(405, 'METHOD_NOT_ALLOWED', `There is no ${method}.`, { allow: 'GET, POST' });
  }
  // HTTP/1.0 allows it; who is meant would be a guess.
  if (!headers.host)
    throw new HttpProblem(403, 'HOST_NOT_ALLOWED', 'The request names no host; send the header "host".');
  const own = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) own.append(name, one);
  }
  // Of the address only the path counts: the host that the client names stays a header, for the handler to judge.
  const address = URL.canParse(url, BASE_URL) ? new URL(url, BASE_URL) : BASE_URL;
  const bare = method === 'GET' || method === 'HEAD';
  return new Request(address, {
    method,
    headers: own,
    ...(bare ? {} : { body: bodyStreamOf(incoming), duplex: 'half' }),
  });
}

/** The body as a stream of its own: a handler that does not read it to its end leaves the connection as it is. */
function bodyStreamOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const body = new PassThrough();
  incoming.once('close', () => {
    if (!incoming.complete) body.destroy(new Error('The client went away in the middle of its request.'));
  });
  return Readable.toWeb(incoming.pipe(body)) as ReadableStream<Uint8Array>;
}
