/** Turns as people name them: by the id, by the session if it has one turn, or by a beginning that only one has. */

import { LoopError } from '../../base/errors.js';
import type { Host } from '../../host/host.js';
import type { TurnStatus } from '../../protocol/trace.js';
import { UsageError } from '../settings.js';

const MIN_PREFIX_CHARS = 4;
const MAX_LISTED_IDS = 5;

const SESSION_ID_PATTERN = /^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,99}$/;

/** Refuses what cannot be the name of a session. */
export function assertSessionId(session: string | undefined): void {
  if (session === undefined || SESSION_ID_PATTERN.test(session)) return;
  throw new UsageError('--session must be 1 to 100 letters, digits or _ . : - and not begin with a point.');
}

/** The turns of this id or session, or the one whose id begins like this; TURN_NOT_FOUND if there is none. */
export async function findTurns(host: Host, given: string): Promise<readonly TurnStatus[]> {
  try {
    return await host.archive.status(given);
  } catch (thrown) {
    if (!(thrown instanceof LoopError) || thrown.code !== 'TURN_NOT_FOUND' || given.length < MIN_PREFIX_CHARS)
      throw thrown;
    const all = await host.archive.turns();
    const meant = all.filter(({ turnId }) => turnId.startsWith(given));
    if (meant.length === 0) throw thrown;
    return [requireSingleTurn(meant, given)];
  }
}

/** The one turn that is meant. */
export async function findTurn(host: Host, given: string): Promise<TurnStatus> {
  return requireSingleTurn(await findTurns(host, given), given);
}

function requireSingleTurn(turns: readonly TurnStatus[], given: string): TurnStatus {
  const [first] = turns;
  if (first !== undefined && turns.length === 1) return first;
  const ids = turns.slice(0, MAX_LISTED_IDS).map(({ turnId }) => turnId);
  const more = turns.length > MAX_LISTED_IDS ? `, and ${turns.length - MAX_LISTED_IDS} more` : '';
  throw new UsageError(`"${given}" could be any of ${turns.length} turns: ${ids.join(', ')}${more}. Write more of it.`);
}
