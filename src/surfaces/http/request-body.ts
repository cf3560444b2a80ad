/** Reads the bodies of HTTP requests: only JSON, and never more bytes than a limit. */
import { HttpProblem } from './problem.js';

const JSON_CONTENT_TYPE = /^application\/json\s*(?:;|$)/i;

/**
 * Throws a 415 problem unless the content type is JSON, which pages of other origins cannot send without a preflight.
 */
export function assertJsonContent({ headers }: Request): void {
  if (JSON_CONTENT_TYPE.test(headers.get('content-type') ?? '')) return;
  throw new HttpProblem(415, 'INPUT_VALIDATION_FAILED', 'Send JSON, with the header "content-type: application/json".');
}

/**
 * Returns the bytes of a body. Throws a 413 problem, with the advice, as soon as it has more than `maxBytes`; the header
 * `content-length` is ignored.
 */
export async function readBody(request: Request, maxBytes: number, advice: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of (request.body ?? []) as AsyncIterable<Uint8Array>) {
    length += bytes.byteLength;
    // guard: request-body-bounded
    if (!(length <= maxBytes))
      throw new HttpProblem(413, 'INPUT_VALIDATION_FAILED', `A request has at most ${maxBytes} bytes; ${advice}.`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks, length);
}
