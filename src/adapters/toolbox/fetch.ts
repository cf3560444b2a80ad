/** `fetch_url`: a public page as text. Every redirect is judged like the first address, and no cookie or credential is sent. */
import { LoopError } from '../../base/errors.js';
import { type Answer, actingTool, type BoxTool } from './box.js';
import { admitted, hop, type Page } from './hop.js';
import { type Fitting, inputOf } from './input.js';
import type { FetchOptions } from './options.js';
import { plainText } from './page.js';
import { refusal } from './refusal.js';
import { cut, headOf } from './text.js';

const TIMEOUT = 30_000;
const REDIRECTS = 5;
/** Characters of a page that the model is shown. */
const SIZE = 60_000;
const REDIRECT = [301, 302, 303, 307, 308];
const TEXT = /^(?:text\/|application\/(?:[a-z0-9.+-]*[+-])?(?:json|xml|yaml|toml|javascript|ecmascript|ndjson)$)/;

const inputSchema = inputOf({
  url: { type: 'string', min: 1, max: 4096, description: 'An http or https URL on the public internet.' },
});

export function fetchUrl(options: FetchOptions = {}): BoxTool<Fitting<typeof inputSchema>> {
  return actingTool({
    name: 'fetch_url',
    description: 'Gets a web page or a text document with GET; HTML comes as plain text.',
    inputSchema,
    safety: 'idempotent',
    ask: ({ url }) =>
      `Fetch ${admitted(url, undefined, options).href} (and follow its redirects to other public hosts)`,
    target: () => undefined,
    execute: async ({ url }, { abortSignal }) => {
      const controller = new AbortController();
      const abort = (): void => controller.abort(abortSignal?.reason);
      const ms = options.timeoutMs ?? TIMEOUT;
      const timer = setTimeout(
        () => controller.abort(refusal(`It took longer than ${ms} ms.`, { retryable: true })),
        ms,
      );
      abortSignal?.addEventListener('abort', abort, { once: true });
      if (abortSignal?.aborted) abort();
      try {
        return await fetched(url, options, controller.signal);
      } finally {
        clearTimeout(timer);
        abortSignal?.removeEventListener('abort', abort);
      }
    },
  });
}

async function fetched(text: string, options: FetchOptions, signal: AbortSignal): Promise<Answer> {
  let url = admitted(text, undefined, options);
  for (let redirects = 0; redirects <= (options.maxRedirects ?? REDIRECTS); redirects++) {
    signal.throwIfAborted();
    const page = await hop(url, options, signal).catch((error) => {
      throw signal.aborted ? signal.reason : unreached(url, error);
    });
    if (!REDIRECT.includes(page.status) || page.location === undefined) return answerOf(url, page);
    url = admitted(page.location, url, options);
  }
  throw refusal(`${url.host} only redirects; it was given up.`);
}

function unreached(url: URL, error: unknown): LoopError {
  if (error instanceof LoopError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === 'ENOTFOUND' ? 'there is no such host' : (code ?? cut(message, 200));
  return refusal(`${url.host} did not answer: ${why}.`, { retryable: code !== 'ENOTFOUND' }, error);
}

function answerOf(url: URL, { status, contentType, encoding, body, more }: Page): Answer {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (encoding !== undefined && encoding !== 'identity') {
    throw refusal(`${url.host} answered in the encoding ${cut(encoding, 50)}, which was not asked for.`);
  }
  if (body.length > 0 && (type === '' ? body.includes(0) : !TEXT.test(type))) {
    throw refusal(`${cut(url.href, 200)} is not text (${cut(type, 100) || 'no type'}), and only text is fetched.`);
  }
  const text = decoded(body, contentType);
  const plain = type === 'text/html' || type === 'application/xhtml+xml' ? plainText(text) : text;
  const answer = { url: url.href, status, contentType: cut(contentType, 200), text: headOf(plain, SIZE) };
  const left = more ? 'The page is longer than what was read' : `${plain.length - SIZE} more characters are left out`;
  return more || plain.length > SIZE ? { ...answer, note: `${left}.` } : answer;
}

/** In the character set that it says, as far as that is known. */
function decoded(body: Buffer, contentType: string): string {
  const label = /charset="?([\w.:-]{1,40})/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}
