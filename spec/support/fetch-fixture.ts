/** Shared helpers for tests of `fetch_url`: local servers, and a tool that fetches from them. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Server as NetServer } from 'node:net';
import { type FetchOptions, toolbox } from '../../src/adapters/toolbox/index.js';
import { createWorkspace, use } from './toolbox-fixture.mjs';

/** Addresses that count as public. Tests connect them to a local server. */
export const PUBLIC = '93.184.216.34';
export const PUBLIC6 = '2606:2800:220:1:248:1893:25c8:1946';

/** Responds to a request. */
export type PageResponder = (request: IncomingMessage, response: ServerResponse) => void;

const servers = new Set<Server | NetServer>();

/** Starts a server on a free port and returns the port. */
export async function listen(server: Server | NetServer, host = '127.0.0.1'): Promise<number> {
  servers.add(server);
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

/** Starts an HTTP server with this responder and returns its port. */
export function servePages(respond: PageResponder): Promise<number> {
  return listen(createServer(respond));
}

/** Closes all servers that a test file has started. */
export function closeServers(): void {
  for (const server of servers) server.close();
  servers.clear();
}

/** Returns a function that calls `fetch_url` with these options. */
export function createFetcher(
  fetch: FetchOptions,
): (url: string, callOptions?: object) => Promise<{ readonly [name: string]: unknown }> {
  const { fetch_url } = toolbox({ roots: [createWorkspace().root], fetch });
  return (url, callOptions = {}) => use(fetch_url, { url }, callOptions);
}
