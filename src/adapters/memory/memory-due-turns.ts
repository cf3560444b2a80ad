/** The index of due turns of the store in memory. It is complete from the start, because the store starts empty. */
import { compareDueTurns, type DueChange, type DueTurn, type DueTurns } from '../../journal/due-turns.js';

/** The due times of turns, by session and turn. A session without due turns is absent. */
export class MemoryDueTurns implements DueTurns {
  /** Created on first use: most stores in memory never have a due turn. */
  private bySession: Map<string, Map<string, number>> | undefined;
  private readonly sessions: ReadonlyMap<string, unknown>;

  /** @param sessions The sessions of the store, by name. */
  constructor(sessions: ReadonlyMap<string, unknown>) {
    this.sessions = sessions;
  }

  /** Applies the changes of an append to a session. */
  apply(session: string, changes: readonly DueChange[]): void {
    this.bySession ??= new Map();
    const turns = this.bySession.get(session) ?? new Map<string, number>();
    for (const { turn, dueAt } of changes) {
      if (dueAt === undefined) turns.delete(turn);
      else turns.set(turn, dueAt);
    }
    if (turns.size === 0) this.bySession.delete(session);
    else this.bySession.set(session, turns);
  }

  /** Removes the turns of a session. */
  removeSession(session: string): void {
    this.bySession?.delete(session);
  }

  async list(until: number, limit: number, after?: DueTurn): Promise<readonly DueTurn[]> {
    const isListed = (turn: DueTurn): boolean =>
      turn.dueAt <= until && (after === undefined || compareDueTurns(turn, after) > 0);
    return this.all().filter(isListed).sort(compareDueTurns).slice(0, limit);
  }

  async nextDueAt(after: number): Promise<number | undefined> {
    const times = this.all().flatMap(({ dueAt }) => (dueAt > after ? [dueAt] : []));
    return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
  }

  async isComplete(): Promise<boolean> {
    return true;
  }

  async rebuild(turns: readonly DueTurn[]): Promise<void> {
    for (const { session, turn, dueAt } of turns) {
      if (this.sessions.has(session) && !this.bySession?.get(session)?.has(turn))
        this.apply(session, [{ turn, dueAt }]);
    }
  }

  private all(): DueTurn[] {
    return [...(this.bySession ?? [])].flatMap(([session, turns]) =>
      Array.from(turns, ([turn, dueAt]) => ({ session, turn, dueAt })),
    );
  }
}
