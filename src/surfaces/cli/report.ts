/** How a verb that failed is told, and with which code the process ends. */
import { codes, Fault, LoopError } from '../../base/errors.js';
import { UsageError } from '../settings.js';
import { messageOf } from './paint.js';
import type { Terminal } from './terminal.js';
import { exit } from './verb.js';

interface Told {
  readonly exit: number;
  readonly code: string;
  readonly message: string;
  readonly details?: unknown;
}

/** The exit code of an outcome or a fault. */
export function exitOfCode(code: string): number {
  return Object.hasOwn(codes, code) ? codes[code as keyof typeof codes].exit : exit.failed;
}

function toldOf(thrown: unknown): Told {
  if (thrown instanceof UsageError) return { exit: exit.usage, code: 'USAGE', message: thrown.message };
  if (thrown instanceof LoopError || thrown instanceof Fault) {
    const { code, message, data } = thrown;
    return { exit: exitOfCode(code), code, message, ...(data !== undefined && { details: data }) };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { exit: exit.fault, code: 'INTERNAL', message: `Something is wrong inside Rondo: ${message}` };
}

/** Tells what was thrown; with `json` also as a document on stdout. Stacks are for those who debug. */
export async function report(thrown: unknown, terminal: Terminal, json: boolean): Promise<number> {
  const { exit: code, ...error } = toldOf(thrown);
  const label = error.code === 'USAGE' || error.code === 'INTERNAL' ? '' : `${error.code}: `;
  terminal.say(`rondo: ${label}${messageOf(error.message)}`);
  if (terminal.streams.env.RONDO_DEBUG === '1' && thrown instanceof Error) terminal.say(thrown.stack ?? '');
  else if (error.code === 'INTERNAL') terminal.say('Set RONDO_DEBUG=1 to see where.');
  if (json) await terminal.json({ error });
  return code;
}
