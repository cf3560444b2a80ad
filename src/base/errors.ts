/**
 * The two error families. A LoopError is an outcome: it is journaled, returned to the caller, and can be caught by
 * bodies. A Fault is an infrastructure failure: it is never journaled, it ends the attempt, and no body can catch it.
 * `errorCodes` defines the meaning, the HTTP status and the exit code of each code; docs/errors.md is generated from
 * it.
 */
import type { ErrorRecord } from '../protocol/entry.js';
import type { Json, JsonObject } from '../protocol/json.js';
import { stackTextOf } from './error-stack.js';
import { ownProperty } from './own-property.js';

interface ErrorCodeInfo {
  readonly family: 'outcome' | 'fault';
  /** True if the same request may succeed later, unchanged. */
  readonly isRetryable: boolean;
  readonly httpStatus: number;
  readonly exitCode: number;
  readonly meaning: string;
}

type ErrorCodeInfoFactory = (httpStatus: number, isRetryable: boolean, meaning: string) => ErrorCodeInfo;
const outcomeCode: ErrorCodeInfoFactory = (httpStatus, isRetryable, meaning) => ({
  family: 'outcome',
  isRetryable,
  httpStatus,
  exitCode: 1,
  meaning,
});
const faultCode: ErrorCodeInfoFactory = (httpStatus, isRetryable, meaning) => ({
  family: 'fault',
  isRetryable,
  httpStatus,
  exitCode: 70,
  meaning,
});

/**
 * All error codes, with their family, HTTP status, exit code and meaning.
 *
 * @example
 * import { errorCodes } from 'rondo';
 *
 * errorCodes.TIMEOUT.isRetryable; // true
 */
