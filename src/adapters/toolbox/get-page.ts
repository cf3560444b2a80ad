/**
 * Sends one GET request. The host name is resolved here, all its addresses are checked unless `allowPrivate` is set,
 * and the connection is opened to one of these addresses. The name is not resolved again, which prevents DNS rebinding.
 * Requests share no state.
 */
import { lookup } from 'node:dns/promises';
import { type IncomingMessage, request } from 'node:http';
import { isIP, connect as netConnect, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { NotPublicError, publicAddresses, type ResolveHost } from '../../base/public-lookup.js';
import type { FetchOptions } from './options.js';
import { truncate } from './text.js';
import { toolError } from './tool-error.js';

/** A response, with its body up to the limit. */
export interface FetchedPage {
  readonly status: number;
  /** The target of a redirect. */
  readonly location: string | undefined;
  readonly contentType: string;
  readonly encoding: string | undefined;
  readonly body: Buffer;
  /** True if the body is longer than the limit. */
  readonly isTruncated: boolean;
}

const DEFAULT_MAX_BYTES = 1024 * 1024;
const ALLOWED_PORTS = ['80', '443', '8080', '8443'];
const MAX_URL_CHARS = 4096;
/** The number of addresses that are tried, one after another. */
const MAX_TRIED_ADDRESSES = 3;

/**
 * Parses a URL and checks its scheme, port and host name. Throws TOOL_FAILED if it is refused. Does not use the
 * network; `getPage` checks the addresses.
 */
export function parseAllowedUrl(text: string, base: URL | undefined, options: FetchOptions): URL {
  const quoted = JSON.stringify(truncate(text, 200));
  // URL parsers disagree about these characters, so a person could read another host than the one that is contacted.
  if (text.length > MAX_URL_CHARS || /[\p{Cc}\s\\]/u.test(text) || !URL.canParse(text, base?.href)) {
    throw toolError(`${quoted} is not a URL that can be fetched; write https://HOST/PATH.`);
  }
  const url = new URL(text, base?.href);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw toolError(`${quoted} is refused: only http and https can be fetched.`);
  }
  if (url.username !== '' || url.password !== '') throw toolError(`${quoted} is refused: it contains a user name.`);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  if (!options.allowPrivate && !ALLOWED_PORTS.includes(port)) {
    throw toolError(`${quoted} is refused: port ${port} is not one of ${ALLOWED_PORTS.join(', ')}.`);
  }
  const host = bareHost(url);
  if (options.allow !== undefined && !options.allow.some((pattern) => matchesHost(pattern, host))) {
    throw toolError(`${quoted} is refused: only ${options.allow.join(', ')} may be fetched.`);
  }
  return url;
}

/** Returns the host name without the brackets of an IPv6 address and without the trailing dot of a full name. */
function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

function matchesHost(pattern: string, host: string): boolean {
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/**
 * Returns up to three addresses of the host, IPv4 first. Throws TOOL_FAILED if there are none or one of them is not
 * allowed.
 */
async function resolveAddresses(url: URL, options: FetchOptions): Promise<readonly string[]> {
  const host = bareHost(url);
  const resolve: ResolveHost = isIP(host) === 0 ? (options.resolve ?? systemResolve) : async () => [host];
  const addresses = await withRefusal(url, options.allowPrivate ? resolve(host) : publicAddresses(host, resolve));
  if (addresses.length === 0) throw toolError(`${url.host} has no address.`);
  // Anything else would be resolved again on connect.
  if (!addresses.every((address) => isIP(address) !== 0))
    throw toolError(`${url.host} is refused: it was resolved to something that is not an IP address.`);
  // IPv4 first: without IPv6 connectivity, a connection attempt over IPv6 may time out very slowly.
  return [...addresses].sort((a, b) => isIP(a) - isIP(b)).slice(0, MAX_TRIED_ADDRESSES);
}

async function withRefusal(url: URL, addresses: Promise<readonly string[]>): Promise<readonly string[]> {
  try {
    return await addresses;
  } catch (error) {
    throw error instanceof NotPublicError
      ? toolError(`${url.host} is refused: it is not on the public internet.`)
      : error;
  }
}

async function systemResolve(hostname: string): Promise<readonly string[]> {
  return (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address);
}

/**
 * Gets a page without following redirects. Tries the addresses of the host one after another. Rejects with the reason
 * of the signal as soon as it aborts, and with TOOL_FAILED or a network error if there is no response.
 */
export async function getPage(url: URL, options: FetchOptions, signal: AbortSignal): Promise<FetchedPage> {
  const addresses = await abortable(signal, resolveAddresses(url, options));
  let lastError: unknown;
  for (const address of addresses) {
    try {
      return await requestPage(url, address, options, signal);
    } catch (error) {
      lastError = error;
    }
    signal.throwIfAborted();
  }
  throw lastError;
}

async function requestPage(
  url: URL,
  address: string,
  options: FetchOptions,
  signal: AbortSignal,
): Promise<FetchedPage> {
  const headers = {
    host: url.host,
    accept: 'text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.9, */*;q=0.1',
    'accept-encoding': 'identity',
    'user-agent': 'rondo',
  };
  const createConnection = (): Socket => connectSocket(url, address, options);
  const outgoing = request({ method: 'GET', path: `${url.pathname}${url.search}`, headers, createConnection });
  const stop = (): void => void outgoing.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const response = new Promise<IncomingMessage>((onResponse, reject) => {
      outgoing.on('response', onResponse).on('error', reject);
      outgoing.on('close', () => reject(new Error('the connection was closed without an answer')));
      outgoing.end();
    });
    const incoming = await abortable(signal, response);
    const body = await abortable(signal, readBody(incoming, options.maxBytes ?? DEFAULT_MAX_BYTES));
    signal.throwIfAborted();
    const { statusCode: status = 0, headers: responseHeaders } = incoming;
    const { location, 'content-type': contentType = '', 'content-encoding': encoding } = responseHeaders;
    return { status, location, contentType, encoding, ...body };
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', stop);
    outgoing.destroy();
  }
}

/** Connects to the address. The host name is used for TLS only. */
function connectSocket(url: URL, address: string, { connect = connectPlainSocket }: FetchOptions): Socket {
  const isSecure = url.protocol === 'https:';
  const socket = connect(address, Number(url.port || (isSecure ? 443 : 80)));
  if (!isSecure) return socket;
  const host = bareHost(url);
  return tlsConnect({ socket, host, ALPNProtocols: ['http/1.1'], ...(isIP(host) === 0 && { servername: host }) });
}

function connectPlainSocket(host: string, port: number): Socket {
  return netConnect({ host, port, autoSelectFamily: false });
}

async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
): Promise<Pick<FetchedPage, 'body' | 'isTruncated'>> {
  const chunks: Buffer[] = [];
  let size = 0;
  incoming.on('error', () => undefined);
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > maxBytes) return { body: Buffer.concat(chunks).subarray(0, maxBytes), isTruncated: true };
  }
  return { body: Buffer.concat(chunks), isTruncated: false };
}

/** Awaits work that cannot be stopped, or rejects with the reason of the signal as soon as it aborts. */
async function abortable<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason);
  });
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
