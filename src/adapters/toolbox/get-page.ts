/**
 * One GET to one URL. The name is resolved here, every address that it has is judged, and the connection is opened to one of
 * exactly those addresses, as numbers: nobody resolves the name again. Nothing is kept between requests.
 */
import { lookup } from 'node:dns/promises';
import { type IncomingMessage, request } from 'node:http';
import { isIP, connect as netConnect, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { NotPublicError, publicAddresses, type ResolveHost } from '../../base/public-lookup.js';
import type { FetchOptions } from './options.js';
import { truncate } from './text.js';
import { toolError } from './tool-error.js';

export interface FetchedPage {
  readonly status: number;
  /** Where it leads instead. */
  readonly location: string | undefined;
  readonly contentType: string;
  readonly encoding: string | undefined;
  readonly body: Buffer;
  /** Whether it went on beyond what was read. */
  readonly isTruncated: boolean;
}

const DEFAULT_MAX_BYTES = 1024 * 1024;
const ALLOWED_PORTS = ['80', '443', '8080', '8443'];
const MAX_URL_CHARS = 4096;
/** Addresses that are tried, one after another. */
const MAX_TRIED_ADDRESSES = 3;

/** The URL, if it is one that may be asked at all. Nothing is sent or looked up to tell. */
export function parseAllowedUrl(text: string, base: URL | undefined, options: FetchOptions): URL {
  const named = JSON.stringify(truncate(text, 200));
  // Programs do not agree on what these mean, so a person may read another host than the one that is asked.
  if (text.length > MAX_URL_CHARS || /[\p{Cc}\s\\]/u.test(text) || !URL.canParse(text, base?.href)) {
    throw toolError(`${named} is not a URL that can be fetched; write https://HOST/PATH.`);
  }
  const url = new URL(text, base?.href);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw toolError(`${named} is refused: only http and https can be fetched.`);
  }
  if (url.username !== '' || url.password !== '') throw toolError(`${named} is refused: it has a user name in it.`);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  if (!options.allowPrivate && !ALLOWED_PORTS.includes(port)) {
    throw toolError(`${named} is refused: port ${port} is not one of ${ALLOWED_PORTS.join(', ')}.`);
  }
  const host = bareHost(url);
  if (options.allow !== undefined && !options.allow.some((pattern) => matchesHost(pattern, host))) {
    throw toolError(`${named} is refused: of hosts only ${options.allow.join(', ')} may be fetched.`);
  }
  return url;
}

/** Without brackets, and without the dot that ends a full name. */
function bareHost({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

function matchesHost(pattern: string, host: string): boolean {
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/** The addresses of the host, if all of them may be reached: one that may not is enough to refuse. */
async function resolveAddresses(url: URL, options: FetchOptions): Promise<readonly string[]> {
  const host = bareHost(url);
  const resolve: ResolveHost = isIP(host) === 0 ? (options.resolve ?? systemResolve) : async () => [host];
  const addresses = await refuseNotPublic(url, options.allowPrivate ? resolve(host) : publicAddresses(host, resolve));
  if (addresses.length === 0) throw toolError(`${url.host} has no address.`);
  // Anything else would be resolved once more when it is connected to.
  if (!addresses.every((address) => isIP(address) !== 0))
    throw toolError(`${url.host} is refused: it was resolved to something that is no IP address.`);
  // The older kind first: where the newer does not work, nothing says so for a long time.
  return [...addresses].sort((a, b) => isIP(a) - isIP(b)).slice(0, MAX_TRIED_ADDRESSES);
}

async function refuseNotPublic(url: URL, addresses: Promise<readonly string[]>): Promise<readonly string[]> {
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

/** Asks for the page. The signal ends it at any point, and rejects with its reason. */
export async function getPage(url: URL, options: FetchOptions, signal: AbortSignal): Promise<FetchedPage> {
  const addresses = await abortable(signal, resolveAddresses(url, options));
  let failure: unknown;
  for (const address of addresses) {
    try {
      return await requestPage(url, address, options, signal);
    } catch (error) {
      failure = error;
    }
    signal.throwIfAborted();
  }
  throw failure;
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
  const sent = request({ method: 'GET', path: `${url.pathname}${url.search}`, headers, createConnection });
  const stop = (): void => void sent.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const answer = new Promise<IncomingMessage>((answered, reject) => {
      sent.on('response', answered).on('error', reject);
      sent.on('close', () => reject(new Error('the connection was closed without an answer')));
      sent.end();
    });
    const incoming = await abortable(signal, answer);
    const read = await abortable(signal, readBody(incoming, options.maxBytes ?? DEFAULT_MAX_BYTES));
    signal.throwIfAborted();
    const { statusCode: status = 0, headers: answered } = incoming;
    const { location, 'content-type': contentType = '', 'content-encoding': encoding } = answered;
    return { status, location, contentType, encoding, ...read };
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', stop);
    sent.destroy();
  }
}

/** Opened to the number; the name is only for the certificate. */
function connectSocket(url: URL, address: string, { connect = connectPlainSocket }: FetchOptions): Socket {
  const secure = url.protocol === 'https:';
  const socket = connect(address, Number(url.port || (secure ? 443 : 80)));
  if (!secure) return socket;
  const host = bareHost(url);
  return tlsConnect({ socket, host, ALPNProtocols: ['http/1.1'], ...(isIP(host) === 0 && { servername: host }) });
}

function connectPlainSocket(host: string, port: number): Socket {
  return netConnect({ host, port, autoSelectFamily: false });
}

async function readBody(incoming: IncomingMessage, most: number): Promise<Pick<FetchedPage, 'body' | 'isTruncated'>> {
  const pieces: Buffer[] = [];
  let size = 0;
  incoming.on('error', () => undefined);
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.length;
    if (size > most) return { body: Buffer.concat(pieces).subarray(0, most), isTruncated: true };
  }
  return { body: Buffer.concat(pieces), isTruncated: false };
}

/** Work that cannot be stopped, no longer waited for than the signal allows. */
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
