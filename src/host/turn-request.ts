/** What is asked of a host: a turn of a loop, or a message to one that runs; and why it cannot be. */

import { compositeId, isWellFormed } from '../base/composite-id.js';
import { LoopError } from '../base/errors.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import { digestOfText } from '../journal/record.js';
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { DefinedLoop } from '../loops/defined-loop.js';
import type { RegisteredLoop } from '../loops/registry.js';
import type { MessageMode } from '../views/message-inbox.js';
import type { Archive, StoredTurn } from './archive.js';
import type { TurnIdentity } from './turn-result.js';

/** What is to be run: a loop by id or as it was defined, and its input. */
export interface TurnRequest<I = unknown, O = unknown> {
  readonly loop: string | DefinedLoop<I, O>;
  readonly version?: string;
  readonly input?: I;
  /** The session that the turn belongs to; whoever may name it shares its history. Made up unless told. */
  readonly sessionId?: string;
  /** The same key of the same principal attaches to the same turn; within `sessionId`, if one is given. */
  readonly key?: string;
  /** On whose behalf the turn runs: part of the identity of a turn with a key. */
  readonly principal?: string;
  /** Who alone may answer its approvals; anybody but its agents unless told. */
  readonly approvers?: readonly string[];
}

/** Something said to a session while a turn of it runs. */
export interface SessionMessage {
  readonly sessionId: string;
  readonly text: string;
  /** Heard at the next round (`steer`), or once there is an answer (`queue`). */
  readonly mode?: MessageMode;
  /** The delivery's own id: the same id is taken once. */
  readonly id?: string;
}

const SESSION_ID_PATTERN = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;
const TURN_REQUEST_KEYS = optionKeys<TurnRequest>({
  loop: true,
  version: true,
  input: true,
  sessionId: true,
  key: true,
  principal: true,
  approvers: true,
});

/** Which turn a request is for: the one of its key and principal, or a new one with this id. */
export function turnIdentityOf(request: TurnRequest, found: RegisteredLoop | undefined, id: string): TurnIdentity {
  const { loop, version = '', key, principal, sessionId } = request;
  const own = id.slice(0, 4) + id.slice(-12);
  const named = key === undefined ? undefined : keyNameOf(key, principal);
  const session = sessionId ?? named ?? `s-${own}`;
  const suffix = named ?? (sessionId === undefined ? '1' : own);
  const loopId = found?.definition.id ?? (typeof loop === 'string' ? loop : loop.name);
  const loopVersion = found?.definition.version ?? version;
  return { sessionId: session, turnId: `${session}.${suffix}`, loopId, loopVersion };
}

/** The name of a key in ids. The two kinds have prefixes of their own: no key is taken for another one with its principal. */
function keyNameOf(key: string, principal: string | undefined): string {
  if (principal === undefined) return `k-${digestOfText(key).slice(0, 16)}`;
  return `p-${digestOfText(/* guard: turn-key-bound-to-principal */ compositeId(principal, key)).slice(0, 22)}`;
}

/**
 * The identity under which a turn with a key is kept. Principals were not always part of it: a turn of this principal that
 * was recorded under the key alone keeps that identity.
 */
export async function recordedIdentity(
  archive: Archive,
  request: TurnRequest,
  identity: TurnIdentity,
): Promise<TurnIdentity> {
  const { key, principal, sessionId } = request;
  if (key === undefined || principal === undefined) return identity;
  const named = keyNameOf(key, undefined);
  const session = sessionId ?? named;
  const turnId = `${session}.${named}`;
  // guard: legacy-turn-found-again
  if (!(await archive.has(turnId))) return identity;
  const known = await archive.find(turnId);
  // guard: legacy-turn-bound-to-principal
  return known?.turn.principal === principal ? { ...identity, sessionId: session, turnId } : identity;
}

/** Why a request may not attach to the turn of its key: that one belongs to another principal, loop or input. */
export function attachConflict(
  { turn }: StoredTurn,
  { input, key, principal }: TurnRequest,
  { loopId }: TurnIdentity,
): LoopError | undefined {
  const { name, value } = turn.startedEntry;
  // Nothing is told of what another principal runs.
  // guard: turn-of-other-principal-refused
  if (turn.principal !== principal)
    return keyConflictError(key, 'belongs to a turn of another principal; use another key');
  if (name !== loopId) return keyConflictError(key, `belongs to a turn of "${name}" with another loop`);
  if (jsonEquals(value, copyAsJson(input, 'the input'))) return undefined;
  return keyConflictError(key, `belongs to a turn of "${name}" with another input`);
}

function keyConflictError(key = '', why: string): LoopError {
  return new LoopError('KEY_CONFLICT', `The key "${key}" ${why}.`, { key });
}

export function noOpenTurnError(sessionId: string): LoopError {
  const message = `Nothing runs in the session "${sessionId}" that could hear it: run the agent with this as its prompt.`;
  return new LoopError('TURN_NOT_FOUND', message, { sessionId });
}

export function loopNotFoundError({ loop, version }: TurnRequest): LoopError {
  const id = typeof loop === 'string' ? loop : loop.name;
  const wanted = version === undefined || version === '' ? `"${id}"` : `"${id}" ${version}`;
  return new LoopError('LOOP_NOT_FOUND', `There is no loop ${wanted}.`, { loopId: id });
}

export function assertTurnRequest(request: TurnRequest): void {
  assertKnownKeys(request, TURN_REQUEST_KEYS, 'A turn has no');
  const { sessionId, key } = request;
  if (sessionId !== undefined && !SESSION_ID_PATTERN.test(sessionId))
    throw new TypeError(`A session id is 1 to 100 letters, digits or _ . : - ; not ${JSON.stringify(sessionId)}.`);
  if (sessionId?.startsWith('rondo:')) throw new TypeError('Session ids that begin with "rondo:" are our own.');
  if (key !== undefined && (key === '' || key.length > 1000 || !isWellFormed(key)))
    throw new TypeError('A key is text of 1 to 1,000 characters, without lone surrogates.');
  const { principal, approvers } = request;
  if (
    (principal !== undefined && !isValidPrincipal(principal)) ||
    (approvers !== undefined && !areValidPrincipals(approvers))
  )
    throw new TypeError('A principal is text of 1 to 200 characters, and approvers a list of at least one of them.');
}

function areValidPrincipals(who: unknown): boolean {
  return Array.isArray(who) && who.length > 0 && [...who].every(isValidPrincipal);
}

function isValidPrincipal(who: unknown): boolean {
  return typeof who === 'string' && who.trim() !== '' && who.length <= 200 && isWellFormed(who);
}
