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
import { encodedLine, LineReader, lineOf, type Span } from './anchor-line.js';
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

function takeCommit(fold: Fold, line: LineReader): void {
  const commit = line.number();
  const at = line.number();
  if (fold.commit > 0 && commit !== fold.commit + 1) fold.flaws.push(`commit ${commit} follows commit ${fold.commit}`);
  fold.commit = Math.max(fold.commit, commit);
  fold.at = at;
  while (line.hasMore) {
    if (line.skip('- ')) {
      fold.heads.delete(line.rest());
      continue;
    }
    const sid = line.number();
    const next = line.number();
    const head = line.word();
    fold.heads.set(line.rest(), { sid, next, head, commit, at });
    fold.sid = Math.max(fold.sid, sid);
  }
}

/** Returns how many sessions the line has. */
function takeKept(fold: Fold, line: LineReader): number {
  let count = 0;
  for (; line.hasMore; count++) {
    const sid = line.number();
    const next = line.number();
    const head = line.word();
    const commit = line.number();
    const at = line.number();
    fold.heads.set(line.rest(), { sid, next, head, commit, at });
  }
  return count;
}

/** Takes the first line, and returns how many sessions it says were kept. */
function takeHeader(fold: Fold, line: LineReader): number {
  fold.commit = line.number();
  fold.at = line.number();
  fold.sid = line.number();
  return line.number();
}

/** Folds the text of an anchor file; never throws. */
export function foldAnchor(content: string): Fold {
  const fold: Fold = { heads: new Map(), commit: 0, at: 0, sid: 0, flaws: [] };
  const line = new LineReader(content);
  let stated: number | undefined;
  let damaged: number[] = [];
  let kept = 0;
  for (let number = 1; line.advance(); number++) {
    if (!line.check()) {
      damaged.push(number);
      continue;
    }
    // What is damaged at the very end was torn, and nothing of it was acknowledged.
    for (const earlier of damaged) fold.flaws.push(`line ${earlier} is damaged`);
    damaged = [];
    if (line.skip('commit\t')) takeCommit(fold, line);
    else if (line.skip('keep\t')) kept += takeKept(fold, line);
    else if (number === 1 && line.skip(`${format}\t`)) stated = takeHeader(fold, line);
    else fold.flaws.push(`line ${number} is not one of an anchor`);
  }
  if (stated === undefined) fold.flaws.push('its first line is damaged');
  else if (kept !== stated) fold.flaws.push(`${stated - kept} of ${stated} sessions were cut off`);
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

function joined(backlog: Buffer, { bytes, from, to }: Span): Span {
  const all = Buffer.concat([backlog, bytes.subarray(from, to)]);
  return { bytes: all, from: 0, to: all.length };
}

export class Anchor {
  readonly #path: string;
  #fd: number;
  #size: number;
  #limit: number;
  /** Lines that a full disk did not take; they go first once it does. */
  #backlog: Buffer | undefined;

  /** Replaces the file by what `fold` says and goes on from there; "keep" leaves a file that is there as it is, as evidence. */
  constructor(path: string, fold: Fold, how: 'replace' | 'keep' = 'replace') {
    this.#path = path;
    const kept = how === 'keep' ? statSync(path, { throwIfNoEntry: false })?.size : undefined;
    const content = whole(fold);
    if (kept === undefined) replace(path, content);
    this.#fd = openToAppend(path);
    this.#size = kept ?? Buffer.byteLength(content);
    this.#limit = Math.max(slack, 4 * this.#size);
  }

  /** Adds the line of one commit; throws the system's error, and then keeps the line for the next time. */
  add(commit: number, at: number, heads: Iterable<Head | undefined>, gone: Iterable<string>): void {
    let fields = `commit\t${commit}\t${at}`;
    for (const name of gone) fields += `\t- ${name}`;
    for (const head of heads)
      if (head !== undefined) fields += `\t${head.sid} ${head.next} ${shortHash(head.hash)} ${head.name}`;
    const line = encodedLine(fields);
    this.#write(this.#backlog === undefined ? line : joined(this.#backlog, line));
  }

  #write({ bytes, from, to }: Span): void {
    try {
      for (let at = from; at < to; ) at += writeSync(this.#fd, bytes, at, to - at);
    } catch (error) {
      this.#backlog = Buffer.from(bytes.subarray(from, to));
      // Half a line would look like damage once more lines follow it.
      ftruncateSync(this.#fd, this.#size);
      throw error;
    }
    this.#size += to - from;
    this.#backlog = undefined;
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
