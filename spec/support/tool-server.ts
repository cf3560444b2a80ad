/**
 * A real HTTP server for tests of `http:` tools. It records requests and connections, and responds as each test
 * configures it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { httpTools } from '../../src/adapters/tools/index.js';
import type { Json } from '../../src/protocol/json.js';
import { call } from './tools-fixture.mjs';

export type HttpToolConfig = Parameters<ReturnType<typeof httpTools>['unavailableReason']>[2];

/** Responds to a request. */
export type Responder = (response: ServerResponse, request: IncomingMessage, body: string) => void;

/** The origin of an untrusted definition. */
export const untrustedOrigin = { directory: undefined, trusted: false };
/** The origin of a trusted definition. */
export const trustedOrigin = { directory: undefined, trusted: true };

/** The environment of the tools that {@link ToolServer.ask} opens. */
const environment = { TOKEN: 'Bearer t0psecret', BROKEN: 'a\nb', EMPTY: ' ' };

export class ToolServer {
  /** `http://127.0.0.1:PORT`, once the server has started. */
  url = '';
  /** Responders by path. */
  readonly routes = new Map<string, Responder>();
  readonly openSockets = new Set<Socket>();
  connectionCount = 0;
  requestedUrls: string[] = [];

  private readonly server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    this.requestedUrls.push(request.url ?? '');
    request.on('error', () => undefined).on('data', (chunk: Buffer) => chunks.push(chunk));
    const respond = this.routes.get(new URL(request.url ?? '', 'http://x').pathname);
    // With this header, the response starts before the request body has been read.
    if (request.headers['x-early'] !== undefined) respond?.(response, request, '');
    else request.on('end', () => respond?.(response, request, Buffer.concat(chunks).toString()));
  });

  async start(): Promise<void> {
    this.server.on('connection', (socket) => {
      this.connectionCount += 1;
      this.openSockets.add(socket);
      socket.on('close', () => this.openSockets.delete(socket)).on('error', () => undefined);
    });
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** Calls an `http:` tool whose endpoint, `/tool`, responds like this. */
  async ask(
    respond: Responder,
    input: Json = null,
    config: HttpToolConfig = {},
    signal?: AbortSignal,
  ): Promise<unknown> {
    this.routes.set('/tool', respond);
    const tool = await httpTools({ environment }).open(`${this.url}/tool?q=hidden`, trustedOrigin, config);
    return tool(input, call(signal === undefined ? {} : { signal }));
  }

  /** Waits at most a second until all connections are closed. Returns true if they are. */
  async allClosed(): Promise<boolean> {
    for (let i = 0; i < 100 && this.openSockets.size > 0; i++) await setTimeout(10);
    return this.openSockets.size === 0;
  }
}

/** Responds with a status, a body and headers. */
export const respondWith =
  (status: number, text = '', headers = {}): Responder =>
  (response) =>
    void response.writeHead(status, headers).end(text);
