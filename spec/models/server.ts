// A real HTTP server in place of a model service. It records requests and responds as each test configures it.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A recorded request. */
interface ModelServerRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: { readonly [key: string]: unknown };
}

/** Answers a request. */
type Behaviour = (response: ServerResponse, request: ModelServerRequest) => void | Promise<void>;

/** A running test server. */
interface ModelServer {
  readonly url: string;
  readonly requests: ModelServerRequest[];
  /** Sets how the next requests are answered, and clears the recorded requests. */
  behave(behaviour: Behaviour): void;
  /** Resolves when a client has closed the connection before its response was complete. */
  hangup(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server on a free port of the loopback interface. */
export async function startModelServer(): Promise<ModelServer> {
  const requests: ModelServerRequest[] = [];
  let behaviour: Behaviour = (response) => void response.writeHead(501).end();
  let disconnect = deferred();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}');
      const recorded = { path: request.url ?? '', headers: request.headers, body };
      requests.push(recorded);
      response.on('close', () => response.writableFinished || disconnect.resolve());
      await behaviour(response, recorded);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    behave(next) {
      behaviour = next;
      requests.length = 0;
      disconnect = deferred();
    },
    hangup: () => disconnect.promise,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

const SSE = { 'content-type': 'text/event-stream; charset=utf-8' };

/** Sends the events and ends the response. */
export const sends =
  (...events: string[]): Behaviour =>
  (response) =>
    void response.writeHead(200, SSE).end(events.join(''));

/** Sends the events byte by byte, so that characters and lines are split across packets. */
export const dribbles =
  (...events: string[]): Behaviour =>
  async (response) => {
    response.writeHead(200, SSE);
    for (const byte of Buffer.from(events.join(''))) {
      response.write(Buffer.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end();
  };

/** Sends the events and breaks the connection. */
export const breaksAfter =
  (...events: string[]): Behaviour =>
  async (response) => {
    response.writeHead(200, SSE).write(events.join(''));
    await pause(30);
    response.socket?.destroy();
  };

/** Sends the events and never ends the response. */
export const hangsAfter =
  (...events: string[]): Behaviour =>
  (response) =>
    void response.writeHead(200, SSE).write(events.join(''));

/** Sends the first events once, and then one event repeatedly until the client disconnects. */
export const floods =
  (first: readonly string[], repeated: string): Behaviour =>
  async (response) => {
    response.writeHead(200, SSE).write(first.join(''));
    while (!response.destroyed && !response.closed) {
      if (!response.write(repeated.repeat(16))) await pause(1);
    }
  };

/** Sends an error response with a JSON body. */
export const refuses =
  (status: number, document: unknown, headers: Record<string, string> = {}): Behaviour =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(document));
