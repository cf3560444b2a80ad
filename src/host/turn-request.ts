/**
 * Requests to a host: their validation, the identity of the turn that a request is for, and the errors that refuse one.
 */

import { compositeId, isWellFormed } from '../base/composite-id.js';
import { LoopError } from '../base/errors.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import { isObject } from '../base/own-property.js';
import { shortVersion } from '../base/short-version.js';
import { digestOfText } from '../journal/record.js';
import { isReservedSession, RESERVED_SESSION_PREFIX } from '../journal/reserved-sessions.js';
import { copyAsJson, jsonEquals } from '../json/value.js';
import type { DefinedLoop } from '../loops/defined-loop.js';
import { loopNotFoundError } from '../loops/failed-definition.js';
import type { RegisteredLoop, Registry } from '../loops/registry.js';
import { grantDigest } from '../policy/grant.js';
import type { Grant } from '../protocol/grant.js';
import type { HostedTurnOrigin } from '../protocol/hosted-loop.js';
import type { Json } from '../protocol/json.js';
import type { MessageMode } from '../views/message-inbox.js';
import { grantOf, isKeyOfTurn, openingOf } from '../views/turns.js';
import type { Archive, StoredTurn } from './archive.js';
import type { TurnIdentity } from './turn-result.js';

/** A turn to run: a loop and its input. */
export interface TurnRequest<I = unknown, O = unknown> {
  /** The id of a registered loop, or a loop that `defineLoop` or `defineAgent` returned. */
  readonly loop: string | DefinedLoop<I, O>;
  /**
   * The version of a loop that is requested by id.
   * @default the newest registered version, prereleases last
   */
  readonly version?: string;
  /** The input of the loop; any JSON value that matches its input schema. */
  readonly input?: I;
  /**
   * The session that the turn belongs to. An agent sees the earlier messages of its session, so a session id gives
   * access to them.
   * @default a new session
   */
  readonly sessionId?: string;
  /**
   * The idempotency key: a request with the key and principal of an earlier turn attaches to that turn instead of
   * starting another. The key is scoped to `sessionId` if one is set.
   * @default without a key every request starts a turn
   */
  readonly key?: string;
  /** The principal on whose behalf the turn runs. It is part of the identity of a turn with a key. */
  readonly principal?: string;
  /**
   * The only principals that may answer approvals of the turn.
   * @default every principal except the agents of the turn
   */
  readonly approvers?: readonly string[];
  /**
   * What the turn and everything below it may do and use.
   * @default no limits other than those of the loops
   */
  readonly grant?: Grant;
  /**
   * What an agent of the turn sees of earlier turns of its session: their messages, or nothing.
   * @default 'session'
   */
  readonly history?: 'none' | 'session';
}

/** A message to the running or paused turn of a session. */
export interface SessionMessage {
  readonly sessionId: string;
  readonly text: string;
  /**
   * When the agent reads the message: at its next round (`steer`), or after its answer (`queue`).
   * @default 'steer'
   */
  readonly mode?: MessageMode;
  /**
   * The idempotency key of the delivery: a second message with this id has no effect.
   * @default a new id
   */
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
  grant: true,
  history: true,
});

/** Returns the identity of the turn for a request: named after its key and principal, or after `id` without a key. */
export function turnIdentityOf(request: TurnRequest, registered: RegisteredLoop | undefined, id: string): TurnIdentity {
  const { loop, version = '', key, principal, sessionId } = request;
  const shortId = id.slice(0, 4) + id.slice(-12);
  const keyName = key === undefined ? undefined : keyNameOf(key, principal);
  const session = sessionId ?? keyName ?? `s-${shortId}`;
  const suffix = keyName ?? (sessionId === undefined ? '1' : shortId);
  const loopId = registered?.definition.id ?? (typeof loop === 'string' ? loop : loop.name);
  const loopVersion = registered?.definition.version ?? version;
  return { sessionId: session, turnId: `${session}.${suffix}`, loopId, loopVersion };
}

/** Returns the id of the turn of a key in a session. */
export function turnIdOfKey(sessionId: string, key: string): string {
  return `${sessionId}.${keyNameOf(key, undefined)}`;
}