export const errorCodes = {
  INPUT_VALIDATION_FAILED: outcomeCode(422, false, 'The input is not valid under the input schema of the loop.'),
  OUTPUT_VALIDATION_FAILED: outcomeCode(502, false, 'The output is not valid under the output schema of the loop.'),
  EXECUTION_FAILED: outcomeCode(500, true, 'A body or an effect threw.'),
  VALUE_INVALID: outcomeCode(422, false, 'A value is not JSON, is too deep or too large, or has a forbidden key.'),
  DEPTH_EXCEEDED: outcomeCode(422, false, 'Calls are nested deeper than the session allows.'),
  SCOPE_BUSY: outcomeCode(500, false, 'A step was started while another step of the same scope was running.'),
  CANCELLED: outcomeCode(409, false, 'The run was cancelled.'),
  EFFECT_IN_DOUBT: outcomeCode(409, false, 'It is unknown whether the effect happened, and it was resolved as failed.'),
  INVARIANT_VIOLATED: outcomeCode(409, false, 'An entry would violate an invariant of the session.'),
  SIGNAL_CONFLICT: outcomeCode(409, false, 'A signal with this id was already received with different content.'),
  LOOP_NOT_FOUND: outcomeCode(404, false, 'No loop with this id and version is registered.'),
  TURN_NOT_FOUND: outcomeCode(404, false, 'The store has no turn or session with this id.'),
  TURN_ENDED: outcomeCode(409, false, 'The turn has ended, so a signal cannot reach it.'),
  CONFIG_INVALID: { ...outcomeCode(422, false, 'The configuration cannot be used.'), exitCode: 70 },
  DEFINITION_INVALID: outcomeCode(422, false, 'A definition is invalid.'),
  MAPPING_FAILED: outcomeCode(422, false, 'A path of a composite found no value where one is required.'),
  TEMPLATE_FAILED: outcomeCode(422, false, 'A prompt template uses a variable that the input does not have.'),
  BACKEND_FAILED: outcomeCode(502, true, 'A model did not answer.'),
  TOOL_FAILED: outcomeCode(502, true, 'A tool failed.'),
  TOOL_NOT_FOUND: outcomeCode(404, false, 'A model called a tool that its agent does not have.'),
  TOOL_NOT_ADMITTED: outcomeCode(403, false, 'A tool may not run here.'),
  APPROVAL_DENIED: outcomeCode(403, false, 'An approval was requested and not given.'),
  BUDGET_EXHAUSTED: outcomeCode(402, false, 'The turn reached a limit of its budget.'),
  RECEIPT_NOT_FOUND: outcomeCode(404, false, 'There is no such receipt, or the store makes none.'),
  RECEIPT_INVALID: outcomeCode(409, false, 'A stored receipt is not what was signed, or its session was changed.'),
  SESSION_SEALED: outcomeCode(409, false, 'The session was closed with its terminal receipt.'),
  GRANT_INVALID: outcomeCode(422, false, 'A grant is not valid.'),
  GRANT_CONFLICT: outcomeCode(409, false, 'This grant id is known with other content, or the turn has another grant.'),
  GRANT_WIDENED: outcomeCode(403, false, 'A grant permits more than the grant from which it is derived.'),
  GRANT_EXPIRED: outcomeCode(403, false, 'The grant has expired.'),
  CONTENT_REFUSED: outcomeCode(422, false, 'A content filter refused the request or the answer.'),
  CONTEXT_REFUSED: outcomeCode(422, false, 'A text of `contextSkills` is missing, too large, or may not be read.'),
  CONTEXT_CHANGED: outcomeCode(
    409,
    false,
    'A file of the context of an open turn has changed; restore it to continue.',
  ),
  HOSTED_LOOP_NOT_FOUND: outcomeCode(404, false, 'No hosted loop with this id was started in the store.'),
  HOSTED_LOOP_CONFLICT: outcomeCode(
    409,
    false,
    'The hosted loop has stopped, was started with other content, or owns the turn, so what was asked is refused.',
  ),
  SIGNAL_REFUSED: outcomeCode(
    403,
    false,
    'A signal for a hosted loop is not declared, or is not proved to be authentic.',
  ),
  INBOX_FULL: outcomeCode(503, true, 'Too many signals wait for turns of the hosted loop.'),
  HANDOFF_REFUSED: outcomeCode(403, false, 'A handoff has no valid receipt, or its target does not accept it.'),
  TIMEOUT: outcomeCode(504, true, 'The attempt took longer than its policy allows.'),
  REQUEST_INVALID: outcomeCode(422, false, 'A request has a key, session or principal that cannot be used.'),
  KEY_CONFLICT: outcomeCode(409, false, 'This key already belongs to a turn with another loop, input or principal.'),
  ANSWER_REFUSED: outcomeCode(409, false, 'An answer or a resolution does not match anything that is pending.'),
  FORK_REFUSED: outcomeCode(409, false, 'The turn cannot be forked at this entry.'),
  RETRY_REFUSED: outcomeCode(409, false, 'Only a turn that failed can be retried.'),
  REPLAY_MISMATCH: faultCode(409, false, 'The code requested a step other than the one in the journal.'),
  REPLAY_INCOMPLETE: faultCode(409, false, 'A read-only replay reached a step that is not recorded.'),
  SESSION_BUSY: faultCode(409, true, 'The session is already running.'),
  SESSION_CLOSED: faultCode(409, false, 'The session was closed.'),
  STALE_WRITER: faultCode(409, false, 'Another writer has claimed the session in the meantime.'),
  ENTRY_TOO_NEW: faultCode(500, false, 'An entry was written by a newer version and cannot be read by this one.'),
  VIEW_FAILED: faultCode(500, false, 'A view threw while folding an entry.'),
  STORE_OWNED: faultCode(423, true, 'Another process owns the store and does not answer.'),
  OWNERSHIP_LOST: faultCode(409, true, 'Another process has taken over the store; this process writes nothing more.'),
  STORE_MISSING: faultCode(500, false, 'The files of the store were removed, replaced or shortened while it was open.'),
  STORE_FULL: faultCode(507, true, 'There is no space left on the disk.'),
  STORE_READ_ONLY: faultCode(500, false, 'The store cannot be written.'),
  STORE_DAMAGED: faultCode(500, false, 'Stored data differs from what was written.'),
  SYNC_FAILED: faultCode(500, false, 'The disk did not confirm a write; the store must be opened again.'),
  STORE_FAILED: faultCode(500, true, 'The store failed for another reason.'),
  STORE_CLOSED: faultCode(409, false, 'The store was closed.'),
  LOG_REWRITTEN: faultCode(
    409,
    false,
    'The log of receipts does not continue the last checkpoint that was made of it; restore the store from a backup.',
  ),
  KEYS_UNUSABLE: faultCode(
    500,
    false,
    'A key for receipts, or the list of keys, is missing, damaged, open to others or not trustworthy.',
  ),
} as const satisfies Record<string, ErrorCodeInfo>;

/** A code of `errorCodes`. */
export type ErrorCode = keyof typeof errorCodes;

/**
 * An outcome that is not a success. Loops may throw it with codes of their own; `code` is therefore any string.
 *
 * @example
 * import { LoopError } from 'rondo';
 *
 * throw new LoopError('OUT_OF_STOCK', 'The lamp is out of stock.', { sku: 'lamp-7' });
 */
export class LoopError extends Error {
  override readonly name: string = 'LoopError';
  readonly code: string;
  readonly data: Json | undefined;

  constructor(code: string, message: string, data?: Json, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }

  /** The HTTP status of the code, as in `errorCodes`; 500 for a code of your own. */
  get httpStatus(): number {
    return errorCodeInfoOf(this.code)?.httpStatus ?? 500;
  }

