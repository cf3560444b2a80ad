/**
 * `http:URL`: an endpoint that takes the input as the JSON body of a POST and answers with the output. A definition that is
 * not trusted reaches public addresses and sends variables only as far as the operator permits more.
 */
import { StringDecoder } from 'node:string_decoder';
import { LoopError } from '../../base/errors.js';
import { isKnownPrivate, type Permits, permitsOf, reachRefusal, sendRefusal } from '../../base/permits.js';
import { NotPublic, type Resolve } from '../../base/public-lookup.js';
import { type Redactor, redactorOf } from '../../base/redact.js';
import type { Implementation } from '../../loops/implementation.js';
import type { Json } from '../../protocol/json.js';
import { type Kind, outputBytes, type Reading, readConfig, refuse } from './config.js';
import { beginning, documentOf } from './document.js';
import { fromEnvironment, headerText, literalHeaders, type Texts, variableHeaders } from './headers.js';
import { reasonOf } from './plain.js';
import type { Answer } from './post.js';

export interface HttpOptions {
  /** Where `headersFromEnv` looks; the environment of this process unless told. */
  readonly environment?: NodeJS.ProcessEnv;
  /** What definitions that are not trusted may send and reach; without it, only public addresses. */
  readonly permits?: Permits;
  /** Resolves host names for definitions that are not trusted; the resolver of the system unless given. */
  readonly resolve?: Resolve;
}

interface Settings {
  readonly headers: Texts;
  readonly headersFromEnv: Texts;
  readonly maxOutputBytes: number;
}

const kinds: { readonly [K in keyof Settings]: Kind<Settings[K]> } = {
  headers: literalHeaders,
  headersFromEnv: variableHeaders,
  maxOutputBytes: outputBytes.kind,
};

/** The longest that a server may ask us to stay away: a day. */
const LONGEST = 86_400_000;

