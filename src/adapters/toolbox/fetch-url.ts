/**
 * The tool `fetch_url`: gets a public page as text. Redirects are checked like the first URL; no credentials are sent.
 */
import { LoopError } from '../../base/errors.js';
import { assertDestination } from '../../base/permits.js';
import type { Confinement } from '../../protocol/body.js';
import { defineActionTool, type ToolboxTool, type ToolOutput } from './define-tool.js';
import { type FetchedPage, getPage, parseAllowedUrl } from './get-page.js';
import { htmlToText } from './html-to-text.js';
import { defineInput, type InferInput } from './input-schema.js';
import type { FetchOptions } from './options.js';
import { firstChars, truncate } from './text.js';
import { toolError } from './tool-error.js';

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_MAX_REDIRECTS = 5;
/** The maximum number of characters of a page that are returned to the model. */
const MAX_OUTPUT_CHARS = 60_000;
const REDIRECT_STATUSES = [301, 302, 303, 307, 308];
const TEXT_CONTENT_TYPES =
  /^(?:text\/|application\/(?:[a-z0-9.+-]*[+-])?(?:json|xml|yaml|toml|javascript|ecmascript|ndjson)$)/;

const inputSchema = defineInput({
  url: { type: 'string', min: 1, max: 4096, description: 'An http or https URL on the public internet.' },
});

/** Creates the tool `fetch_url`. */
export function fetchUrlTool(options: FetchOptions = {}): ToolboxTool<InferInput<typeof inputSchema>> {
  return defineActionTool({
    name: 'fetch_url',
    description: 'Gets a web page or a text document with GET; HTML is returned as plain text.',
    inputSchema,
    safety: 'idempotent',
    approvalMessage: ({ url }) =>
      `Fetch ${parseAllowedUrl(url, undefined, options).href} (and follow its redirects to other public hosts)`,
    approvalTarget: () => undefined,
    execute: async ({ url }, { abortSignal, confinement }) => {
      const controller = new AbortController();
      const abort = (): void => controller.abort(abortSignal?.reason);
      const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
      const timer = setTimeout(
        () => controller.abort(toolError(`It took longer than ${timeoutMs} ms.`, { retryable: true })),
        timeoutMs,
      );
      abortSignal?.addEventListener('abort', abort, { once: true });
      if (abortSignal?.aborted) abort();
      try {
        return await fetchFollowingRedirects(url, options, controller.signal, confinement);
      } finally {
        clearTimeout(timer);
        abortSignal?.removeEventListener('abort', abort);
      }
    },
  });
}

async function fetchFollowingRedirects(
  text: string,
  options: FetchOptions,
  signal: AbortSignal,
  confinement: Confinement | undefined,
): Promise<ToolOutput> {
  let url = parseAllowedUrl(text, undefined, options);
  for (let redirects = 0; redirects <= (options.maxRedirects ?? DEFAULT_MAX_REDIRECTS); redirects++) {
    signal.throwIfAborted();
    // guard: fetched-host-granted
    assertDestination(confinement?.destinations, url);
    const page = await getPage(url, options, signal).catch((error) => {
      throw signal.aborted ? signal.reason : connectionError(url, error);
    });
    if (!REDIRECT_STATUSES.includes(page.status) || page.location === undefined) return pageOutput(url, page);
    url = parseAllowedUrl(page.location, url, options);
  }
  throw toolError(`${url.host} redirects too often.`);
}

function connectionError(url: URL, error: unknown): LoopError {
  if (error instanceof LoopError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = code === 'ENOTFOUND' ? 'there is no such host' : (code ?? truncate(message, 200));
  return toolError(`${url.host} did not answer: ${reason}.`, { retryable: code !== 'ENOTFOUND' }, error);
}

function pageOutput(url: URL, { status, contentType, encoding, body, isTruncated }: FetchedPage): ToolOutput {
  const type = contentType.split(';')[0]?.trim().toLowerCase() ?? '';
  if (encoding !== undefined && encoding !== 'identity') {
    throw toolError(`${url.host} answered in the encoding ${truncate(encoding, 50)}, which was not requested.`);
  }
  if (body.length > 0 && (type === '' ? body.includes(0) : !TEXT_CONTENT_TYPES.test(type))) {
    throw toolError(
      `${truncate(url.href, 200)} is not text (${truncate(type, 100) || 'no type'}), and only text can be fetched.`,
    );
  }
  const text = decodeBody(body, contentType);
  const plainText = type === 'text/html' || type === 'application/xhtml+xml' ? htmlToText(text) : text;
  const output = {
    url: url.href,
    status,
    contentType: truncate(contentType, 200),
    text: firstChars(plainText, MAX_OUTPUT_CHARS),
  };
  const omission = isTruncated
    ? 'The page is longer than the part that was read'
    : `${plainText.length - MAX_OUTPUT_CHARS} more characters are omitted`;
  return isTruncated || plainText.length > MAX_OUTPUT_CHARS ? { ...output, note: `${omission}.` } : output;
}

/** Decodes a body in the character set of its content type, or as UTF-8 if that is missing or unknown. */
function decodeBody(body: Buffer, contentType: string): string {
  const label = /charset="?([\w.:-]{1,40})/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}