/**
 * Returns the part of an id that stands for a key: a digest of key and principal. Keys with and without a principal
 * have different prefixes, so they cannot collide.
 */
function keyNameOf(key: string, principal: string | undefined): string {
  if (principal === undefined) return `k-${digestOfText(key).slice(0, 16)}`;
  return `p-${digestOfText(/* guard: turn-key-bound-to-principal */ compositeId(principal, key)).slice(0, 22)}`;
}

/**
 * Returns the identity under which the turn of a request is stored. Journals of earlier versions name turns after the
 * key without the principal; such a turn keeps its identity if it belongs to this principal. Otherwise returns
 * `identity`.
 */
export async function recordedIdentity(
  archive: Archive,
  request: TurnRequest,
  identity: TurnIdentity,
): Promise<TurnIdentity> {
  const { key, principal, sessionId } = request;
  if (key === undefined || principal === undefined) return identity;
  const keyName = keyNameOf(key, undefined);
  const session = sessionId ?? keyName;
  const turnId = `${session}.${keyName}`;
  // guard: legacy-turn-found-again
  if (!(await archive.has(turnId))) return identity;
  const stored = await archive.find(turnId);
  // guard: legacy-turn-bound-to-principal
  return stored?.turn.principal === principal ? { ...identity, sessionId: session, turnId } : identity;
}

/**
 * Returns KEY_CONFLICT if the turn of a request's key belongs to another principal, loop or input; undefined if the
 * request may attach. Versions are not compared. Throws VALUE_INVALID if the input is not JSON.
 */
export function attachConflict(
  { turn, entries }: StoredTurn,
  { input, key, principal, grant }: TurnRequest,
  { loopId, turnId }: TurnIdentity,
): LoopError | undefined {
  const { name, value } = turn.startedEntry;
  // The message must not reveal what another principal runs.
  // guard: turn-of-other-principal-refused
  if (turn.principal !== principal)
    return keyConflictError(key, 'belongs to a turn of another principal; use another key');
  if (name !== loopId) return keyConflictError(key, `belongs to a turn of "${name}" with another loop`);
  if (!jsonEquals(value, copyAsJson(input, 'the input')))
    return keyConflictError(key, `belongs to a turn of "${name}" with another input`);
  // guard: attached-turn-has-same-grant
  if (grant === undefined || isSameGrant(grantOf(turnId, entries), grant)) return undefined;
  const message = `The key "${key}" belongs to a turn under another grant.`;
  return new LoopError('GRANT_CONFLICT', message, { turnId });
}

/** Returns KEY_CONFLICT if a turn was not requested by a hosted loop from what its request names; undefined otherwise. */
export function originConflict(
  { identity: { turnId }, entries }: StoredTurn,
  hosted: HostedTurnOrigin | undefined,
): LoopError | undefined {
  // guard: hosted-turn-has-same-origin
  if (
    hosted === undefined ||
    jsonEquals(openingOf(turnId, entries)?.hosted as unknown as Json, hosted as unknown as Json)
  )
    return undefined;
  const message = `The turn ${turnId} was not requested from what its hosted loop names.`;
  return new LoopError('KEY_CONFLICT', message, { turnId });
}

function isSameGrant(known: Grant | undefined, grant: Grant): boolean {
  if (known === undefined) return false;
  const copy = copyAsJson(grant, 'the grant') as unknown as Grant;
  const isIdentified = copy.id !== undefined || known.id === undefined;
  return grantDigest(known) === grantDigest(isIdentified ? copy : { ...copy, id: known.id as string });
}

/** Throws GRANT_INVALID if a grant is no object, and VALUE_INVALID if it is not JSON. */
export function assertGrantObject(grant: Grant): void {
  if (isObject(copyAsJson(grant, 'the grant'))) return;
  throw new LoopError('GRANT_INVALID', 'The grant is not valid: it must be an object.', { path: '' });
}

/**
 * Throws GRANT_CONFLICT unless a turn may get another grant: because it has stopped at its grant, because that has
 * expired, or because it was reopened by a retry and has not run since.
 */
