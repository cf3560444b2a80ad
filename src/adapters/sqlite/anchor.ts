/**
 * The anchor: where each session's chain ended, told apart from the database in an append-only file beside it.
 * SQLite drops the end of a damaged WAL without a word; the anchor is how that loss is noticed.
 * Invariants: a line is written after its COMMIT and before anything of it is acknowledged, so the anchor never
 * names what was not committed; each line has its own checksum and commit numbers have no gaps; the file is
 * replaced only whole (temporary file, sync, rename).
 */
import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { encodedLine, fieldsOf, lineOf } from './anchor-line.js';
import { openToAppend, writeNewFile } from './files.js';
import type { Head } from './heads.js';

export interface Anchored {
  readonly sid: number;
  readonly next: number;
  /** The first characters of the head's hash. */
  readonly head: string;
  readonly commit: number;
  readonly at: number;
}

/** What the file says once all of its lines are taken together. */
export interface Fold {
  readonly heads: Map<string, Anchored>;
  /** The last commit that it knows, and when that was. */
  commit: number;
  at: number;
  /** The highest sid ever given, so that none is given twice. */
  sid: number;
  /** Why it cannot be trusted to be complete; a torn last line is none. */
  readonly flaws: string[];
}

const format = 'rondo.anchor.v1';
const slack = 1 << 20;
/** More than two million sessions need. */
const maxBytes = 1 << 28;
const chunk = 500;

export function shortHash(hash: string): string {
  return hash.slice(0, 16);
}

/** A session inside a line: so many numbers and hashes, then its name to the end. */
function itemOf(item: string, count: number): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  for (let i = 0; i < count; i++) {
    const end = item.indexOf(' ', from);
    parts.push(item.slice(from, end));
    from = end + 1;
  }
  parts.push(item.slice(from));
  return parts;
}

function takeCommit(fold: Fold, [, no, time, ...items]: readonly string[]): void {
  const [commit, at] = [Number(no), Number(time)];
  if (fold.commit > 0 && commit !== fold.commit + 1) fold.flaws.push(`commit ${commit} follows commit ${fold.commit}`);
  fold.commit = Math.max(fold.commit, commit);
  fold.at = at;
  for (const item of items) {
    if (item.startsWith('- ')) {
      fold.heads.delete(item.slice(2));
      continue;
    }
    const [sid = '', next = '', head = '', name = ''] = itemOf(item, 3);
    fold.heads.set(name, { sid: Number(sid), next: Number(next), head, commit, at });
    fold.sid = Math.max(fold.sid, Number(sid));
  }
}

function takeKept(fold: Fold, [, ...items]: readonly string[]): void {
  for (const item of items) {
    const [sid, next, head = '', commit, at, name = ''] = itemOf(item, 5);
    fold.heads.set(name, { sid: Number(sid), next: Number(next), head, commit: Number(commit), at: Number(at) });
  }
}

function take(fold: Fold, line: readonly string[]): void {
  const [kind, commit = 0, at = 0, sid = 0] = line;
  if (kind === 'keep') takeKept(fold, line);
  else if (kind === 'commit') takeCommit(fold, line);
  else Object.assign(fold, { commit: Number(commit), at: Number(at), sid: Number(sid) });
}

/** The lines of a text, one after the other; it may be as long as a string can be. */
function* linesOf(content: string): Generator<string> {
  for (let from = 0; from < content.length; ) {
    const newline = content.indexOf('\n', from);
    const end = newline === -1 ? content.length : newline;
    yield content.slice(from, end);
    from = end + 1;
  }
}

