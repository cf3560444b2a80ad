/** The errors of steps: of a composite or plan whose step failed, at any depth, and of a jump to no step. */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';

/** Upper bound on each part of the error data, because the journal drops error data that is too large. */
const MAX_ERROR_PART_CHARS = 1000;

/**
 * Error codes of a step that become EXECUTION_FAILED in the error of the composite. The input of the composite was
 * valid, so a value that a step refuses is a failure of the composite.
 */
const STEP_VALIDATION_CODES: ReadonlySet<string> = new Set([
  'INPUT_VALIDATION_FAILED',
  'OUTPUT_VALIDATION_FAILED',
  'VALUE_INVALID',
]);

/** Which step failed, as it is recorded with the error. */
interface FailedStep {
  readonly loopId: string;
  readonly callId?: string;
  readonly stepIndex?: number;
  readonly step?: string;
}

/** Returns the error of the caller of a failed step. `subject` begins the message, such as `Step 2`. */
export function stepFailedError(error: LoopError, subject: string, step: FailedStep): LoopError {
  const { code, message, data } = error;
  // The innermost step is the one that failed: enclosing composites pass its error on.
  if ((data as { readonly failedStep?: Json } | undefined)?.failedStep !== undefined) return error;
  const shortMessage = message.slice(0, MAX_ERROR_PART_CHARS);
  const isSmall = data !== undefined && JSON.stringify(data).length <= MAX_ERROR_PART_CHARS;
  const stepError = isSmall ? { code, message: shortMessage, details: data } : { code, message: shortMessage };
  const shortStep = step.callId === undefined ? step : { ...step, callId: step.callId.slice(0, MAX_ERROR_PART_CHARS) };
  const description = `${subject} (${step.loopId}) failed: ${message}`;
  const outerCode = STEP_VALIDATION_CODES.has(code) ? 'EXECUTION_FAILED' : code;
  return new LoopError(outerCode, description, { failedStep: { ...shortStep, error: stepError } }, error);
}

/** Returns the error for a jump to a step that does not exist, from the step at `path`. */
export function unknownStepError(name: string, names: readonly string[], path: string): LoopError {
  const reason = `there is no step "${name}" beside it; there are ${names.join(', ')}`;
  return new LoopError('DEFINITION_INVALID', `${path}/on_error: ${reason}.`, { path: `${path}/on_error/goto`, reason });
}
