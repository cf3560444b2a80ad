/**
 * The `fetch` functions of the providers. Neither follows redirects: the headers contain a key, and HTTP clients do not
 * reliably drop it when they are redirected to another host. `createPublicFetch`, for base URLs from untrusted
 * definitions, also resolves host names to public addresses only.
 */
import type { IncomingMessage } from 'node:http';
import { reachRefusal } from '../../base/permits.js';
import { NotPublicError, publicLookup, type ResolveHost } from '../../base/public-lookup.js';
import { permanentBackendError } from './backend-options.js';

type Fetch = typeof globalThis.fetch;

/** The global `fetch` without redirects. Throws a permanent BACKEND_FAILED error on a redirect. */
export const fetchWithoutRedirects: Fetch = async (input, init) =>
  refuseRedirect(await globalThis.fetch(input, { ...init, /* guard: redirects-not-followed */ redirect: 'manual' }));

function refuseRedirect(response: Response): Response {
  const { status, headers } = response;
  if (status < 300 || status > 399 || !headers.has('location')) return response;
  response.body?.cancel().catch(() => undefined);
  throw permanentBackendError(
    `It answered ${status}, a redirect, which is not followed; configure the final address instead.`,
  );
}

/**
 * Creates a `fetch` that does not follow redirects and refuses a host name with an address that is not public; it
 * throws a permanent BACKEND_FAILED error for both. It does not check a URL with a literal address; the caller does.
 */
export function createPublicFetch(resolve: ResolveHost = systemResolve): Fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const url = new URL(request.url);
    const http = await (url.protocol === 'https:' ? import('node:https') : import('node:http'));
    const body = Buffer.from(await request.arrayBuffer());
    const headers = { ...Object.fromEntries(request.headers), 'content-length': String(body.length) };
    const { method, signal } = request;
    const incoming = await new Promise<IncomingMessage>((onResponse, reject) => {
      const outgoing = http.request(url, { method, headers, signal, agent: false, lookup: publicLookup(resolve) });
      outgoing.on('response', onResponse).on('error', (error) => reject(connectionError(error, url)));
      outgoing.end(body);
    });
    return refuseRedirect(await responseOf(incoming));
  };
}

function connectionError(error: Error, url: URL): Error {
  return error instanceof NotPublicError ? permanentBackendError(`It cannot be called: ${reachRefusal(url)}.`) : error;
}

async function systemResolve(hostname: string): Promise<readonly string[]> {
  const { lookup } = await import('node:dns/promises');
  return (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address);
}

/** The status codes of responses without a body. */
const BODILESS_STATUSES = [204, 205, 304];

async function responseOf(incoming: IncomingMessage): Promise<Response> {
  const { Readable } = await import('node:stream');
  const { statusCode: status = 0, statusMessage: statusText = '' } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) headers.set(name, String(value));
  const body = BODILESS_STATUSES.includes(status) ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  if (body === null) incoming.resume();
  return new Response(body, { status, statusText, headers });
}