/** Folds the text of an anchor file; never throws. */
export function foldAnchor(content: string): Fold {
  const fold: Fold = { heads: new Map(), commit: 0, at: 0, sid: 0, flaws: [] };
  let header: readonly string[] | undefined;
  let damaged: number[] = [];
  let kept = 0;
  let number = 0;
  for (const line of linesOf(content)) {
    const fields = fieldsOf(line);
    number += 1;
    if (number === 1) header = fields;
    if (fields === undefined) {
      damaged.push(number);
      continue;
    }
    // What is damaged at the very end was torn, and nothing of it was acknowledged.
    for (const earlier of damaged) fold.flaws.push(`line ${earlier} is damaged`);
    damaged = [];
    take(fold, fields);
    if (fields[0] === 'keep') kept += fields.length - 1;
  }
  if (header?.[0] !== format) fold.flaws.push('its first line is damaged');
  const count = Number(header?.[4] ?? kept);
  if (kept !== count) fold.flaws.push(`${count - kept} of ${count} sessions were cut off`);
  return fold;
}

/** Reads the anchor; undefined if there is none. */
export function readAnchor(path: string): Fold | undefined {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  if (size <= maxBytes) return foldAnchor(readFileSync(path, 'utf8'));
  return { ...foldAnchor(''), flaws: [`it has ${size} bytes, more than an anchor can have`] };
}

function whole(fold: Fold): string {
  const { commit, at, sid, heads } = fold;
  const lines = [lineOf([format, commit, at, sid, heads.size].join('\t'))];
  const all = Array.from(heads, ([name, a]) => `${a.sid} ${a.next} ${a.head} ${a.commit} ${a.at} ${name}`);
  for (let i = 0; i < all.length; i += chunk) lines.push(lineOf(['keep', ...all.slice(i, i + chunk)].join('\t')));
  return lines.join('');
}

function replace(path: string, content: string): void {
  const fresh = `${path}.new`;
  rmSync(fresh, { force: true });
  writeNewFile(fresh, content, { flush: true });
  renameSync(fresh, path);
  // Elsewhere a directory cannot be synced.
  if (process.platform === 'win32') return;
  const directory = openSync(dirname(path), 'r');
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

export class Anchor {
  readonly #path: string;
  #fd: number;
  #size: number;
  #limit: number;
  /** Lines that a full disk did not take; they go first once it does. */
  #backlog = Buffer.alloc(0);

  /** Replaces the file by what `fold` says and goes on from there. */
  constructor(path: string, fold: Fold) {
    this.#path = path;
    const content = whole(fold);
    replace(path, content);
    this.#fd = openToAppend(path);
    this.#size = Buffer.byteLength(content);
    this.#limit = Math.max(slack, 4 * this.#size);
  }

  /** Adds the line of one commit; throws the system's error, and then keeps the line for the next time. */
  add(commit: number, at: number, heads: Iterable<Head | undefined>, gone: Iterable<string>): void {
    let fields = `commit\t${commit}\t${at}`;
    for (const name of gone) fields += `\t- ${name}`;
    for (const head of heads)
      if (head !== undefined) fields += `\t${head.sid} ${head.next} ${shortHash(head.hash)} ${head.name}`;
    const line = encodedLine(fields);
    this.#write(this.#backlog.length === 0 ? line : Buffer.concat([this.#backlog, line]));
  }

  #write(bytes: Buffer): void {
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(this.#fd, bytes, done);
    } catch (error) {
      this.#backlog = Buffer.from(bytes);
      // Half a line would look like damage once more lines follow it.
      ftruncateSync(this.#fd, this.#size);
      throw error;
    }
    this.#size += bytes.length;
    if (this.#backlog.length > 0) this.#backlog = Buffer.alloc(0);
  }

  /** True when the file has outgrown what it says. */
  get bloated(): boolean {
    return this.#size > this.#limit;
  }

  /** Rewrites the file without what is superseded. A file with flaws is kept as it is: it is evidence. */
  compact(): void {
    this.#limit = 2 * this.#size;
    const fold = foldAnchor(readFileSync(this.#path, 'utf8'));
    if (fold.flaws.length > 0) return;
    const content = whole(fold);
    replace(this.#path, content);
    const fresh = openToAppend(this.#path);
    closeSync(this.#fd);
    this.#fd = fresh;
    this.#size = Buffer.byteLength(content);
    this.#limit = Math.max(slack, 4 * this.#size);
  }

  close(): void {
    closeSync(this.#fd);
  }
}
