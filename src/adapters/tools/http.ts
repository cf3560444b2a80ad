/**
 * `http:URL` tools: the input is sent as the JSON body of a POST request, and the JSON body of the response is the
 * output. An untrusted definition can send an environment variable, or reach an address that is not public, only with a
 * permit of the operator.
 */
import { StringDecoder } from 'node:string_decoder';
import { LoopError } from '../../base/errors.js';
import {
  assertDestination,
  isKnownPrivateHost,
  type Permits,
  permitsOf,
  reachRefusal,
  sendRefusal,
} from '../../base/permits.js';
import { NotPublicError, type ResolveHost } from '../../base/public-lookup.js';
import { type Redactor, redactorOf } from '../../base/redact.js';
import type { ToolImplementation } from '../../loops/tool-implementation.js';
import type { Json } from '../../protocol/json.js';
import { assertNoProblem, type ConfigRule, outputBytesSetting, type ParsedConfig, parseConfig } from './config.js';
import {
  encodeIdempotencyKey,
  envHeadersRule,
  headersFromEnvironment,
  literalHeadersRule,
  type StringMap,
} from './headers.js';
import { openingExcerpt, parseJsonDocument } from './json-document.js';
import type { HttpResponse } from './post.js';
import { describeError } from './sanitize-text.js';

/** Options of {@link httpTools} and {@link httpsTools}. */
export interface HttpOptions {
  /**
   * The environment that `config.headersFromEnv` reads.
   * @default process.env
   */
  readonly environment?: NodeJS.ProcessEnv;
  /**
   * The variables that untrusted definitions may send, and the private hosts they may reach.
   * @default the keys of known model providers may be sent to the hosts of these providers
   */
  readonly permits?: Permits;
  /**
   * Resolves host names for untrusted definitions.
   * @default the system resolver
   */
  readonly resolve?: ResolveHost;
}

interface HttpSettings {
  readonly headers: StringMap;
  readonly headersFromEnv: StringMap;
  readonly maxOutputBytes: number;
}

const configRules: { readonly [K in keyof HttpSettings]: ConfigRule<HttpSettings[K]> } = {
  headers: literalHeadersRule,
  headersFromEnv: envHeadersRule,
  maxOutputBytes: outputBytesSetting.rule,
};

/** The maximum delay that a Retry-After header can request: one day. */
const MAX_RETRY_AFTER_MS = 86_400_000;

/**
 * Parses the target of `http:https://host/path`, or of an implementation that is itself a URL. Returns undefined if it
 * is not a valid http or https URL; the scheme `https` accepts only the latter.
 */