export function assertNeedsGrant({ identity: { turnId }, turn, entries }: StoredTurn, now: number): void {
  const { expiresAt } = grantOf(turnId, entries) ?? {};
  const isExpired = turn.endedEntry === undefined && expiresAt !== undefined && now >= Date.parse(expiresAt);
  const isRefusedRetry = entries.findLast(({ key }) => isKeyOfTurn(key, turnId))?.type === 'call.reopened';
  // guard: only-stopped-turn-gets-grant
  if (turn.stoppedEntry !== undefined || isExpired || isRefusedRetry) return;
  const message = `The turn ${turnId} has neither stopped at its grant nor has the grant expired, so it cannot continue under another one.`;
  throw new LoopError('GRANT_CONFLICT', message, { turnId });
}

function keyConflictError(key = '', why: string): LoopError {
  return new LoopError('KEY_CONFLICT', `The key "${key}" ${why}.`, { key });
}

/** Returns the error for a message to a session without a running or paused turn. */
export function noOpenTurnError(sessionId: string): LoopError {
  const message =
    `Session "${sessionId}" has no running or paused turn to receive the message; ` +
    'start a turn with the message as its prompt.';
  return new LoopError('TURN_NOT_FOUND', message, { sessionId });
}

/** Returns the error for a request of a loop that is not registered. */
export function unknownLoopError({ loop, version }: TurnRequest, registry: Registry): LoopError {
  const id = typeof loop === 'string' ? loop : loop.name;
  return loopNotFoundError(
    registry,
    id,
    version === undefined || version === '' ? `"${id}"` : `"${id}" ${shortVersion(version)}`,
  );
}

/**
 * Throws a TypeError if a request has an unknown option, and REQUEST_INVALID if a value of it cannot be used: often it
 * comes from data, such as the id of a message.
 */
export function assertTurnRequest(request: TurnRequest): void {
  assertKnownKeys(request, TURN_REQUEST_KEYS, 'A turn has no');
  const { sessionId, key } = request;
  if (request.grant !== undefined) assertGrantObject(request.grant);
  if (sessionId !== undefined && !SESSION_ID_PATTERN.test(sessionId))
    throw invalidRequest(
      'session',
      `A session id is 1 to 100 letters, digits or _ . : - and not ${JSON.stringify(sessionId)}.`,
    );
  if (sessionId !== undefined && isReservedSession(sessionId))
    throw invalidRequest('session', `Session ids that begin with "${RESERVED_SESSION_PREFIX}" are reserved.`);
  const keyProblem = key === undefined ? undefined : keyProblemOf(key);
  if (keyProblem !== undefined)
    throw invalidRequest(
      'key',
      `The key ${keyProblem}. A key is text of 1 to 1,000 characters; without one, every request starts a turn.`,
    );
  const { principal, approvers, history } = request;
  if (history !== undefined && history !== 'none' && history !== 'session')
    throw invalidRequest('history', `The history of a turn is "none" or "session", not ${JSON.stringify(history)}.`);
  if (
    (principal !== undefined && !isValidPrincipal(principal)) ||
    (approvers !== undefined && !areValidPrincipals(approvers))
  )
    throw invalidRequest(
      'principal',
      'A principal is text of 1 to 200 characters, and approvers are a list of at least one principal.',
    );
}

function keyProblemOf(key: unknown): string | undefined {
  if (typeof key !== 'string') return `is no text but ${key === null ? 'null' : `a ${typeof key}`}`;
  if (key === '') return 'is empty';
  if (key.length > 1000) return `has ${key.length} characters`;
  return isWellFormed(key) ? undefined : 'has lone surrogates';
}

function invalidRequest(option: string, message: string): LoopError {
  return new LoopError('REQUEST_INVALID', message, { option });
}

function areValidPrincipals(value: unknown): boolean {
  // The spread turns holes into undefined, which `every` would skip.
  return Array.isArray(value) && value.length > 0 && [...value].every(isValidPrincipal);
}

function isValidPrincipal(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '' && value.length <= 200 && isWellFormed(value);
}
