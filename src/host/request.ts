/** What is asked of a host: a turn of a loop, or a message to one that runs; and why it cannot be. */

import { LoopError } from '../base/errors.js';
import { compositeId, isWellFormed } from '../base/identity.js';
import { assertKnownKeys, optionKeys } from '../base/option-keys.js';
import { digest } from '../journal/record.js';
import { same, snapshot } from '../json/value.js';
import type { DefinedLoop } from '../loops/defined.js';
import type { Registered } from '../loops/registry.js';
import type { MailName } from '../views/mailbox.js';
import type { Archive, Known } from './archive.js';
import type { Identity } from './result.js';

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
export interface Message {
  readonly sessionId: string;
  readonly text: string;
  /** Heard at the next round (`steer`), or once there is an answer (`queue`). */
  readonly mode?: MailName;
  /** The delivery's own id: the same id is taken once. */
  readonly id?: string;
}

const NAME = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;
const REQUEST = optionKeys<TurnRequest>({
  loop: true,
  version: true,
  input: true,
  sessionId: true,
  key: true,
  principal: true,
  approvers: true,
});

/** Which turn a request is for: the one of its key and principal, or a new one with this id. */
export function identityOf(request: TurnRequest, found: Registered | undefined, id: string): Identity {
  const { loop, version = '', key, principal, sessionId } = request;
  const own = id.slice(0, 4) + id.slice(-12);
  const named = key === undefined ? undefined : nameOf(key, principal);
  const session = sessionId ?? named ?? `s-${own}`;
  const suffix = named ?? (sessionId === undefined ? '1' : own);
  const loopId = found?.definition.id ?? (typeof loop === 'string' ? loop : loop.name);
  const loopVersion = found?.definition.version ?? version;
  return { sessionId: session, turnId: `${session}.${suffix}`, loopId, loopVersion };
}

/** The name of a key in ids. The two kinds have prefixes of their own: no key is taken for another one with its principal. */
function nameOf(key: string, principal: string | undefined): string {
  if (principal === undefined) return `k-${digest(key).slice(0, 16)}`;
  return `p-${digest(/* guard: turn-key-bound-to-principal */ compositeId(principal, key)).slice(0, 22)}`;
}

/**
 * The identity under which a turn with a key is kept. Principals were not always part of it: a turn of this principal that
 * was recorded under the key alone keeps that identity.
 */
export async function keptIdentity(archive: Archive, request: TurnRequest, identity: Identity): Promise<Identity> {
  const { key, principal, sessionId } = request;
  if (key === undefined || principal === undefined) return identity;
  const named = nameOf(key, undefined);
  const session = sessionId ?? named;
  const turnId = `${session}.${named}`;
  // guard: legacy-turn-found-again
  if (!(await archive.has(turnId))) return identity;
  const known = await archive.known(turnId);
  // guard: legacy-turn-bound-to-principal
  return known?.turn.principal === principal ? { ...identity, sessionId: session, turnId } : identity;
}

/** Why a request may not attach to the turn of its key: that one belongs to another principal, loop or input. */
export function conflict(
  { turn }: Known,
  { input, key, principal }: TurnRequest,
  { loopId }: Identity,
): LoopError | undefined {
  const { name, value } = turn.started;
  // Nothing is told of what another principal runs.
  // guard: turn-of-other-principal-refused
  if (turn.principal !== principal) return keyConflict(key, 'belongs to a turn of another principal; use another key');
  if (name !== loopId) return keyConflict(key, `belongs to a turn of "${name}" with another loop`);
  if (same(value, snapshot(input, 'the input'))) return undefined;
  return keyConflict(key, `belongs to a turn of "${name}" with another input`);
}

function keyConflict(key = '', why: string): LoopError {
  return new LoopError('KEY_CONFLICT', `The key "${key}" ${why}.`, { key });
}

export function idle(sessionId: string): LoopError {
  const message = `Nothing runs in the session "${sessionId}" that could hear it: run the agent with this as its prompt.`;
  return new LoopError('TURN_NOT_FOUND', message, { sessionId });
}

export function notFound({ loop, version }: TurnRequest): LoopError {
  const id = typeof loop === 'string' ? loop : loop.name;
  const wanted = version === undefined || version === '' ? `"${id}"` : `"${id}" ${version}`;
  return new LoopError('LOOP_NOT_FOUND', `There is no loop ${wanted}.`, { loopId: id });
}

export function assertRequest(request: TurnRequest): void {
  assertKnownKeys(request, REQUEST, 'A turn has no');
  const { sessionId, key } = request;
  if (sessionId !== undefined && !NAME.test(sessionId))
    throw new TypeError(`A session id is 1 to 100 letters, digits or _ . : - ; not ${JSON.stringify(sessionId)}.`);
  if (sessionId?.startsWith('rondo:')) throw new TypeError('Session ids that begin with "rondo:" are our own.');
  if (key !== undefined && (key === '' || key.length > 1000 || !isWellFormed(key)))
    throw new TypeError('A key is text of 1 to 1,000 characters, without lone surrogates.');
  const { principal, approvers } = request;
  if ((principal !== undefined && !isPrincipal(principal)) || (approvers !== undefined && !arePrincipals(approvers)))
    throw new TypeError('A principal is text of 1 to 200 characters, and approvers a list of at least one of them.');
}

function arePrincipals(who: unknown): boolean {
  return Array.isArray(who) && who.length > 0 && [...who].every(isPrincipal);
}

function isPrincipal(who: unknown): boolean {
  return typeof who === 'string' && who.trim() !== '' && who.length <= 200 && isWellFormed(who);
}
