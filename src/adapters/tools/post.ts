/**
 * Sends one POST request over its own connection, which is closed afterwards. It does not use `fetch`, which opens a
 * new idle connection after an abort, gives up after five minutes whatever the policy of the loop is, and reports a
 * redirect in the same way as a network error.
 */
import { lookup } from 'node:dns/promises';
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { publicLookup, type ResolveHost } from '../../base/public-lookup.js';
import { ByteBuffer } from './byte-buffer.js';

/** A request to send. */
interface PostRequest {
  readonly url: URL;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
  /** The maximum number of bytes that are read of the response body. */
  readonly maxOutputBytes: number;
  /**
   * True if the host name must resolve to public addresses. The caller checks URLs with a literal address.
   * @default false
   */
  readonly publicOnly?: boolean;
  /**
   * Resolves host names if `publicOnly` is true.
   * @default the system resolver
   */
  readonly resolve?: ResolveHost | undefined;
}

/** A response, with its body up to the limit. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** True if the body is longer than the limit. */
  readonly isTruncated: boolean;
}

/** The maximum number of bytes that are read of the body of a redirect or an error, which only the message needs. */
const MAX_ERROR_BODY_BYTES = 64 * 1024;

const systemResolve: ResolveHost = async (hostname) =>
  (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address);

/**
 * Sends a request and reads the response up to the limit. Does not follow redirects. Rejects with the reason of the
 * signal if it aborts, with NotPublicError if `publicOnly` refuses the host, and with other network errors.
 */
export async function post(request: PostRequest, signal: AbortSignal): Promise<HttpResponse> {
  const { url, headers, body, maxOutputBytes, publicOnly = false, resolve = systemResolve } = request;
  signal.throwIfAborted();
  const createRequest = url.protocol === 'https:' ? secureRequest : plainRequest;
  // If the body were a string, Node would encode the headers as UTF-8 together with it. Headers are Latin-1.
  const bytes = Buffer.from(body);
  const outgoing = createRequest(url, {
    method: 'POST',
    headers: { ...headers, 'content-length': String(bytes.length) },
    agent: false,
    ...(publicOnly && { lookup: publicLookup(resolve) }),
  });
  const stop = (): void => void outgoing.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    // Errors while sending are ignored once the response has started.
    const incoming = await new Promise<IncomingMessage>((onResponse, reject) => {
      outgoing.on('response', onResponse).on('error', reject);
      outgoing.on('close', () => reject(new Error('the connection was closed without an answer')));
      outgoing.end(bytes);
    });
    const { statusCode: status = 0, headers: responseHeaders } = incoming;
    const responseBody = await readBody(
      incoming,
      status < 300 ? maxOutputBytes : Math.min(maxOutputBytes, MAX_ERROR_BODY_BYTES),
    );
    signal.throwIfAborted();
    return { status, headers: responseHeaders, ...responseBody };
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', stop);
    outgoing.destroy();
  }
}

async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
): Promise<Pick<HttpResponse, 'body' | 'isTruncated'>> {
  const bytes = new ByteBuffer();
  incoming.on('error', () => undefined);
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes.append(chunk);
    if (bytes.length > maxBytes) return { body: bytes.toBuffer().subarray(0, maxBytes), isTruncated: true };
  }
  return { body: bytes.toBuffer(), isTruncated: false };
}