/** The URL that is meant: `http:https://host/path`, or the whole text is one. */
function urlOf(scheme: string, target: string): URL | undefined {
  const text = target.startsWith('//') ? `${scheme}:${target}` : target;
  const proper = scheme === 'http' ? /^https?:\/\/[^/]/ : /^https:\/\/[^/]/;
  if (!proper.test(text) || /[\p{Cc}\s\\]/u.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** An endpoint in messages; its query may hold what is nobody's business. */
function labelOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function flawOf(
  url: URL | undefined,
  trusted: boolean,
  { settings, flaw }: Reading<Settings>,
  permits: Permits,
): string | undefined {
  if (url === undefined) return 'This is not a URL that can be asked; write http:https://HOST/PATH.';
  if (url.username !== '' || url.password !== '') {
    return `The URL of ${labelOf(url)} holds credentials; take them out and use config.headersFromEnv.`;
  }
  return flaw ?? (trusted ? undefined : permitFlaw(url, Object.values(settings.headersFromEnv ?? {}), permits));
}

/** What of a definition that is not trusted the operator does not permit, as far as its text tells. */
function permitFlaw(url: URL, variables: readonly string[], permits: Permits): string | undefined {
  // guard: header-variables-permitted
  const refused = variables.find((variable) => !permits.maySend(variable, url));
  if (refused !== undefined) return `config.headersFromEnv ${sendRefusal(refused, url)}`;
  // guard: private-address-refused
  return isKnownPrivate(url) && !permits.mayReach(url) ? reachRefusal(url) : undefined;
}

/** How long the server asks us to stay away; a date counts from the date of the same answer, so no clock is needed. */
function retryAfter({ headers }: Answer): { readonly retryAfterMs?: number } {
  const value = headers['retry-after'];
  if (value === undefined) return {};
  const seconds = /^\d{1,9}$/.test(value);
  const ms = seconds ? Number(value) * 1000 : Date.parse(value) - Date.parse(headers.date ?? '');
  // The parser of dates makes something of almost anything.
  return Number.isFinite(ms) && (seconds || value.endsWith(' GMT'))
    ? { retryAfterMs: Math.min(Math.max(ms, 0), LONGEST) }
    : {};
}

/** The bytes as text; what was cut does not end within a character. */
function textOf(body: Buffer, cut: boolean): string {
  return cut ? new StringDecoder('utf8').write(body) : body.toString();
}

function refusalOf(label: string, answer: Answer, secrets: Redactor): LoopError {
  const { status, headers, body, cut } = answer;
  const retryable = status === 408 || status === 425 || status === 429 || (status >= 500 && status <= 599);
  const redirect = status >= 300 && status <= 399 && headers.location !== undefined;
  const told = redirect ? 'a redirect, which is not followed' : beginning(textOf(body, cut), secrets, cut);
  const message = `${label} answered ${status}${told === '' ? '.' : `: ${told}`}`;
  return new LoopError('TOOL_FAILED', message, { status, retryable, ...retryAfter(answer) });
}

function outputOf(label: string, answer: Answer, secrets: Redactor): Json {
  const { status, body, cut } = answer;
  if (status < 200 || status > 299) throw refusalOf(label, answer, secrets);
  const fail = (message: string): LoopError => new LoopError('TOOL_FAILED', message, { status, retryable: false });
  if (cut) throw fail(`${label} answered more than ${body.length} bytes. Answer less, or raise config.maxOutputBytes.`);
  const document = documentOf(body, secrets);
  if ('value' in document) return document.value;
  throw fail(`${label} must answer with one JSON document, but answered ${document.flaw}`);
}

function networkFailure(url: URL, error: unknown, secrets: Redactor): LoopError {
  const label = labelOf(url);
  if (error instanceof NotPublic) {
    return new LoopError('TOOL_FAILED', `${label}: ${reachRefusal(url)}.`, { retryable: false }, error);
  }
  const { code = reasonOf(error) } = error as NodeJS.ErrnoException;
  const message = secrets.text(`${label} did not answer: ${code}.`);
  return new LoopError('TOOL_FAILED', message, { retryable: true }, error);
}

/** Makes a redactor, or returns the last one if the secrets are the same. */
function remembered(): (secrets: readonly string[]) => Redactor {
  let known: { readonly of: string; readonly redactor: Redactor } | undefined;
  return (secrets) => {
    const of = JSON.stringify(secrets);
    if (known?.of !== of) known = { of, redactor: redactorOf(secrets) };
    return known.redactor;
  };
}

function tools(scheme: string, options: HttpOptions): Implementation {
  const { environment = process.env, permits = permitsOf(environment), resolve } = options;
  return {
    scheme,
    question: () => undefined,
    resolve: () => undefined,
    flaw: (target, { trusted }, config) =>
      flawOf(urlOf(scheme, target), trusted, readConfig(scheme, config, kinds), permits),
    open: async (target, { trusted }, config) => {
      const url = urlOf(scheme, target) as URL;
      const reading = readConfig(scheme, config, kinds);
      refuse(flawOf(url, trusted, reading, permits));
      const { headers = {}, headersFromEnv = {}, maxOutputBytes = outputBytes.usual } = reading.settings;
      // Loaded with the first tool that needs it: it brings the whole of Node's HTTP.
      const { post } = await import('./post.js');
      const redactorFor = remembered();
      const own = { accept: 'application/json', 'content-type': 'application/json', ...headers };
      return async (input, { idempotencyKey, signal }) => {
        signal.throwIfAborted();
        const secret = fromEnvironment(environment, headersFromEnv);
        const secrets = redactorFor(Object.values(secret));
        const all = { ...own, ...secret, 'idempotency-key': headerText(idempotencyKey) };
        // guard: untrusted-tool-reaches-public-only
        const publicOnly = !trusted && !permits.mayReach(url);
        const posting = { url, headers: all, body: JSON.stringify(input), maxOutputBytes, publicOnly, resolve };
        const answer = await post(posting, signal).catch((error) => {
          throw signal.aborted ? signal.reason : networkFailure(url, error, secrets);
        });
        return outputOf(labelOf(url), answer, secrets);
      };
    },
  };
}

/** `http:URL`, and URLs that begin with `http://`. */
export function httpTools(options: HttpOptions = {}): Implementation {
  return tools('http', options);
}

/** URLs that begin with `https://`. */
export function httpsTools(options: HttpOptions = {}): Implementation {
  return tools('https', options);
}
