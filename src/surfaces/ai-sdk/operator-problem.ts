/**
 * Errors of turns that the operator of a server must fix: faults, loops that are not registered, failed models and
 * tools. Users see a plain text; the operator receives the error with the turn id.
 */
import { errorCodes, Fault, LoopError } from '../../base/errors.js';
import type { TurnResult } from '../../protocol/trace.js';
import type { ErrorFormatter } from './tool-calls.js';

/** Outcomes of the runtime that are intended: a user or a limit caused them. */
const INTENDED_CODES: ReadonlySet<string> = new Set<keyof typeof errorCodes>([
  'CANCELLED',
  'APPROVAL_DENIED',
  'BUDGET_EXHAUSTED',
  'CONTENT_REFUSED',
]);
const UNAVAILABLE_TEXT = 'This chat cannot continue at the moment. Its operator has been informed.';

/** Returns the general meaning of an error code, which discloses no details; for a turn that cannot run, a plain text. */
export const genericErrorText: ErrorFormatter = ({ code }) => {
  if (!Object.hasOwn(errorCodes, code)) return 'An error occurred.';
  const isUnavailable = isFaultCode(code) || code === 'LOOP_NOT_FOUND';
  return isUnavailable ? UNAVAILABLE_TEXT : errorCodes[code as keyof typeof errorCodes].meaning;
};

/** True for the code of a fault. A turn whose result has one is still open: it continues when the cause is fixed. */
export function isFaultCode(code: string): boolean {
  return Object.hasOwn(errorCodes, code) && errorCodes[code as keyof typeof errorCodes].family === 'fault';
}

/** Returns the error of a turn that an operator must fix; undefined if there is none. A code of your own is an outcome. */
export function operatorErrorOf(result: TurnResult): LoopError | undefined {
  if (result.status !== 'error') return undefined;
  const { turnId, error } = result;
  const { code, message, details, cause } = error;
  if (!Object.hasOwn(errorCodes, code) || INTENDED_CODES.has(code)) return undefined;
  const state = isFaultCode(code) ? 'cannot continue' : 'failed';
  const data = { turnId, ...(details !== undefined && { details }) };
  return new LoopError(code, `Turn ${turnId} ${state}: ${message}`, data, cause);
}

/** Returns what a run of a turn threw, with the turn id if it is known. */
export function withTurnId(thrown: unknown, turnId: string | undefined): unknown {
  if (!(thrown instanceof LoopError) || turnId === undefined) return thrown;
  return new LoopError(thrown.code, `Turn ${turnId} cannot continue: ${thrown.message}`, { turnId }, thrown);
}

/** Returns the code and the message of what was thrown. */
export function describeThrown(thrown: unknown): { readonly code: string; readonly message: string } {
  if (!(thrown instanceof LoopError || thrown instanceof Fault)) return { code: 'STORE_FAILED', message: '' };
  return { code: thrown.code, message: thrown.message };
}
