/** Finds turns by id, by session id, by a unique prefix of the turn id, or as `last`, the newest turn. */
import { LoopError } from '../../base/errors.js';
import type { Host } from '../../host/host.js';
import { isReservedSession, RESERVED_SESSION_PREFIX } from '../../journal/reserved-sessions.js';
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
 * Returns the turn with this id, the turns with this session id, or the turn whose id begins with the reference, of at
 * least four characters; for `last`, the newest turn. Throws TURN_NOT_FOUND if there is none, and a UsageError if
 * several ids begin with it.
 */
export async function findTurns(host: Host, given: string): Promise<readonly TurnStatus[]> {
  // A table on a narrow terminal shows the beginning of an id and an ellipsis.
  const reference = given.replace(/…$/, '');
  if (reference === LAST_TURN) return [await newestTurn(host)];
  try {
    return await host.archive.status(reference);
  } catch (thrown) {
    if (!(thrown instanceof LoopError) || thrown.code !== 'TURN_NOT_FOUND' || reference.length < MIN_PREFIX_CHARS)
      throw thrown;
    const turns = await host.archive.turns();
    const matches = turns.filter(({ turnId }) => turnId.startsWith(reference));
    if (matches.length === 0) throw thrown;
    return [requireSingleTurn(matches, reference)];
  }
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
