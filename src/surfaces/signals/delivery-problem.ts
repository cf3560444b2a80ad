/**
 * The responses for errors of a delivery. The text of an error is sent only where it is about the payload, which the
 * authenticated sender knows.
 */
import { errorCodes, Fault, LoopError } from '../../base/errors.js';
import { HttpProblem } from '../http/problem.js';

const RETRY_AFTER_SECONDS = '30';
const MAX_DETAIL_CHARS = 1000;
const PAYLOAD_CODES: ReadonlySet<string> = new Set(['INPUT_VALIDATION_FAILED', 'VALUE_INVALID']);
/** Outcomes of a delivery that depend on the state of the hosted loop. */
const STATE_CODES: ReadonlySet<string> = new Set([
  'SIGNAL_CONFLICT',
  'HOSTED_LOOP_CONFLICT',
  'HOSTED_LOOP_NOT_FOUND',
  'SIGNAL_REFUSED',
]);

/** Returns the problem that an authenticated sender may see; undefined for an internal error. */
export function deliveryProblemOf(thrown: unknown): HttpProblem | undefined {
  if (!(thrown instanceof LoopError)) return undefined;
  const { code, httpStatus, message } = thrown;
  if (code === 'INBOX_FULL') return unavailable(code);
  if (PAYLOAD_CODES.has(code)) return new HttpProblem(422, code, message.slice(0, MAX_DETAIL_CHARS));
  // guard: internal-errors-not-disclosed
  if (!STATE_CODES.has(code)) return undefined;
  return new HttpProblem(httpStatus, code, errorCodes[code as keyof typeof errorCodes].meaning);
}

/** True for a fault after which the same delivery may succeed. */
export function isRetryableFault(thrown: unknown): boolean {
  return thrown instanceof Fault && errorCodes[thrown.code].isRetryable;
}

/** The refusal of a delivery that is not authentic: the same for every reason, so that it discloses none. */
export function notAuthentic(): HttpProblem {
  const detail = 'There is no such signal, or the delivery is not authentic: check path, secret, signature and time.';
  return new HttpProblem(401, 'SIGNAL_REFUSED', detail, { 'www-authenticate': 'StandardWebhooks' });
}

/** The refusal of a delivery that may succeed later. */
export function unavailable(code = 'UNAVAILABLE'): HttpProblem {
  const detail = 'The signal cannot be accepted at the moment; deliver it again later.';
  return new HttpProblem(503, code, detail, { 'retry-after': RETRY_AFTER_SECONDS });
}