  /**
   * Returns what is journaled. It has the stack as text and no cause, so that a replay throws the same error as the live
   * run.
   */
  toErrorRecord(): ErrorRecord {
    const { code, message, data } = this;
    const record: { -readonly [K in keyof ErrorRecord]: ErrorRecord[K] } = { code, message };
    if (data !== undefined) record.data = data;
    const stack = recordedStacks.has(this) ? recordedStacks.get(this) : stackTextOf(this, STACK_OPTIONS);
    if (stack !== undefined) record.stack = stack;
    return record;
  }

  /**
   * Returns the error of a record. Its cause is the value that was thrown originally; a replay has none, and shows the
   * recorded stack.
   */
  static fromErrorRecord(record: ErrorRecord, cause?: unknown): LoopError {
    const error = new LoopError(record.code, record.message, record.data, originalOf(cause));
    recordedStacks.set(error, record.stack);
    if (record.stack !== undefined) error.stack = record.stack;
    return error;
  }
}

/**
 * An error that the `retry` policy does not retry. It is an outcome like any LoopError, with `retryable: false` in its
 * data, which the journal keeps.
 *
 * @example
 * import { NonRetryableError } from 'rondo';
 *
 * throw new NonRetryableError('The card was declined.', { reason: 'expired' });
 */
export class NonRetryableError extends LoopError {
  override readonly name: string = 'NonRetryableError';

  constructor(message: string, data?: JsonObject, cause?: unknown) {
    super('EXECUTION_FAILED', message, { ...data, retryable: false }, cause);
  }
}

/**
 * True if repeating a failed attempt may change its outcome: for every error that code throws, unless its data has
 * `retryable: false`, and for those outcomes of the runtime that `errorCodes` declares retryable.
 */
export function isRetryableError(error: LoopError): boolean {
  const info = errorCodeInfoOf(error.code);
  // guard: final-outcome-not-retried
  return info?.isRetryable !== false && ownProperty(error.data, 'retryable') !== false;
}

function errorCodeInfoOf(code: string): ErrorCodeInfo | undefined {
  return Object.hasOwn(errorCodes, code) ? errorCodes[code as ErrorCode] : undefined;
}

/** The journaled stacks of errors that were created from their record. */
const recordedStacks = new WeakMap<object, string | undefined>();

const STACK_OPTIONS: Parameters<typeof stackTextOf>[1] = {
  isOutcome: isLoopError,
  recordedStack: (error) => recordedStacks.get(error),
};

/**
 * Gives an error the stack of another one, without its messages. For an error that takes the place of one that may
 * contain secrets, and must not be its cause.
 */
export function withStackOf(error: LoopError, thrown: unknown): LoopError {
  recordedStacks.set(error, stackTextOf(thrown, { ...STACK_OPTIONS, withoutMessages: true }));
  return error;
}

/** Returns what was thrown originally: the cause of a LoopError that only passes it on, or else the value itself. */
function originalOf(thrown: unknown): unknown {
  if (!isLoopError(thrown)) return thrown;
  const { cause, message } = thrown;
  const isRelay = recordedStacks.has(thrown) || (cause !== undefined && messageOf(cause) === message);
  return isRelay ? cause : thrown;
}

/** True for a LoopError. A value whose prototype cannot be read, such as a revoked proxy, is none. */
function isLoopError(thrown: unknown): thrown is LoopError {
  try {
    return thrown instanceof LoopError;
  } catch {
    return false;
  }
}

/** Adds a cause that JSON, spread and comparisons leave out. Returns the record. */
export function withHiddenCause<T extends object>(record: T, cause: unknown): T {
  return cause === undefined ? record : Object.defineProperty(record, 'cause', { value: cause });
}

/** An infrastructure failure. It ends the attempt; entries that were acknowledged stay valid. */
export class Fault extends Error {
  override readonly name = 'Fault';
  readonly code: ErrorCode;
  readonly data: Json | undefined;

  constructor(code: ErrorCode, message: string, data?: Json, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.data = data;
  }
}

/** Thrown by an effect whose run was stopped before it began. The kernel records no end of the attempt. */
export class NotPerformed extends Error {
  override readonly name = 'NotPerformed';
}

/** Converts any thrown value to a LoopError with the code EXECUTION_FAILED. Returns a LoopError unchanged. */
export function toLoopError(thrown: unknown): LoopError {
  if (isLoopError(thrown)) return thrown;
  const error = new LoopError('EXECUTION_FAILED', messageOf(thrown), undefined, thrown);
  recordedStacks.set(error, stackTextOf(thrown, STACK_OPTIONS));
  return error;
}

/** Converts any failure of a store to a Fault with the code STORE_FAILED. Returns a Fault unchanged. */
export function toStoreFault(thrown: unknown): Fault {
  if (thrown instanceof Fault) return thrown;
  return new Fault('STORE_FAILED', messageOf(thrown), undefined, thrown);
}

function messageOf(thrown: unknown): string {
  try {
    return (thrown instanceof Error ? thrown.message : String(thrown)) || 'It was thrown without a message.';
  } catch {
    return 'What was thrown cannot be shown.';
  }
}
