/** Reports the error of a verb and determines the exit code. */
import { errorCodes, Fault, LoopError } from '../../base/errors.js';
import { UsageError } from '../settings.js';
import type { Terminal } from './terminal.js';
import { sanitizeMessage } from './terminal-text.js';
import { exitCodes } from './verb.js';

interface ErrorReport {
  readonly exitCode: number;
  readonly code: string;
  readonly message: string;
  readonly details?: unknown;
}

/** Returns the exit code of an error code. */
export function exitCodeOfError(code: string): number {
  return Object.hasOwn(errorCodes, code) ? errorCodes[code as keyof typeof errorCodes].exitCode : exitCodes.failed;
}

function errorReportOf(thrown: unknown): ErrorReport {
  if (thrown instanceof UsageError) return { exitCode: exitCodes.usage, code: 'USAGE', message: thrown.message };
  if (thrown instanceof LoopError || thrown instanceof Fault) {
    const { code, message, data } = thrown;
    return { exitCode: exitCodeOfError(code), code, message, ...(data !== undefined && { details: data }) };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { exitCode: exitCodes.fault, code: 'INTERNAL', message: `Internal error: ${message}` };
}

/**
 * Prints an error to stderr and, with `json`, as a document to stdout. Returns the exit code. The stack is printed only
 * with RONDO_DEBUG=1.
 */
export async function reportError(thrown: unknown, terminal: Terminal, json: boolean): Promise<number> {
  const { exitCode, ...error } = errorReportOf(thrown);
  const label = error.code === 'USAGE' || error.code === 'INTERNAL' ? '' : `${error.code}: `;
  terminal.printToStderr(`rondo: ${label}${sanitizeMessage(error.message)}`);
  if (terminal.streams.env.RONDO_DEBUG === '1' && thrown instanceof Error) terminal.printToStderr(thrown.stack ?? '');
  else if (error.code === 'INTERNAL') terminal.printToStderr('Set RONDO_DEBUG=1 to see the stack.');
  if (json) await terminal.printJson({ error });
  return exitCode;
}
