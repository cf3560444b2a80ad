/**
 * Where a request comes from. Browsers send some POST requests to any server without asking it first (forms, text/plain), and a
 * page whose name is pointed at this machine (DNS rebinding) sends any request. So a request must be JSON, name a host that is
 * served here, and come from that host's own pages or from an origin that the operator allows. What is no browser sends neither
 * Origin nor Sec-Fetch-Site; a page cannot leave them out.
 */
import { HttpProblem } from './problem.js';

/** Whose requests are served. */
export interface RequestOriginOptions {
  /** Other origins whose pages may send requests, as `https://app.example`. */
  readonly origins?: readonly string[] | undefined;
  /** The hosts that are served, as `app.example` or `localhost:3000`; without a port, at any. */
  readonly hosts?: readonly string[] | undefined;
}

const ALLOWED_METHODS = ['GET', 'POST'];
const LOOPBACK_HOST = /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const JSON_CONTENT_TYPE = /^application\/json\s*(?:;|$)/i;

/** Reads the lists once; one that cannot be used is an error of the operator's. */
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
    if (request.method === 'POST') assertJson(request);
  };
}

function assertMethod({ method }: Request): void {
  if (ALLOWED_METHODS.includes(method)) return;
  const allow = ALLOWED_METHODS.join(', ');
  throw new HttpProblem(405, 'METHOD_NOT_ALLOWED', 'There is POST, and GET of a stream.', { allow });
}

/** A type that a form or a page of another origin cannot send without being asked for permission first. */
function assertJson({ headers }: Request): void {
  if (JSON_CONTENT_TYPE.test(headers.get('content-type') ?? '')) return;
  throw new HttpProblem(415, 'INPUT_VALIDATION_FAILED', 'Send JSON, with the header "content-type: application/json".');
}

/** Without a list, a handler that knows no users serves this machine alone. */
function isServedHost(host: URL | undefined, served: ReadonlySet<string> | undefined, isLocal: boolean): boolean {
  if (host === undefined) return false;
  if (served !== undefined) return served.has(host.host) || served.has(host.hostname);
  return !isLocal || LOOPBACK_HOST.test(host.hostname);
}

/** True for what a page of this host or of an allowed origin sends, and for what no page sends. */
function isTrustedOrigin({ headers }: Request, host: URL | undefined, allowed: ReadonlySet<string>): boolean {
  const [origin, site] = [headers.get('origin'), headers.get('sec-fetch-site')];
  if (origin !== null && allowed.has(origin)) return true;
  if (site !== null) return site === 'same-origin' || site === 'none';
  if (origin === null) return true;
  // The scheme is not compared: TLS may end before us.
  return host !== undefined && URL.canParse(origin) && new URL(origin).host === hostUnderScheme(origin, host);
}

/** The host as it stands in an address of this origin, without a port that is its default; undefined if the origin has no such addresses. */
function hostUnderScheme(origin: string, { host }: URL): string | undefined {
  const address = `${new URL(origin).protocol}//${host}`;
  return URL.canParse(address) ? new URL(address).host : undefined;
}

/** The host that a request names: by its header, or by its address where a server has read that. */
function requestHostOf({ headers, url }: Request): URL | undefined {
  const named = headers.get('host') ?? new URL(url).host;
  const address = `http://${named}`;
  if (!URL.canParse(address)) return undefined;
  const host = new URL(address);
  return host.href === `${host.origin}/` ? host : undefined;
}

function parseOrigin(text: string): string {
  if (URL.canParse(text) && new URL(text).origin === text) return text;
  throw new TypeError(`"origins" lists origins such as "https://app.example", not ${JSON.stringify(text)}.`);
}

function parseHost(text: string): string {
  const address = `http://${text}`;
  const host = URL.canParse(address) ? new URL(address).host : '';
  if (host === text.toLowerCase()) return host;
  throw new TypeError(`"hosts" lists hosts such as "app.example" or "localhost:3000", not ${JSON.stringify(text)}.`);
}

function hostNotAllowed(host: URL | undefined): HttpProblem {
  const named = host === undefined ? 'The request names no host' : `The host "${host.host}" is not served here`;
  return new HttpProblem(403, 'HOST_NOT_ALLOWED', `${named}. The operator lists hosts in the option "hosts".`);
}

function originNotAllowed(): HttpProblem {
  const allow = 'The operator lists other origins in the option "origins"';
  return new HttpProblem(403, 'ORIGIN_NOT_ALLOWED', `Pages of other origins are not served. ${allow}.`);
}
