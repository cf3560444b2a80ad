/** The error of a body that starts a step, or ends, while another step of the same scope runs. */
import { LoopError } from './errors.js';

/** Returns SCOPE_BUSY. `event` says what happened while the step with the number `step` was open. */
export function scopeBusyError(key: string, step: number, event: string): LoopError {
  const message =
    `In ${key}, ${event} while step ${step} was still running or not awaited, or after the body had ended. ` +
    'Await each step; to run steps concurrently, use scope.all or scope.race.';
  return new LoopError('SCOPE_BUSY', message, { key });
}
