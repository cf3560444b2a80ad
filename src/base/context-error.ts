/** The error for a reference to context that cannot be used. */
import { LoopError } from './errors.js';

/** Returns CONTEXT_REFUSED for a reference of `contextSkills`, and the reason, which gets a full stop. */
export function contextError(reference: string, reason: string): LoopError {
  const message = `The context ${JSON.stringify(reference)} cannot be used: ${reason}.`;
  return new LoopError('CONTEXT_REFUSED', message, { reference, reason });
}
