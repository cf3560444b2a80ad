/** A fetch-style handler on node's own HTTP server: requests in, responses out, as fast as the other side reads them. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { problemResponse } from './problem.js';

const BASE = 'http://localhost';

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
  const response = await answered(handler, incoming);
  outgoing.statusCode = response.status;
  outgoing.setHeaders(response.headers);
  outgoing.flushHeaders();
  const reader = response.body?.getReader();
  // Who goes away is noticed while nothing is written, too; reading then ends.
  outgoing.once('close', () => void reader?.cancel().catch(() => {}));
  for (let read = await reader?.read(); read !== undefined && !read.done; read = await reader?.read()) {
    if (!outgoing.write(read.value)) await room(outgoing);
  }
  outgoing.end();
  // What was not read of a request must not be taken for the next one.
  if (!incoming.complete) outgoing.once('finish', () => incoming.destroy());
}

/** Resolves when more can be written, or nobody is there to read it. */
function room(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = (): void => {
      outgoing.off('drain', go).off('close', go);
      resolve();
    };
    if (outgoing.destroyed) resolve();
    else outgoing.on('drain', go).on('close', go);
  });
}

async function answered(
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
  const own = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) own.append(name, one);
  }
  // Only the path counts: what a client says its host is, is for the server before us to judge.
  const address = URL.canParse(url, BASE) ? new URL(url, BASE) : BASE;
  const bare = method === 'GET' || method === 'HEAD';
  const body = bare ? {} : { body: Readable.toWeb(incoming) as ReadableStream<Uint8Array>, duplex: 'half' as const };
  return new Request(address, { method, headers: own, ...body });
}
