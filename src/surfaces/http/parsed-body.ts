/**
 * Bodies that a middleware of a Node server has read before the handler: `express.json()` parses them into `req.body`.
 * The bytes are kept only if the middleware puts them into `req.rawBody`.
 */
import type { IncomingMessage } from 'node:http';
import { HttpProblem } from './problem.js';

const rebuilt = new WeakSet<Request>();

/** A body that was read before. */
interface ParsedBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** True if these are the bytes that were sent. A value that is written as JSON again has the same meaning only. */
  readonly isExact: boolean;
}

/**
 * Returns the body of a request that was read before; undefined if it was not. Throws a 500 problem if nothing is left
 * of it.
 */
export function parsedBodyOf(incoming: IncomingMessage): ParsedBody | undefined {
  if (!incoming.readableDidRead) return undefined;
  const { body, rawBody = body } = incoming as { readonly body?: unknown; readonly rawBody?: unknown };
  if (typeof rawBody === 'string' || rawBody instanceof Uint8Array)
    return { bytes: new Uint8Array(Buffer.from(rawBody as Uint8Array)), isExact: true };
  const text = JSON.stringify(body);
  if (text !== undefined) return { bytes: new Uint8Array(Buffer.from(text)), isExact: false };
  const detail =
    'The body of the request was read before it came to this handler, and is neither in req.body nor in req.rawBody: ' +
    'mount the handler before what reads bodies.';
  throw new HttpProblem(500, 'BODY_READ_BEFORE', detail);
}

/** Notes that the body of a request was written again from a parsed value. */
export function markRebuilt(request: Request): void {
  rebuilt.add(request);
}

/** True if the body of a request is not what was sent, so that no signature of it can be verified. */
export function isRebuilt(request: Request): boolean {
  return rebuilt.has(request);
}
