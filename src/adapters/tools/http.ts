/**
 * `http:URL`: an endpoint that takes the input as the JSON body of a POST and answers with the output. A definition that is
 * not trusted reaches public addresses and sends variables only as far as the operator permits more.
 */
import { StringDecoder } from 'node:string_decoder';
import { LoopError } from '../../base/errors.js';
import { isKnownPrivateHost, type Permits, permitsOf, reachRefusal, sendRefusal } from '../../base/permits.js';
import { NotPublicError, type ResolveHost } from '../../base/public-lookup.js';
import { type Redactor, redactorOf } from '../../base/redact.js';
import type { ToolImplementation } from '../../loops/tool-implementation.js';
import type { Json } from '../../protocol/json.js';
import { assertNoProblem, type ConfigRule, outputBytesSetting, type ParsedConfig, parseConfig } from './config.js';
import {
  encodeHeaderValue,
  headersFromEnvironment,
  literalHeadersRule,
  type StringMap,
  variableHeadersRule,
} from './headers.js';
import { openingExcerpt, parseJsonDocument } from './json-document.js';
import type { HttpResponse } from './post.js';
import { describeError } from './sanitize-text.js';

export interface HttpOptions {
  /** Where `headersFromEnv` looks; the environment of this process unless told. */
  readonly environment?: NodeJS.ProcessEnv;
  /** What definitions that are not trusted may send and reach; without it, only public addresses. */
  readonly permits?: Permits;
  /** Resolves host names for definitions that are not trusted; the resolver of the system unless given. */
  readonly resolve?: ResolveHost;
}

interface HttpSettings {
  readonly headers: StringMap;
  readonly headersFromEnv: StringMap;
  readonly maxOutputBytes: number;
}

const configRules: { readonly [K in keyof HttpSettings]: ConfigRule<HttpSettings[K]> } = {
  headers: literalHeadersRule,
  headersFromEnv: variableHeadersRule,
  maxOutputBytes: outputBytesSetting.kind,
};

/** The longest that a server may ask us to stay away: a day. */
const MAX_RETRY_AFTER_MS = 86_400_000;

