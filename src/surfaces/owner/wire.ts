/** What crosses between a verb and the owner of the store: lines of JSON, and errors that stay what they are. */
import { type Code, codes, Fault, LoopError } from '../../journal/errors.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { Json } from '../../protocol/json.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { UsageError } from '../settings.js';

/** The most that a request may hold. */
export const BODY = 64 * 1024 * 1024;

/** What an answer is made of: what happens while it runs, then a result or an error. */
export type Line = Heard | { readonly error: WireError } | { readonly result?: unknown };

/** Something that happened meanwhile. */
export type Heard =
  | { readonly event: TraceEvent }
  | { readonly envelope: EventEnvelope }
  | { readonly delta: LiveDelta };

export interface WireError {
  readonly family: 'outcome' | 'fault' | 'usage' | 'internal';
  readonly code: string;
  readonly message: string;
  readonly data?: Json;
}

/** An error as it is sent; what is not one of ours is told by its message only. */
export function toWire(thrown: unknown): WireError {
  if (thrown instanceof LoopError || thrown instanceof Fault) {
    const { code, message, data } = thrown;
    const family = thrown instanceof Fault ? 'fault' : 'outcome';
    return data === undefined ? { family, code, message } : { family, code, message, data };
  }
  const message = thrown instanceof Error ? thrown.message : 'Something was thrown that is not an error.';
  const usage = thrown instanceof UsageError || thrown instanceof TypeError;
  return usage ? { family: 'usage', code: 'USAGE', message } : { family: 'internal', code: 'INTERNAL', message };
}

/** The error that was sent, as the class that it was. */
export function fromWire({ family, code, message, data }: WireError): Error {
  if (family === 'outcome') return new LoopError(code, message, data);
  if (family === 'fault' && isCode(code)) return new Fault(code, message, data);
  return family === 'usage' ? new UsageError(message) : new Error(message);
}

function isCode(code: string): code is Code {
  return Object.hasOwn(codes, code);
}
