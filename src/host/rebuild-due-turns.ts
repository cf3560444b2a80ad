/** Rebuilds the index of due turns of a store that has lost it, or that an earlier version wrote. */
import { Fault } from '../base/errors.js';
import type { DueTurn } from '../journal/due-turns.js';
import type { Store } from '../journal/store.js';
import type { Entry } from '../protocol/entry.js';
import { type HostedEntry, HostedLoopState } from '../views/hosted-loop.js';
import { Turns } from '../views/turns.js';
import { dueChangeOf, isHostedStream } from './hosted/hosted-stream.js';
import { readSession } from './read-session.js';

/**
 * Makes every open turn of every session due at once, and every hosted loop when its stream says, unless the index already says when it is due, and marks the index
 * as complete. Running such a turn corrects its row. Damaged sessions are skipped. Does nothing if the index is
 * complete.
 */
export async function rebuildDueTurns(store: Pick<Store, 'journal' | 'blobs' | 'dueTurns'>): Promise<void> {
  const { journal, dueTurns } = store;
  if (await dueTurns.isComplete()) return;
  const turns: DueTurn[] = [];
  for (const { session } of await journal.list()) {
    if (isHostedStream(session)) turns.push(...(await dueLoopOf(session, journal)));
    for (const turn of await openTurnsOf(session, store)) turns.push({ session, turn, dueAt: 0 });
  }
  await dueTurns.rebuild(turns);
}

/** True for the entries of turns themselves: their openings, starts, ends and receipts. */
function isOfTurn({ key }: Entry): boolean {
  return !key.includes('/') || key.startsWith('#');
}

/** Returns the row of a hosted loop; none if nothing of it is due, or its stream is damaged. */
async function dueLoopOf(session: string, journal: Store['journal']): Promise<readonly DueTurn[]> {
  const state = new HostedLoopState();
  try {
    for await (const batch of journal.read(session, 0)) for (const entry of batch) state.apply(entry as HostedEntry);
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === 'STORE_DAMAGED') return [];
    throw thrown;
  }
  const { turn, dueAt } = dueChangeOf(state);
  return dueAt === undefined ? [] : [{ session, turn, dueAt }];
}

/** Returns the turns of a session that have started and not ended, or not been sealed; none if the session is damaged. */
async function openTurnsOf(session: string, store: Pick<Store, 'journal' | 'blobs'>): Promise<readonly string[]> {
  const turns = new Turns();
  try {
    for (const entry of await readSession(store, session, isOfTurn)) turns.apply(entry);
    return turns.turnIds().filter((id) => turns.get(id)?.endedEntry === undefined);
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === 'STORE_DAMAGED') return [];
    throw thrown;
  }
}
