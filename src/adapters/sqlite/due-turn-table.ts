/**
 * The index of due turns as rows. The row with sid 0 is a mark: the index is complete. It is in the same table, so that
 * a lost table loses the mark too. While the index is incomplete, a removed turn leaves a row without a due time, so
 * that `rebuild`, which may have read the turn before it ended, does not add it again.
 */
import type { DueChange, DueTurn } from '../../journal/due-turns.js';
import { type Driver, integerColumn, readInteger, readText, type Statement, textColumn } from './driver.js';

/** Creates the table. Only a store without sessions starts with a complete index. */
export const CREATE_DUE_TURNS = `
CREATE TABLE due_turns (
  sid INTEGER NOT NULL, turn TEXT NOT NULL, session TEXT NOT NULL, due_at INTEGER, PRIMARY KEY (sid, turn)) WITHOUT ROWID;
CREATE INDEX due_turns_due_at ON due_turns (due_at, session, turn);
INSERT INTO due_turns (sid, turn, session) SELECT 0, '', '' WHERE NOT EXISTS (SELECT 1 FROM sessions);`;

/** Has the index of a store with sessions rebuilt. */
export const MARK_INCOMPLETE = 'DELETE FROM due_turns WHERE sid = 0 AND EXISTS (SELECT 1 FROM sessions);';

/** Creates the table again, as an incomplete index, if the file has lost it. */
export function restoreDueTurns(driver: Driver): void {
  const names = ['due_turns', 'due_turns_due_at'];
  const found = driver.prepare(`SELECT 1 FROM sqlite_master WHERE name IN (?, ?)`).all(...names);
  if (found.length === names.length) return;
  driver.exec(`BEGIN IMMEDIATE; DROP TABLE IF EXISTS due_turns; ${CREATE_DUE_TURNS} COMMIT;`);
}

/** Reads and writes the `due_turns` table. Writes belong in a transaction. */
export class DueTurnTable {
  private readonly insert: Statement;
  private readonly replace: Statement;
  private readonly remove: Statement;
  private readonly removeAll: Statement;
  private readonly removeEmptyRows: Statement;
  private readonly selectPage: Statement;
  private readonly selectNext: Statement;
  private readonly selectMark: Statement;
  /** True once the mark was read. Until then, removals leave a row. */
  private isMarked = false;

  constructor(driver: Driver) {
    // Only a session that exists, under this name, can be continued.
    const isInSession =
      'EXISTS (SELECT 1 FROM sessions WHERE sessions.sid = due_turns.sid AND sessions.name = due_turns.session)';
    this.insert = driver.prepare(
      `INSERT OR IGNORE INTO due_turns (sid, turn, session, due_at) SELECT sid, ?2, name, ?3 FROM sessions WHERE name = ?1`,
    );
    this.replace = driver.prepare('INSERT OR REPLACE INTO due_turns (sid, turn, session, due_at) VALUES (?, ?, ?, ?)');
    this.remove = driver.prepare('DELETE FROM due_turns WHERE sid = ? AND turn = ?');
    this.removeAll = driver.prepare('DELETE FROM due_turns WHERE sid = ?');
    this.removeEmptyRows = driver.prepare('DELETE FROM due_turns WHERE due_at IS NULL AND sid > 0');
    this.selectPage = driver.prepare(
      `SELECT ${textColumn('session')}, ${textColumn('turn')}, ${integerColumn('due_at')} FROM due_turns
       WHERE due_turns.due_at <= ?1 AND (due_turns.due_at, due_turns.session, due_turns.turn) > (?2, ?3, ?4) AND ${isInSession}
       ORDER BY due_turns.due_at, due_turns.session, due_turns.turn LIMIT ?5`,
    );
    this.selectNext = driver.prepare(
      `SELECT ${integerColumn('due_at')} FROM due_turns WHERE due_turns.due_at > ? AND ${isInSession}
       ORDER BY due_turns.due_at LIMIT 1`,
    );
    this.selectMark = driver.prepare('SELECT 1 FROM due_turns WHERE sid = 0');
    this.readMark();
  }

  /** Applies the changes of an append to a session. */
  apply(sid: number, session: string, changes: readonly DueChange[]): void {
    for (const { turn, dueAt } of changes) {
      if (dueAt !== undefined) this.replace.run(sid, turn, session, dueAt);
      else if (this.isMarked) this.remove.run(sid, turn);
      else this.replace.run(sid, turn, session, null);
    }
  }

  /** Removes the rows of a session. */
  removeSession(sid: number): void {
    this.removeAll.run(sid);
  }

  /** Adds missing rows and marks the index as complete. Call `readMark` after the commit. */
  rebuild(turns: readonly DueTurn[]): void {
    for (const { session, turn, dueAt } of turns) this.insert.run(session, turn, dueAt);
    this.removeEmptyRows.run();
    this.replace.run(0, '', '', null);
  }

  /** Returns a page of turns that are due at `until` or before, in the order of due time, session and turn. */
  list(until: number, limit: number, after: DueTurn | undefined): readonly DueTurn[] {
    const { dueAt, session, turn } = after ?? { dueAt: -1, session: '', turn: '' };
    const rows = this.selectPage.all(until, dueAt, session, turn, limit);
    return rows.map((row) => ({
      session: readText(row.session),
      turn: readText(row.turn),
      dueAt: Math.max(0, readInteger(row.due_at)),
    }));
  }

  /** Returns the earliest due time later than `after`; undefined if there is none. */
  nextDueAt(after: number): number | undefined {
    const [row] = this.selectNext.all(after);
    return row && readInteger(row.due_at);
  }

  /** True if the index is complete, as committed. */
  readMark(): boolean {
    // guard: missing-index-reported
    this.isMarked = this.selectMark.all().length > 0;
    return this.isMarked;
  }
}
