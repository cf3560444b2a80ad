// Rewrites a closed SQLite store as someone can who may change its files and does not have its key: hashes, checksums
// and the anchor are made anew, so that nothing but the key can show the change.

import { AnchorFile, hashPrefixOf, readAnchorFile } from '../../src/adapters/sqlite/anchor-file.js';
import { openDriver } from '../../src/adapters/sqlite/driver.js';
import { sessionRowChecksum } from '../../src/adapters/sqlite/session-heads.js';
import { createRecord, genesisHash, RecordHasher } from '../../src/journal/record.js';
import type { Entry } from '../../src/protocol/entry.js';

type StoredRow = Readonly<Record<string, string | number>>;
type Run = (sql: string, ...params: (string | number)[]) => void;

const ENTRIES_PER_SESSION = 2 ** 26;
const withoutKey = new RecordHasher();

/** Replaces the entries of a session by others, in one record. */
export function forgeEntries(file: string, session: string, change: (entries: Entry[]) => Entry[]): void {
  editStore(file, (run, select) => {
    const [row] = select('SELECT sid, fence, commit_no FROM sessions WHERE name = ?', session);
    const [sid, fence] = [Number(row?.sid), Number(row?.fence)];
    const range = [sid * ENTRIES_PER_SESSION, (sid + 1) * ENTRIES_PER_SESSION];
    const records = select('SELECT body, commit_no FROM records WHERE id >= ? AND id < ? ORDER BY id', ...range);
    const entries = change(records.flatMap(({ body }) => JSON.parse(String(body)) as Entry[]));
    const body = JSON.stringify(entries.map((entry, seq) => ({ ...entry, seq })));
    const draft = { session, fence, firstSeq: 0, count: entries.length, body };
    const commitNumber = Number(records.at(-1)?.commit_no);
    const commit = { committedAt: 1, commitNumber };
    const { prevHash, hash } = createRecord(withoutKey, sid, genesisHash(session, sid), draft, commit);
    run('DELETE FROM records WHERE id >= ? AND id < ?', ...range);
    run(
      'INSERT INTO records (id, count, fence, at, commit_no, prev, hash, body) VALUES (?, ?, ?, 1, ?, ?, ?, ?)',
      ...[sid * ENTRIES_PER_SESSION, entries.length, fence, commitNumber, prevHash, hash, body],
    );
    run('DELETE FROM snapshots WHERE sid = ?', sid);
    const checksum = sessionRowChecksum(withoutKey, {
      sid,
      name: session,
      fence,
      commitNumber: Number(row?.commit_no),
    });
    run('UPDATE sessions SET checksum = ? WHERE sid = ?', checksum, sid);
    const { lastCommittedAt: committedAt } = anchorOf(file);
    editAnchor(file, (heads) => {
      heads.set(session, { sid, next: entries.length, hashPrefix: hashPrefixOf(hash), commitNumber, committedAt });
    });
  });
}

/** Removes a session without a trace. */
export function forgeRemoval(file: string, session: string): void {
  editStore(file, (run, select) => {
    const sid = Number(select('SELECT sid FROM sessions WHERE name = ?', session)[0]?.sid);
    run('DELETE FROM records WHERE id >= ? AND id < ?', sid * ENTRIES_PER_SESSION, (sid + 1) * ENTRIES_PER_SESSION);
    for (const table of ['sessions', 'blobs', 'snapshots', 'due_turns']) run(`DELETE FROM ${table} WHERE sid = ?`, sid);
  });
  editAnchor(file, (heads) => heads.delete(session));
}

/** Runs statements on a closed store. */
export function editStore(
  file: string,
  edit: (run: Run, select: (sql: string, ...params: (string | number)[]) => readonly StoredRow[]) => void,
): void {
  const driver = openDriver(file);
  try {
    edit(
      (sql, ...params) => void driver.prepare(sql).run(...params),
      (sql, ...params) => driver.prepare(sql).all(...params) as readonly StoredRow[],
    );
  } finally {
    driver.close();
  }
}

function anchorOf(file: string) {
  const state = readAnchorFile(`${file}.anchor`);
  if (state === undefined) throw new Error(`${file} has no anchor.`);
  return state;
}

function editAnchor(file: string, edit: (heads: ReturnType<typeof anchorOf>['heads']) => void): void {
  const state = anchorOf(file);
  edit(state.heads);
  new AnchorFile(`${file}.anchor`, state).close();
}
