/**
 * Protects the chat handler against cross-site request forgery and DNS rebinding. Browsers send simple POST requests
 * (forms, text/plain) to any server without a preflight request. A page whose domain resolves to this machine can send
 * any request. So a request must name a served host and come from a page of that host or of an allowed origin, and a
 * POST must be JSON. Clients other than browsers send neither Origin nor Sec-Fetch-Site; pages cannot suppress these
 * headers.
 */
import { HttpProblem } from '../http/problem.js';
import { assertJsonContent } from '../http/request-body.js';

/** Which hosts and origins are served. */
interface RequestOriginOptions {
  /** Other origins whose pages may send requests, such as `https://app.example`. */
  readonly origins?: readonly string[] | undefined;
  /** The hosts that are served, such as `app.example` (any port) or `localhost:3000`. */
  readonly hosts?: readonly string[] | undefined;
}

const ALLOWED_METHODS = ['GET', 'POST'];
const LOOPBACK_HOST = /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/**
 * Returns a function that throws an `HttpProblem` for a request that must not be served. If `isLocal` is true and there
 * is no list of hosts, only loopback hosts are served. Throws a TypeError if a list is invalid.
 */
export function createRequestCheck(
  { origins = [], hosts }: RequestOriginOptions,
  isLocal: boolean,
): (request: Request) => void {
  const allowed = new Set(origins.map(parseOrigin));
  const served = hosts === undefined ? undefined : new Set(hosts.map(parseHost));
  return (request) => {
    assertMethod(request);
    const host = requestHostOf(request);
    // guard: only-served-hosts-accepted
    if (!isServedHost(host, served, isLocal)) throw hostNotAllowed(host);
    // guard: foreign-origin-refused
    if (!isTrustedOrigin(request, host, allowed)) throw originNotAllowed();
    // guard: post-is-json
    if (request.method === 'POST') assertJsonContent(request);
  };
}

function assertMethod({ method }: Request): void {
  if (ALLOWED_METHODS.includes(method)) return;
  const allow = ALLOWED_METHODS.join(', ');
  throw new HttpProblem(405, 'METHOD_NOT_ALLOWED', 'Use POST, or GET to read a stream.', { allow });
}

/**
 * True if the host is in the list. Without a list, a handler with users serves all hosts, one without only loopback
 * hosts.
 */
function isServedHost(host: URL | undefined, served: ReadonlySet<string> | undefined, isLocal: boolean): boolean {
  if (host === undefined) return false;
  if (served !== undefined) return served.has(host.host) || served.has(host.hostname);
  return !isLocal || LOOPBACK_HOST.test(host.hostname);
}

/** True if the request comes from a page of this host, from a page of an allowed origin, or not from a browser. */
function isTrustedOrigin({ headers }: Request, host: URL | undefined, allowed: ReadonlySet<string>): boolean {
  const [origin, site] = [headers.get('origin'), headers.get('sec-fetch-site')];
  if (origin !== null && allowed.has(origin)) return true;
  if (site !== null) return site === 'same-origin' || site === 'none';
  if (origin === null) return true;
  // The scheme is not compared: a proxy may terminate TLS.
  return host !== undefined && URL.canParse(origin) && new URL(origin).host === hostUnderScheme(origin, host);
}

/** Returns the host without the default port of the origin's scheme; undefined if the scheme has no hosts. */
function hostUnderScheme(origin: string, { host }: URL): string | undefined {
  const address = `${new URL(origin).protocol}//${host}`;
  return URL.canParse(address) ? new URL(address).host : undefined;
}

/** Returns the host of the `Host` header or else of the URL; undefined if it is not a plain host. */
function requestHostOf({ headers, url }: Request): URL | undefined {
  const address = `http://${headers.get('host') ?? new URL(url).host}`;
  if (!URL.canParse(address)) return undefined;
  const host = new URL(address);
  return host.href === `${host.origin}/` ? host : undefined;
}

function parseOrigin(text: string): string {
  if (URL.canParse(text) && new URL(text).origin === text) return text;
  throw new TypeError(`"origins" must contain origins such as "https://app.example", not ${JSON.stringify(text)}.`);
}

function parseHost(text: string): string {
  const address = `http://${text}`;
  const host = URL.canParse(address) ? new URL(address).host : '';
  if (host === text.toLowerCase()) return host;
  throw new TypeError(
    `"hosts" must contain hosts such as "app.example" or "localhost:3000", not ${JSON.stringify(text)}.`,
  );
}

function hostNotAllowed(host: URL | undefined): HttpProblem {
  const problem = host === undefined ? 'The request has no valid host' : `The host "${host.host}" is not served`;
  return new HttpProblem(403, 'HOST_NOT_ALLOWED', `${problem}. The option "hosts" of the handler lists the hosts.`);
}

function originNotAllowed(): HttpProblem {
  const advice = 'The option "origins" of the handler lists the allowed origins';
  return new HttpProblem(403, 'ORIGIN_NOT_ALLOWED', `Pages of other origins are not served. ${advice}.`);
}
