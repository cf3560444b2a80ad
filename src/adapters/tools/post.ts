/**
 * One POST over a connection of its own, which is closed with it. Not `fetch`: after an abort it opens a fresh idle
 * connection, gives up after five minutes whatever the policy says, and does not tell a redirect from a lost network.
 */
import { lookup } from 'node:dns/promises';
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { publicLookup, type ResolveHost } from '../../base/public-lookup.js';
import { ByteBuffer } from './byte-buffer.js';

export interface PostRequest {
  readonly url: URL;
  readonly headers: { readonly [name: string]: string };
  readonly body: string;
  readonly maxOutputBytes: number;
  /** True if the host may only be connected to at a public address. An address in the URL itself is for the caller to judge. */
  readonly publicOnly?: boolean;
  readonly resolve?: ResolveHost | undefined;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Whether the body went on beyond what was read. */
  readonly isTruncated: boolean;
}

/** A refusal is read for its message only. */
const MAX_ERROR_BODY_BYTES = 64 * 1024;

const systemResolve: ResolveHost = async (hostname) =>
  (await lookup(hostname, { all: true, verbatim: true })).map(({ address }) => address);

/** Sends and reads the answer up to the limit. An abort rejects with the signal's reason. */
export async function post(posting: PostRequest, signal: AbortSignal): Promise<HttpResponse> {
  const { url, headers, body, maxOutputBytes, publicOnly = false, resolve = systemResolve } = posting;
  signal.throwIfAborted();
  const begin = url.protocol === 'https:' ? secureRequest : plainRequest;
  // As bytes: before a text, Node would send the headers in UTF-8, though they are Latin-1.
  const bytes = Buffer.from(body);
  const sent = begin(url, {
    method: 'POST',
    headers: { ...headers, 'content-length': String(bytes.length) },
    agent: false,
    ...(publicOnly && { lookup: publicLookup(resolve) }),
  });
  const stop = (): void => void sent.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    // What goes wrong with the sending after the answer has begun is no failure of the answer.
    const incoming = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('response', resolve).on('error', reject);
      sent.on('close', () => reject(new Error('the connection was closed without an answer')));
      sent.end(bytes);
    });
    const { statusCode: status = 0, headers: answered } = incoming;
    const read = await readBody(
      incoming,
      status < 300 ? maxOutputBytes : Math.min(maxOutputBytes, MAX_ERROR_BODY_BYTES),
    );
    signal.throwIfAborted();
    return { status, headers: answered, ...read };
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', stop);
    sent.destroy();
  }
}

async function readBody(incoming: IncomingMessage, most: number): Promise<Pick<HttpResponse, 'body' | 'isTruncated'>> {
  const bytes = new ByteBuffer();
  incoming.on('error', () => undefined);
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    bytes.append(piece);
    if (bytes.length > most) return { body: bytes.toBuffer().subarray(0, most), isTruncated: true };
  }
  return { body: bytes.toBuffer(), isTruncated: false };
}
