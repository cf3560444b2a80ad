/**
 * Removed sessions in the log of a store. The log keeps the leaves of their receipts, and says at which of its lengths
 * each session was removed: a session that is begun later under the same id has receipts of its own.
 */
import type { LogContents, LogLeaf } from './verify-log.js';

/** A session that was removed and had receipts, or turns without a receipt, as the log records it. */
export interface RemovedSession {
  readonly session: string;
  /** How many receipts it had. */
  readonly count: number;
  readonly head: string;
  readonly by: string;
  /** How many of its turns did what no receipt covers; absent if that is not known. */
  readonly unsealed?: number;
}

/** The removal of a session, and how many receipts the log had then. */
export interface LoggedRemoval extends RemovedSession {
  readonly at: number;
}

/** The leaves of receipts that were removed with their session. */
export class RemovedLeaves {
  private readonly hashes: ReadonlySet<string>;

  constructor({ leaves, removed }: Pick<LogContents, 'leaves' | 'removed'>) {
    const ends = new Map<string, number>();
    for (const { session, at } of removed) ends.set(session, at);
    const isRemoved = ({ session }: LogLeaf, index: number): boolean => index < (ends.get(session) ?? 0);
    const gone = ends.size === 0 ? [] : leaves.filter(isRemoved);
    this.hashes = new Set(gone.map(({ leaf }) => leaf));
  }

  /** True for a leaf that the log had when its session was removed, also if a process added it again later. */
  has(leaf: string): boolean {
    return this.hashes.has(leaf);
  }
}

/** Returns the removals that concern a verdict about all sessions, or about those with these ids. */
export function removalsOf(
  removed: readonly LoggedRemoval[],
  ids: readonly string[] | undefined,
): readonly LoggedRemoval[] {
  if (ids === undefined) return removed;
  const named = new Set(ids);
  // guard: removal-concerns-its-id
  return removed.filter(({ session }) => named.has(session));
}
