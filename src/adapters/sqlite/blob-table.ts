/** The large values as rows, by session and digest; none is handed out whose text does not fit its digest. */
import { Fault } from '../../base/errors.js';
import { partDigestsIn } from '../../journal/blob-parts.js';
import { digestOfText } from '../../journal/record.js';
import { type Driver, readText, type Statement, textColumn } from './driver.js';

/** Large values that are checked at once. */
const BLOBS_PER_PAGE = 16;

export class BlobTable {
  readonly #select: Statement;
  readonly #selectPage: Statement;
  readonly #selectExists: Statement;

  constructor(driver: Driver) {
    this.#select = driver.prepare(`SELECT ${textColumn('body')} FROM blobs WHERE sid = ? AND digest = ?`);
    this.#selectExists = driver.prepare('SELECT 1 AS n FROM blobs WHERE sid = ? AND digest = ?');
    this.#selectPage = driver.prepare(
      `SELECT ${textColumn('digest')}, ${textColumn('body')} FROM blobs WHERE sid = ? AND blobs.digest > ? ORDER BY blobs.digest LIMIT ${BLOBS_PER_PAGE}`,
    );
  }

  get(session: string, sid: number, name: string): string | undefined {
    const [row] = this.#select.all(sid, name);
    if (row === undefined) return undefined;
    const body = readText(row.body);
    if (digestOfText(body) === name) return body;
    const message = `Session "${session}" is damaged: the value ${name} is not what was written. Restore the store from a backup.`;
    throw new Fault('STORE_DAMAGED', message, { session, digest: name });
  }

  has(sid: number, name: string): boolean {
    return this.#selectExists.all(sid, name).length > 0;
  }

  /** Checks the values behind one: which are bad, and the last that was looked at unless there are no more. */
  checkPage(sid: number, after: string): { readonly bad: readonly string[]; readonly last?: string } {
    const rows = this.#selectPage.all(sid, after);
    const bad: string[] = [];
    let last = after;
    for (const row of rows) {
      const [name, body] = [readText(row.digest), readText(row.body)];
      if (name > last) last = name;
      const isGood = digestOfText(body) === name && partDigestsIn(body).every((part) => this.has(sid, part));
      if (!isGood) bad.push(name);
    }
    return rows.length < BLOBS_PER_PAGE || last === after ? { bad } : { bad, last };
  }

  /** The digests of a session's values, apart by whether the value still fits. */
  checkSession(sid: number): { readonly good: ReadonlySet<string>; readonly bad: readonly string[] } {
    const good = new Set<string>();
    const bad: string[] = [];
    const whole = new Map<string, readonly string[]>();
    let after = '';
    for (let before: string | undefined; after !== before; ) {
      before = after;
      const rows = this.#selectPage.all(sid, after);
      for (const row of rows) {
        const name = readText(row.digest);
        // Damaged names may come out of order, and must not send the walk in circles.
        if (name > after) after = name;
        const body = readText(row.body);
        if (digestOfText(body) === name) good.add(name);
        else bad.push(name);
        const parts = good.has(name) ? partDigestsIn(body) : [];
        if (parts.length > 0) whole.set(name, parts);
      }
      if (rows.length < BLOBS_PER_PAGE) break;
    }
    // A value is as good as its parts.
    for (const [name, parts] of whole) if (!parts.every((part) => good.has(part))) good.delete(name);
    return { good, bad };
  }
}
