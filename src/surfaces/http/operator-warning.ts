/** What a server reports to its operator when no `onError` is given. */
import { Fault, LoopError } from '../../base/errors.js';

/** The default of `onError`: a warning of the process, which Node prints to stderr. */
export function warnOfError(thrown: unknown): void {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const code = thrown instanceof LoopError || thrown instanceof Fault ? thrown.code : 'INTERNAL';
  process.emitWarning(`${code}: ${text}`, { type: 'RondoWarning', code });
}
