/**
 * Finds turns by id, by session id, by the key `LOOP#n` of a turn of a hosted loop, by a unique prefix of the turn id, or
 * as `last`, the newest turn.
 */
import { LoopError } from '../../base/errors.js';
import type { Host } from '../../host/host.js';
import { sessionIdOf } from '../../host/turn-result.js';
import { isReservedSession, RESERVED_SESSION_PREFIX } from '../../journal/reserved-sessions.js';
import type { VerdictSubject } from '../../protocol/receipt.js';
import type { TurnStatus } from '../../protocol/trace.js';
import { UsageError } from '../settings.js';

const MIN_PREFIX_CHARS = 4;
const MAX_LISTED_IDS = 5;

const SESSION_ID_PATTERN = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;

/** Throws a UsageError if the text is not a valid session id. */
export function assertSessionId(session: string | undefined): void {
  if (session === undefined) return;
  if (isReservedSession(session))
    throw new UsageError(`Session ids that begin with "${RESERVED_SESSION_PREFIX}" are reserved.`);
  if (SESSION_ID_PATTERN.test(session)) return;
  throw new UsageError('--session must be 1 to 100 letters, digits or _ . : - and not begin with a dot.');
}

/** The reference to the turn that started last. */
export const LAST_TURN = 'last';

/**
 * Returns the turn with this id, the turns with this session id, the turn of a hosted loop with this key, or the turn
 * whose id begins with the reference, of at least four characters; for `last`, the newest turn. Throws TURN_NOT_FOUND if
 * there is none, and a UsageError if several ids begin with it.
 */
export async function findTurns(host: Host, given: string): Promise<readonly TurnStatus[]> {
  // A table on a narrow terminal shows the beginning of an id and an ellipsis.
  const reference = given.replace(/…$/, '');
  if (reference === LAST_TURN) return [await newestTurn(host)];
  try {
    return await host.archive.status(reference);
  } catch (thrown) {
    if (!(thrown instanceof LoopError) || thrown.code !== 'TURN_NOT_FOUND') throw thrown;
    const turnId = await turnIdOfKey(host, reference);
    if (turnId !== undefined) return host.archive.status(turnId);
    const turns = reference.length < MIN_PREFIX_CHARS ? [] : await host.archive.turns();
    const matches = turns.filter((turn) => turn.turnId.startsWith(reference));
    if (matches.length === 0) throw await withHostedHint(host, reference, thrown);
    return [requireSingleTurn(matches, reference)];
  }
}

/** Returns the id of the turn of a hosted loop with the key `LOOP#n`; undefined if there is none. */
async function turnIdOfKey({ hosted }: Host, key: string): Promise<string | undefined> {
  const [, loop] = /^(.+)#\d+$/.exec(key) ?? [];
  if (loop === undefined || (await hosted.definition(loop)) === undefined) return undefined;
  return (await hosted.turns(loop)).find((turn) => turn.key === key)?.turnId;
}

/** Returns an error for a turn that was not found, which says so if the reference is the id of a hosted loop. */
async function withHostedHint({ hosted }: Host, reference: string, error: LoopError): Promise<LoopError> {
  const loop = reference.replace(/#\d+$/, '');
  if ((await hosted.definition(loop)) === undefined) return error;
  const { code, message } = error;
  const hint = `The turns of the hosted loop "${loop}": rondo host status ${loop} --turns`;
  return new LoopError(code, `${message} ${hint}`, { id: reference, hostedLoop: loop });
}

/** The turns whose receipts are meant by a reference. */
export interface ReferencedTurns {
  readonly sessionIds: readonly string[];
  /** The turns that are meant; undefined for all of the sessions. */
  readonly turnIds: readonly string[] | undefined;
  readonly named: Pick<VerdictSubject, 'session' | 'turn' | 'hostedLoop'>;
}

/** Returns what `findTurns` finds or, for the id of a hosted loop that is that of no turn or session, all of its turns. */
export async function findReferencedTurns(host: Host, reference: string): Promise<ReferencedTurns> {
  const loop = await hostedLoopNamed(host, reference);
  if (loop !== undefined) {
    const sessionIds = (await host.hosted.turns(loop)).map(({ turnId }) => sessionIdOf(turnId));
    return { sessionIds: [...new Set(sessionIds)], turnIds: undefined, named: { hostedLoop: loop } };
  }
  const turns = await findTurns(host, reference);
  const sessionIds = [...new Set(turns.map(({ sessionId }) => sessionId))];
  const [{ turnId, sessionId } = { turnId: '', sessionId: '' }] = turns;
  if (reference === sessionId) return { sessionIds, turnIds: undefined, named: { session: sessionId } };
  return { sessionIds, turnIds: [turnId], named: { session: sessionId, turn: turnId } };
}

/**
 * Returns the hosted loop with this id; undefined if a turn or a session has the id, or no hosted loop does. A loop takes
 * precedence over a turn whose id begins with its own.
 */
export async function hostedLoopNamed({ archive, hosted }: Host, reference: string): Promise<string | undefined> {
  if (reference === LAST_TURN || (await hosted.definition(reference)) === undefined) return undefined;
  return archive.status(reference).then(
    () => undefined,
    (thrown: unknown) => {
      if (thrown instanceof LoopError && thrown.code === 'TURN_NOT_FOUND') return reference;
      throw thrown;
    },
  );
}

async function newestTurn(host: Host): Promise<TurnStatus> {
  const newest = (await host.archive.turns()).at(-1);
  if (newest === undefined) throw new LoopError('TURN_NOT_FOUND', 'There is no turn in the store.', { id: LAST_TURN });
  return newest;
}

/** Returns the only turn that the reference matches. Throws TURN_NOT_FOUND, or a UsageError if it matches several. */
export async function findTurn(host: Host, reference: string): Promise<TurnStatus> {
  return requireSingleTurn(await findTurns(host, reference), reference);
}

function requireSingleTurn(turns: readonly TurnStatus[], reference: string): TurnStatus {
  const [first] = turns;
  if (first !== undefined && turns.length === 1) return first;
  const ids = turns.slice(0, MAX_LISTED_IDS).map(({ turnId }) => turnId);
  const more = turns.length > MAX_LISTED_IDS ? `, and ${turns.length - MAX_LISTED_IDS} more` : '';
  throw new UsageError(`"${reference}" matches ${turns.length} turns: ${ids.join(', ')}${more}. Give a longer prefix.`);
}
