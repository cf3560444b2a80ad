/**
 * The `fetch` of providers. None follows a redirect: the headers carry a key, and only some clients drop only some of them on
 * the way to another host. The checked one also connects to public addresses only, for addresses that nobody vouches for.
 */
import type { IncomingMessage } from 'node:http';
import { reachRefusal } from '../../base/permits.js';
import { NotPublicError, publicLookup, type ResolveHost } from '../../base/public-lookup.js';
import { permanentBackendError } from './backend-options.js';

type Fetch = typeof globalThis.fetch;

/** The fetch of this Node. */
export const fetchWithoutRedirects: Fetch = async (input, init) =>
  refuseRedirect(await globalThis.fetch(input, { ...init, /* guard: redirects-not-followed */ redirect: 'manual' }));

function refuseRedirect(response: Response): Response {
  const { status, headers } = response;
  if (status < 300 || status > 399 || !headers.has('location')) return response;
  response.body?.cancel().catch(() => undefined);
  throw permanentBackendError(
    `It answered ${status}, a redirect, which is not followed: name the address where it really is.`,
  );
}

/** A fetch that connects to public addresses only. An address in the URL itself is for the caller to judge. */
export function createPublicFetch(resolve: ResolveHost = systemResolve): Fetch {
  return async (input, init) => {
    const asked = new Request(input, init);
    const url = new URL(asked.url);
    const { request } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'));
    const body = Buffer.from(await asked.arrayBuffer());
    const headers = { ...Object.fromEntries(asked.headers), 'content-length': String(body.length) };
    const { method, signal } = asked;
    const incoming = await new Promise<IncomingMessage>((answered, reject) => {
      const sent = request(url, { method, headers, signal, agent: false, lookup: publicLookup(resolve) });
      sent.on('response', answered).on('error', (error) => reject(connectionError(error, url)));
      sent.end(body);
    });
    return refuseRedirect(await responseOf(incoming));
  };
}

function connectionError(error: Error, url: URL): Error {
  return error instanceof NotPublicError ? permanentBackendError(`It cannot be asked: ${reachRefusal(url)}.`) : error;
}

async function systemResolve(hostname: string): Promise<readonly string[]> {
  const { lookup } = await import('node:dns/promises');
  return (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address);
}

/** Answers of these codes have no body. */
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
