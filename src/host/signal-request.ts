/** Requests to send a signal: their validation, and the signal that the kernel delivers. */
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import { copyAsJson } from '../json/value.js';
import { signalNameProblem } from '../loops/signal-name.js';
import type { SignalType } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Signal } from '../protocol/session.js';
import { sessionIdOf } from './turn-result.js';

/** A signal to a turn, or to any turn of a session. Exactly one of `turnId` and `sessionId` is set. */
export interface SignalRequest<P = unknown> {
  /** The turn that receives the signal. It is kept until the turn waits for it. */
  readonly turnId?: string;
  /** The session: the first of its turns that waits for the signal receives it, also one that starts later. */
  readonly sessionId?: string;
  /** The name that the turn waits for, or a signal type, which also validates the payload. */
  readonly name: string | SignalType<unknown, P>;
  /** What the wait receives; any JSON value. */
  readonly payload?: NoInfer<P>;
  /**
   * The idempotency key of the delivery: a second signal to the same turn or session under this id has no effect.
   * @default a new id
   */
  readonly id?: string;
}

/** A validated request. */
interface SignalDelivery {
  readonly sessionId: string;
  readonly turnId?: string;
  readonly name: string;
  readonly payload?: Json;
  readonly id: string;
}

const SIGNAL_REQUEST_KEYS = optionKeys<SignalRequest>({
  turnId: true,
  sessionId: true,
  name: true,
  payload: true,
  id: true,
});
const MAX_ID_CHARS = 1000;

/**
 * Validates a request; `newId` is its delivery id if it has none. Throws a TypeError if the request is malformed,
 * VALUE_INVALID if its payload is not JSON, and INPUT_VALIDATION_FAILED if the payload does not fit the signal type.
 */
export function signalDeliveryOf(request: SignalRequest, newId: () => string): SignalDelivery {
  assertKnownKeys(request, SIGNAL_REQUEST_KEYS, 'A signal has no');
  const { turnId, sessionId, id = newId() } = request;
  if ((turnId === undefined) === (sessionId === undefined))
    throw new TypeError('A signal is sent to a turn or to a session: set either turnId or sessionId.');
  const name = typeof request.name === 'string' ? request.name : request.name?.name;
  const problem = signalNameProblem(name);
  if (problem !== undefined) throw new TypeError(`The signal ${JSON.stringify(name)} cannot be sent: ${problem}.`);
  if (typeof id !== 'string' || id === '' || id.length > MAX_ID_CHARS)
    throw new TypeError(`The id of a signal is text of 1 to ${MAX_ID_CHARS} characters.`);
  const payload = copyAsJson(request.payload, `the payload of signal "${name}"`);
  // The validation gets a copy: what it returns is for waits, and it may change its argument.
  if (typeof request.name !== 'string') request.name.validate(copyAsJson(payload, 'the payload'));
  return {
    sessionId: sessionId ?? sessionIdOf(turnId ?? ''),
    ...(turnId !== undefined && { turnId }),
    name,
    ...(payload !== undefined && { payload }),
    id,
  };
}

/** Returns the request for the process that holds the session. Every member is JSON. */
export function peerRequestOf({ sessionId, ...delivery }: SignalDelivery): SignalRequest {
  return delivery.turnId === undefined ? { ...delivery, sessionId } : delivery;
}

/**
 * Returns the signal that the kernel delivers. Its id contains the turn, because each turn counts deliveries on its
 * own, and a prefix, because answers and messages are signals too.
 */
export function signalOf({ turnId, name, payload, id }: SignalDelivery): Signal {
  return { id: `signal ${turnId ?? ''} ${id}`, name, value: payload, turn: turnId };
}
