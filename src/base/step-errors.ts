/** The errors of steps that a scope refuses. */
import { LoopError } from './errors.js';

/**
 * Returns the error of a body that starts a step, or ends, while another step of the same scope runs. `event` says what
 * happened while the step with the number `step` was open.
 */
export function scopeBusyError(key: string, step: number, event: string): LoopError {
  const message =
    `In ${key}, ${event} while step ${step} was still running or not awaited, or after the body had ended. ` +
    'Await each step; to run steps concurrently, use scope.all or scope.race.';
  return new LoopError('SCOPE_BUSY', message, { key });
}

/** Returns the error of a call or group that is nested too deep. It shows only the beginning of a long key. */
export function depthError(key: string, limit: number): LoopError {
  const shortKey = key.length > 60 ? `${key.slice(0, 60)}…` : key;
  return new LoopError('DEPTH_EXCEEDED', `Calls are nested deeper than ${limit} at ${shortKey}.`, { limit });
}

/** Returns the error of a call of a loop without a valid name or version. */
export function invalidNameError(key: string): LoopError {
  const message = `The loop called at ${key} needs a name; its name and its version must be strings.`;
  return new LoopError('VALUE_INVALID', message, { key });
}

/** Returns the error of a run that was cancelled. */
export function cancellationError(root: string, reason: string): LoopError {
  return new LoopError('CANCELLED', `The run ${root} was cancelled: ${reason}`, { reason });
}

/** Returns the error of an effect in doubt that a person resolved as failed. */
export function forcedFailure(key: string, by: string, reason: string | undefined): LoopError {
  const suffix = reason === undefined ? '' : `: ${reason}`;
  const message = `It is unknown whether this effect happened; ${by} resolved it as failed${suffix}.`;
  return new LoopError('EFFECT_IN_DOUBT', message, { key, by });
}

/** Throws VALUE_INVALID if the duration of a sleep is negative or not finite. */
export function assertDuration(ms: number, key: string): void {
  if (ms >= 0 && Number.isFinite(ms)) return;
  throw new LoopError('VALUE_INVALID', `Cannot sleep for ${ms} ms at ${key}.`, { key });
}
