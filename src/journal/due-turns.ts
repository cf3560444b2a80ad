/**
 * The index of due turns: which turns of all sessions a process has to continue, and when. A turn has a row if it has
 * started, has not ended, and continues at a known point in time. A turn that runs is due at once, because it must be
 * continued as soon as its process ends; the lease of that process keeps others from running it meanwhile.
 */
import type { PendingStep } from '../protocol/session.js';

/** A turn that a process has to continue. */
export interface DueTurn {
  readonly session: string;
  readonly turn: string;
  /** When to continue it, in milliseconds since the epoch; 0 for at once. */
  readonly dueAt: number;
}

/** A change of the row of one turn. */
export interface DueChange {
  readonly turn: string;
  /** When the turn is due, in milliseconds since the epoch; undefined removes its row. */
  readonly dueAt: number | undefined;
}

/** The due turns of all sessions. Their rows are written with the entries of a session; see `Batch.due`. */
export interface DueTurns {
  /** Returns up to `limit` turns that are due at `until` or before, by due time, session and turn, after `after`. */
  list(until: number, limit: number, after?: DueTurn): Promise<readonly DueTurn[]>;
  /** Returns the earliest due time later than `after`; undefined if there is none. */
  nextDueAt(after: number): Promise<number | undefined>;
  /** False if rows may be missing: the store is of an earlier version, or its index was lost. `rebuild` adds them. */
  isComplete(): Promise<boolean>;
  /**
   * Adds rows of turns that were open before the index existed, and marks the index as complete. Leaves a turn alone
   * whose row was written or removed since the index is incomplete, and a session that does not exist.
   */
  rebuild(turns: readonly DueTurn[]): Promise<void>;
}

/** An index without turns, for a store that keeps no entries. */
export const noDueTurns: DueTurns = {
  list: async () => [],
  nextDueAt: async () => undefined,
  isComplete: async () => true,
  rebuild: async () => {},
};

/** Compares two due turns by due time, session and turn. */
export function compareDueTurns(a: DueTurn, b: DueTurn): number {
  if (a.dueAt !== b.dueAt) return a.dueAt - b.dueAt;
  if (a.session !== b.session) return a.session < b.session ? -1 : 1;
  return a.turn === b.turn ? 0 : a.turn < b.turn ? -1 : 1;
}

/** Adds the change of a turn to the changes of an append, in place of an earlier change of the same turn. */
export function withDueChange(
  changes: readonly DueChange[] | undefined,
  turn: string,
  dueAt: number | undefined,
): readonly DueChange[] {
  const change = { turn, dueAt: dueAt === undefined ? undefined : toDueTime(dueAt) };
  return changes === undefined ? [change] : [...changes.filter((other) => other.turn !== turn), change];
}

/** Rounds a time up to a whole number of milliseconds that a store can hold. */
function toDueTime(at: number): number {
  return Math.min(Math.max(0, Math.ceil(at)), Number.MAX_SAFE_INTEGER);
}

/**
 * Returns when a paused turn is due: at its earliest timer, or at `wakeAt` if that is earlier. Undefined if it waits
 * only for signals and resolutions, which make it due when they arrive.
 */
export function dueTimeOf(pending: readonly PendingStep[], wakeAt: number | undefined): number | undefined {
  const earliest = pending.reduce(
    (at, step) => (step.kind === 'timer' ? Math.min(at, step.until) : at),
    wakeAt ?? Number.POSITIVE_INFINITY,
  );
  return earliest === Number.POSITIVE_INFINITY ? undefined : earliest;
}
