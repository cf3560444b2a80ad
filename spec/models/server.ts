// A real HTTP server in the place of a provider's: it records what it is asked and behaves as a test tells it, well or badly.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

export interface Seen {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: { readonly [key: string]: unknown };
}

export type Behaviour = (response: ServerResponse, seen: Seen) => void | Promise<void>;

export interface ModelServer {
  readonly url: string;
  readonly seen: Seen[];
  /** How the next requests are answered; forgets what was seen. */
  behave(behaviour: Behaviour): void;
  /** Resolves when a client has left before its answer was complete. */
  hangup(): Promise<void>;
  close(): Promise<void>;
}

export async function startModelServer(): Promise<ModelServer> {
  const seen: Seen[] = [];
  let behaviour: Behaviour = (response) => void response.writeHead(501).end();
  let left = deferred();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}');
      const what = { path: request.url ?? '', headers: request.headers, body };
      seen.push(what);
      response.on('close', () => response.writableFinished || left.resolve());
      await behaviour(response, what);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    behave(next) {
      behaviour = next;
      seen.length = 0;
      left = deferred();
    },
    hangup: () => left.promise,
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

/** The events, and a proper end. */
export const sends =
  (...events: string[]): Behaviour =>
  (response) =>
    void response.writeHead(200, SSE).end(events.join(''));

/** The events a byte at a time, so that characters and lines are split across packets. */
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

/** The events, and then the connection is cut. */
export const breaksAfter =
  (...events: string[]): Behaviour =>
  async (response) => {
    response.writeHead(200, SSE).write(events.join(''));
    await pause(30);
    response.socket?.destroy();
  };

/** The events, and then nothing, without an end. */
export const hangsAfter =
  (...events: string[]): Behaviour =>
  (response) =>
    void response.writeHead(200, SSE).write(events.join(''));

/** The first events once and the last one until the client leaves. */
export const floods =
  (first: readonly string[], again: string): Behaviour =>
  async (response) => {
    response.writeHead(200, SSE).write(first.join(''));
    while (!response.destroyed && !response.closed) {
      if (!response.write(again.repeat(16))) await pause(1);
    }
  };

/** An error document. */
export const refuses =
  (status: number, document: unknown, headers: Record<string, string> = {}): Behaviour =>
  (response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(document));