function parseUrl(scheme: string, target: string): URL | undefined {
  const text = target.startsWith('//') ? `${scheme}:${target}` : target;
  const pattern = scheme === 'http' ? /^https?:\/\/[^/]/ : /^https:\/\/[^/]/;
  if (!pattern.test(text) || /[\p{Cc}\s\\]/u.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Returns the name of an endpoint for messages, without the query, which may contain secrets. */
function endpointLabel({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function findEndpointProblem(
  url: URL | undefined,
  trusted: boolean,
  { settings, problem }: ParsedConfig<HttpSettings>,
  permits: Permits,
): string | undefined {
  if (url === undefined) return 'This is not a valid URL; write http:https://HOST/PATH.';
  if (url.username !== '' || url.password !== '') {
    return `The URL of ${endpointLabel(url)} contains credentials; remove them and use config.headersFromEnv.`;
  }
  return (
    problem ?? (trusted ? undefined : findPermitProblem(url, Object.values(settings.headersFromEnv ?? {}), permits))
  );
}

/**
 * Returns the reason why an untrusted definition may not send a variable or reach the URL; undefined if it may. Host
 * names are not resolved here; their addresses are checked on connect.
 */
function findPermitProblem(url: URL, variables: readonly string[], permits: Permits): string | undefined {
  // guard: header-variables-permitted
  const forbidden = variables.find((variable) => !permits.canSend(variable, url));
  if (forbidden !== undefined) return `config.headersFromEnv ${sendRefusal(forbidden, url)}`;
  // guard: private-address-refused
  return isKnownPrivateHost(url) && !permits.canReach(url) ? reachRefusal(url) : undefined;
}

/**
 * Parses Retry-After; a missing or invalid header yields no delay. A date is compared with the Date header of the same
 * response, so no clock is needed.
 */
function retryAfterOf({ headers }: HttpResponse): { readonly retryAfterMs?: number } {
  const value = headers['retry-after'];
  if (value === undefined) return {};
  const isSeconds = /^\d{1,9}$/.test(value);
  const ms = isSeconds ? Number(value) * 1000 : Date.parse(value) - Date.parse(headers.date ?? '');
  // Date.parse accepts almost any text, so the suffix of an HTTP date is required too.
  return Number.isFinite(ms) && (isSeconds || value.endsWith(' GMT'))
    ? { retryAfterMs: Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) }
    : {};
}

/** Decodes a body as UTF-8, without the incomplete character at the end of a truncated one. */
function decodeBody(body: Buffer, isTruncated: boolean): string {
  return isTruncated ? new StringDecoder('utf8').write(body) : body.toString();
}

function statusError(label: string, response: HttpResponse, redactor: Redactor): LoopError {
  const { status, headers, body, isTruncated } = response;
  const retryable = status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599);
  const isRedirect = status >= 300 && status <= 399 && headers.location !== undefined;
  const reason = isRedirect
    ? 'a redirect, which is not followed'
    : openingExcerpt(decodeBody(body, isTruncated), redactor, isTruncated);
  const message = `${label} answered ${status}${reason === '' ? '.' : `: ${reason}`}`;
  return new LoopError('TOOL_FAILED', message, { status, retryable, ...retryAfterOf(response) });
}

function parseOutput(label: string, response: HttpResponse, redactor: Redactor): Json {
  const { status, body, isTruncated } = response;
  if (status < 200 || status > 299) throw statusError(label, response, redactor);
  const invalid = (message: string): LoopError => new LoopError('TOOL_FAILED', message, { status, retryable: false });
  if (isTruncated)
    throw invalid(`${label} answered more than ${body.length} bytes. Return less, or raise config.maxOutputBytes.`);
  const document = parseJsonDocument(body, redactor);
  if ('value' in document) return document.value;
  throw invalid(`${label} must answer with one JSON document, but answered ${document.problem}`);
}

function networkError(url: URL, error: unknown, redactor: Redactor): LoopError {
  const label = endpointLabel(url);
  if (error instanceof NotPublicError) {
    return new LoopError('TOOL_FAILED', `${label}: ${reachRefusal(url)}.`, { retryable: false }, error);
  }
  const { code = describeError(error) } = error as NodeJS.ErrnoException;
  const message = redactor.redactText(`${label} did not answer: ${code}.`);
  return new LoopError('TOOL_FAILED', message, { retryable: true }, error);
}

/** Returns a function that creates a redactor, or returns the previous one if the secrets are the same. */
function memoizedRedactor(): (secrets: readonly string[]) => Redactor {
  let cached: { readonly key: string; readonly redactor: Redactor } | undefined;
  return (secrets) => {
    const key = JSON.stringify(secrets);
    if (cached?.key !== key) cached = { key, redactor: redactorOf(secrets) };
    return cached.redactor;
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
      const parsed = parseConfig(scheme, config, configRules);
      assertNoProblem(findEndpointProblem(url, trusted, parsed, permits));
      const { headers = {}, headersFromEnv = {}, maxOutputBytes = outputBytesSetting.defaultBytes } = parsed.settings;
      // Loaded on first use: it loads the HTTP modules of Node.
      const { post } = await import('./post.js');
      const redactorFor = memoizedRedactor();
      const commonHeaders = { accept: 'application/json', 'content-type': 'application/json', ...headers };
      return async (input, { idempotencyKey, signal, confinement }) => {
        signal.throwIfAborted();
        // guard: posted-host-granted
        assertDestination(confinement?.destinations, url);
        const secretHeaders = headersFromEnvironment(environment, headersFromEnv);
        const redactor = redactorFor(Object.values(secretHeaders));
        const idempotencyHeader = { 'idempotency-key': encodeIdempotencyKey(idempotencyKey) };
        const allHeaders = { ...commonHeaders, ...secretHeaders, ...idempotencyHeader };
        // guard: untrusted-tool-reaches-public-only
        const publicOnly = !trusted && !permits.canReach(url);
        const request = { url, headers: allHeaders, body: JSON.stringify(input), maxOutputBytes, publicOnly, resolve };
        const response = await post(request, signal).catch((error) => {
          throw signal.aborted ? signal.reason : networkError(url, error, redactor);
        });
        return parseOutput(endpointLabel(url), response, redactor);
      };
    },
  };
}

/**
 * Creates the implementation of `http:URL` tools and of tools whose implementation is a URL starting with `http://`.
 */
export function httpTools(options: HttpOptions = {}): ToolImplementation {
  return toolsForScheme('http', options);
}

/** Creates the implementation of tools whose implementation is a URL starting with `https://`. */
export function httpsTools(options: HttpOptions = {}): ToolImplementation {
  return toolsForScheme('https', options);
}
