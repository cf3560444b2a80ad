/** Blobs as rows, by session and digest. A blob whose text does not match its digest is never returned. */
import { Fault } from '../../base/errors.js';
import { partDigestsIn } from '../../journal/blob-parts.js';
import { digestOfText } from '../../journal/record.js';
import { type Driver, readText, type Statement, textColumn } from './driver.js';

/** Number of blobs that are read and checked at a time. */
const BLOBS_PER_PAGE = 16;

/** Reads and verifies the `blobs` table. */
export class BlobTable {
  private readonly select: Statement;
  private readonly selectPage: Statement;
  private readonly selectExists: Statement;

  constructor(driver: Driver) {
    this.select = driver.prepare(`SELECT ${textColumn('body')} FROM blobs WHERE sid = ? AND digest = ?`);
    this.selectExists = driver.prepare('SELECT 1 AS n FROM blobs WHERE sid = ? AND digest = ?');
    this.selectPage = driver.prepare(
      `SELECT ${textColumn('digest')}, ${textColumn('body')} FROM blobs WHERE sid = ? AND blobs.digest > ? ORDER BY blobs.digest LIMIT ${BLOBS_PER_PAGE}`,
    );
  }

  /** Returns the text of a blob; undefined if there is none. Throws if the text does not match the digest. */
  get(session: string, sid: number, digest: string): string | undefined {
    const [row] = this.select.all(sid, digest);
    if (row === undefined) return undefined;
    const body = readText(row.body);
    if (digestOfText(body) === digest) return body;
    const message = `Session "${session}" is damaged: the value ${digest} is not what was written. Restore the store from a backup.`;
    throw new Fault('STORE_DAMAGED', message, { session, digest });
  }

  /** True if the session has a blob with this digest. The text of the blob is not verified. */
  has(sid: number, digest: string): boolean {
    return this.selectExists.all(sid, digest).length > 0;
  }

  /**
   * Verifies one page of blobs after a digest. `bad` lists those that are damaged or lack a part. `last` is the digest
   * to continue after, absent at the end.
   */
  checkPage(sid: number, after: string): { readonly bad: readonly string[]; readonly last?: string } {
    const rows = this.selectPage.all(sid, after);
    const bad: string[] = [];
    let last = after;
    for (const row of rows) {
      const [digest, body] = [readText(row.digest), readText(row.body)];
      if (digest > last) last = digest;
      const isGood = digestOfText(body) === digest && partDigestsIn(body).every((part) => this.has(sid, part));
      if (!isGood) bad.push(digest);
    }
    return rows.length < BLOBS_PER_PAGE || last === after ? { bad } : { bad, last };
  }

  /**
   * Verifies all blobs of a session. `good` has the intact ones, `bad` those that do not match their digest. A blob
   * with a damaged or missing part is in neither.
   */
  checkSession(sid: number): { readonly good: ReadonlySet<string>; readonly bad: readonly string[] } {
    const good = new Set<string>();
    const bad: string[] = [];
    const partsByDigest = new Map<string, readonly string[]>();
    let after = '';
    for (let before: string | undefined; after !== before; ) {
      before = after;
      const rows = this.selectPage.all(sid, after);
      for (const row of rows) {
        const digest = readText(row.digest);
        // Damaged digests may come out of order and must not cause an endless loop.
        if (digest > after) after = digest;
        const body = readText(row.body);
        if (digestOfText(body) === digest) good.add(digest);
        else bad.push(digest);
        const parts = good.has(digest) ? partDigestsIn(body) : [];
        if (parts.length > 0) partsByDigest.set(digest, parts);
      }
      if (rows.length < BLOBS_PER_PAGE) break;
    }
    // A blob in parts is intact only if all of its parts are.
    for (const [digest, parts] of partsByDigest) if (!parts.every((part) => good.has(part))) good.delete(digest);
    return { good, bad };
  }
}
