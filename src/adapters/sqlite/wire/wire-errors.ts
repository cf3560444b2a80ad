/** Errors on the wire: a LoopError, Fault or TypeError keeps its class, code and data; any other becomes an Error. */
import { type ErrorCode, errorCodes, Fault, LoopError } from '../../../base/errors.js';
import type { Json } from '../../../protocol/json.js';

/** An error as it is sent. */
export interface WireError {
  /** Its class: `outcome` is a LoopError, `fault` a Fault, `type` a TypeError. */
  readonly family: 'outcome' | 'fault' | 'type' | 'other';
  readonly code?: string;
  readonly message: string;
  readonly data?: Json;
}

/** Thrown if the connection closes before the response arrives. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost';
}

/** Converts a thrown value into its form on the wire. */
export function toWireError(error: unknown): WireError {
  if (error instanceof LoopError || error instanceof Fault) {
    const { code, message, data } = error;
    const family = error instanceof Fault ? 'fault' : 'outcome';
    return data === undefined ? { family, code, message } : { family, code, message, data };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { family: error instanceof TypeError ? 'type' : 'other', message };
}

/** Converts a received error into an error of its original class. A Fault with an unknown code becomes an Error. */
export function fromWireError({ family, code = '', message, data }: WireError): Error {
  if (family === 'outcome') return new LoopError(code, message, data);
  if (family === 'fault' && Object.hasOwn(errorCodes, code)) return new Fault(code as ErrorCode, message, data);
  return family === 'type' ? new TypeError(message) : new Error(message);
}
