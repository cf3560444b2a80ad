/** Errors between processes: what one side throws is thrown by the other, as the same class with the same code. */
import { type ErrorCode, errorCodes, Fault, LoopError } from '../../../base/errors.js';
import type { Json } from '../../../protocol/json.js';

export interface WireError {
  readonly family: 'outcome' | 'fault' | 'type' | 'other';
  readonly code?: string;
  readonly message: string;
  readonly data?: Json;
}

/** The connection was closed before the answer came. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

export function toWireError(thrown: unknown): WireError {
  if (thrown instanceof LoopError || thrown instanceof Fault) {
    const { code, message, data } = thrown;
    const family = thrown instanceof Fault ? 'fault' : 'outcome';
    return data === undefined ? { family, code, message } : { family, code, message, data };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { family: thrown instanceof TypeError ? 'type' : 'other', message };
}

export function fromWireError({ family, code = '', message, data }: WireError): Error {
  if (family === 'outcome') return new LoopError(code, message, data);
  if (family === 'fault' && Object.hasOwn(errorCodes, code)) return new Fault(code as ErrorCode, message, data);
  return family === 'type' ? new TypeError(message) : new Error(message);
}
