/** The large values as rows, by session and digest; none is handed out whose text does not fit its digest. */
import { Fault } from '../../journal/errors.js';
import { partsIn } from '../../journal/parts.js';
import { digest } from '../../journal/record.js';
import { type Driver, type Statement, text, textOf } from './driver.js';

/** Large values that are checked at once. */
const stride = 16;

export class BlobRows {
  readonly #select: Statement;
  readonly #page: Statement;

  constructor(driver: Driver) {
    this.#select = driver.prepare(`SELECT ${textOf('body')} FROM blobs WHERE sid = ? AND digest = ?`);
    this.#page = driver.prepare(
      `SELECT ${textOf('digest')}, ${textOf('body')} FROM blobs WHERE sid = ? AND blobs.digest > ? ORDER BY blobs.digest LIMIT ${stride}`,
    );
  }

  get(session: string, sid: number, name: string): string | undefined {
    const [row] = this.#select.all(sid, name);
    if (row === undefined) return undefined;
    const body = text(row.body);
    if (digest(body) === name) return body;
    const message = `Session "${session}" is damaged: the value ${name} is not what was written. Restore the store from a backup.`;
    throw new Fault('STORE_DAMAGED', message, { session, digest: name });
  }

  /** The digests of a session's values, apart by whether the value still fits. */
  check(sid: number): { readonly good: ReadonlySet<string>; readonly bad: readonly string[] } {
    const good = new Set<string>();
    const bad: string[] = [];
    const whole = new Map<string, readonly string[]>();
    let after = '';
    for (let before: string | undefined; after !== before; ) {
      before = after;
      const rows = this.#page.all(sid, after);
      for (const row of rows) {
        const name = text(row.digest);
        // Damaged names may come out of order, and must not send the walk in circles.
        if (name > after) after = name;
        const body = text(row.body);
        if (digest(body) === name) good.add(name);
        else bad.push(name);
        const parts = good.has(name) ? partsIn(body) : [];
        if (parts.length > 0) whole.set(name, parts);
      }
      if (rows.length < stride) break;
    }
    // A value is as good as its parts.
    for (const [name, parts] of whole) if (!parts.every((part) => good.has(part))) good.delete(name);
    return { good, bad };
  }
}