/** The URL that is meant: `http:https://host/path`, or the whole text is one. */
function parseUrl(scheme: string, target: string): URL | undefined {
  const text = target.startsWith('//') ? `${scheme}:${target}` : target;
  const proper = scheme === 'http' ? /^https?:\/\/[^/]/ : /^https:\/\/[^/]/;
  if (!proper.test(text) || /[\p{Cc}\s\\]/u.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** An endpoint in messages; its query may hold what is nobody's business. */
function endpointLabel({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function findEndpointProblem(
  url: URL | undefined,
  trusted: boolean,
  { settings, problem }: ParsedConfig<HttpSettings>,
  permits: Permits,
): string | undefined {
  if (url === undefined) return 'This is not a URL that can be asked; write http:https://HOST/PATH.';
  if (url.username !== '' || url.password !== '') {
    return `The URL of ${endpointLabel(url)} holds credentials; take them out and use config.headersFromEnv.`;
  }
  return (
    problem ?? (trusted ? undefined : findPermitProblem(url, Object.values(settings.headersFromEnv ?? {}), permits))
  );
}

/** What of a definition that is not trusted the operator does not permit, as far as its text tells. */
function findPermitProblem(url: URL, variables: readonly string[], permits: Permits): string | undefined {
  // guard: header-variables-permitted
  const refused = variables.find((variable) => !permits.canSend(variable, url));
  if (refused !== undefined) return `config.headersFromEnv ${sendRefusal(refused, url)}`;
  // guard: private-address-refused
  return isKnownPrivateHost(url) && !permits.canReach(url) ? reachRefusal(url) : undefined;
}

/** How long the server asks us to stay away; a date counts from the date of the same answer, so no clock is needed. */
function retryAfterOf({ headers }: HttpResponse): { readonly retryAfterMs?: number } {
  const value = headers['retry-after'];
  if (value === undefined) return {};
  const seconds = /^\d{1,9}$/.test(value);
  const ms = seconds ? Number(value) * 1000 : Date.parse(value) - Date.parse(headers.date ?? '');
  // The parser of dates makes something of almost anything.
  return Number.isFinite(ms) && (seconds || value.endsWith(' GMT'))
    ? { retryAfterMs: Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) }
    : {};
}

/** The bytes as text; what was cut does not end within a character. */
function decodeBody(body: Buffer, cut: boolean): string {
  return cut ? new StringDecoder('utf8').write(body) : body.toString();
}

function statusError(label: string, answer: HttpResponse, secrets: Redactor): LoopError {
  const { status, headers, body, isTruncated } = answer;
  const retryable = status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599);
  const redirect = status >= 300 && status <= 399 && headers.location !== undefined;
  const told = redirect
    ? 'a redirect, which is not followed'
    : openingExcerpt(decodeBody(body, isTruncated), secrets, isTruncated);
  const message = `${label} answered ${status}${told === '' ? '.' : `: ${told}`}`;
  return new LoopError('TOOL_FAILED', message, { status, retryable, ...retryAfterOf(answer) });
}

function parseOutput(label: string, answer: HttpResponse, secrets: Redactor): Json {
  const { status, body, isTruncated } = answer;
  if (status < 200 || status > 299) throw statusError(label, answer, secrets);
  const fail = (message: string): LoopError => new LoopError('TOOL_FAILED', message, { status, retryable: false });
  if (isTruncated)
    throw fail(`${label} answered more than ${body.length} bytes. Answer less, or raise config.maxOutputBytes.`);
  const document = parseJsonDocument(body, secrets);
  if ('value' in document) return document.value;
  throw fail(`${label} must answer with one JSON document, but answered ${document.flaw}`);
}

function networkError(url: URL, error: unknown, secrets: Redactor): LoopError {
  const label = endpointLabel(url);
  if (error instanceof NotPublicError) {
    return new LoopError('TOOL_FAILED', `${label}: ${reachRefusal(url)}.`, { retryable: false }, error);
  }
  const { code = describeError(error) } = error as NodeJS.ErrnoException;
  const message = secrets.redactText(`${label} did not answer: ${code}.`);
  return new LoopError('TOOL_FAILED', message, { retryable: true }, error);
}

/** Makes a redactor, or returns the last one if the secrets are the same. */
function memoizedRedactor(): (secrets: readonly string[]) => Redactor {
  let known: { readonly of: string; readonly redactor: Redactor } | undefined;
  return (secrets) => {
    const of = JSON.stringify(secrets);
    if (known?.of !== of) known = { of, redactor: redactorOf(secrets) };
    return known.redactor;
  };
}

function toolsForScheme(scheme: string, options: HttpOptions): ToolImplementation {
  const { environment = process.env, permits = permitsOf(environment), resolve } = options;
  return {
    scheme,
    approvalDescriber: () => undefined,
    targetResolver: () => undefined,
    unavailableReason: (target, { trusted }, config) =>
      findEndpointProblem(parseUrl(scheme, target), trusted, parseConfig(scheme, config, configRules), permits),
    open: async (target, { trusted }, config) => {
      const url = parseUrl(scheme, target) as URL;
      const reading = parseConfig(scheme, config, configRules);
      assertNoProblem(findEndpointProblem(url, trusted, reading, permits));
      const { headers = {}, headersFromEnv = {}, maxOutputBytes = outputBytesSetting.usual } = reading.settings;
      // Loaded with the first tool that needs it: it brings the whole of Node's HTTP.
      const { post } = await import('./post.js');
      const redactorFor = memoizedRedactor();
      const own = { accept: 'application/json', 'content-type': 'application/json', ...headers };
      return async (input, { idempotencyKey, signal }) => {
        signal.throwIfAborted();
        const secret = headersFromEnvironment(environment, headersFromEnv);
        const secrets = redactorFor(Object.values(secret));
        const all = { ...own, ...secret, 'idempotency-key': encodeHeaderValue(idempotencyKey) };
        // guard: untrusted-tool-reaches-public-only
        const publicOnly = !trusted && !permits.canReach(url);
        const posting = { url, headers: all, body: JSON.stringify(input), maxOutputBytes, publicOnly, resolve };
        const answer = await post(posting, signal).catch((error) => {
          throw signal.aborted ? signal.reason : networkError(url, error, secrets);
        });
        return parseOutput(endpointLabel(url), answer, secrets);
      };
    },
  };
}

/** `http:URL`, and URLs that begin with `http://`. */
export function httpTools(options: HttpOptions = {}): ToolImplementation {
  return toolsForScheme('http', options);
}

/** URLs that begin with `https://`. */
export function httpsTools(options: HttpOptions = {}): ToolImplementation {
  return toolsForScheme('https', options);
}
