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
import { AnchorLineReader, type ByteRange, encodeLine, formatLine } from './anchor-line.js';
import { openForAppend, writeNewFile } from './files.js';
import type { SessionHead } from './session-heads.js';

export interface AnchoredHead {
  readonly sid: number;
  readonly next: number;
  /** The first characters of the head's hash. */
  readonly hashPrefix: string;
  readonly commitNumber: number;
  readonly committedAt: number;
}

/** What the file says once all of its lines are taken together. */
export interface AnchorState {
  readonly heads: Map<string, AnchoredHead>;
  /** The last commit that it knows, and when that was. */
  lastCommitNumber: number;
  lastCommittedAt: number;
  /** The highest sid ever given, so that none is given twice. */
  highestSid: number;
  /** Why it cannot be trusted to be complete; a torn last line is none. */
  readonly flaws: string[];
}

const ANCHOR_FORMAT = 'rondo.anchor.v1';
const MIN_COMPACTION_BYTES = 1 << 20;
/** More than two million sessions need. */
const MAX_ANCHOR_BYTES = 1 << 28;
const HEADS_PER_LINE = 500;

export function hashPrefixOf(hash: string): string {
  return hash.slice(0, 16);
}

function applyCommitLine(fold: AnchorState, line: AnchorLineReader): void {
  const commit = line.readNumber();
  const at = line.readNumber();
  if (fold.lastCommitNumber > 0 && commit !== fold.lastCommitNumber + 1)
    fold.flaws.push(`commit ${commit} follows commit ${fold.lastCommitNumber}`);
  fold.lastCommitNumber = Math.max(fold.lastCommitNumber, commit);
  fold.lastCommittedAt = at;
  while (line.hasMoreFields) {
    if (line.skipIfNext('- ')) {
      fold.heads.delete(line.readField());
      continue;
    }
    const sid = line.readNumber();
    const next = line.readNumber();
    const head = line.readWord();
    fold.heads.set(line.readField(), { sid, next, hashPrefix: head, commitNumber: commit, committedAt: at });
    fold.highestSid = Math.max(fold.highestSid, sid);
  }
}

/** Returns how many sessions the line has. */
function applyHeadsLine(fold: AnchorState, line: AnchorLineReader): number {
  let count = 0;
  for (; line.hasMoreFields; count++) {
    const sid = line.readNumber();
    const next = line.readNumber();
    const head = line.readWord();
    const commit = line.readNumber();
    const at = line.readNumber();
    fold.heads.set(line.readField(), { sid, next, hashPrefix: head, commitNumber: commit, committedAt: at });
  }
  return count;
}

/** Takes the first line, and returns how many sessions it says were kept. */
function applyHeaderLine(fold: AnchorState, line: AnchorLineReader): number {
  fold.lastCommitNumber = line.readNumber();
  fold.lastCommittedAt = line.readNumber();
  fold.highestSid = line.readNumber();
  return line.readNumber();
}

/** Folds the text of an anchor file; never throws. */
export function parseAnchor(content: string): AnchorState {
  const fold: AnchorState = { heads: new Map(), lastCommitNumber: 0, lastCommittedAt: 0, highestSid: 0, flaws: [] };
  const line = new AnchorLineReader(content);
  let stated: number | undefined;
  let damaged: number[] = [];
  let kept = 0;
  for (let number = 1; line.nextLine(); number++) {
    if (!line.verifyChecksum()) {
      damaged.push(number);
      continue;
    }
    // What is damaged at the very end was torn, and nothing of it was acknowledged.
    for (const earlier of damaged) fold.flaws.push(`line ${earlier} is damaged`);
    damaged = [];
    if (line.skipIfNext('commit\t')) applyCommitLine(fold, line);
    else if (line.skipIfNext('keep\t')) kept += applyHeadsLine(fold, line);
    else if (number === 1 && line.skipIfNext(`${ANCHOR_FORMAT}\t`)) stated = applyHeaderLine(fold, line);
    else fold.flaws.push(`line ${number} is not one of an anchor`);
  }
  if (stated === undefined) fold.flaws.push('its first line is damaged');
  else if (kept !== stated) fold.flaws.push(`${stated - kept} of ${stated} sessions were cut off`);
  return fold;
}

/** Reads the anchor; undefined if there is none. */
export function readAnchorFile(path: string): AnchorState | undefined {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  if (size <= MAX_ANCHOR_BYTES) return parseAnchor(readFileSync(path, 'utf8'));
  return { ...parseAnchor(''), flaws: [`it has ${size} bytes, more than an anchor can have`] };
}

function serializeAnchor(fold: AnchorState): string {
  const { lastCommitNumber, lastCommittedAt, highestSid, heads } = fold;
  const lines = [formatLine([ANCHOR_FORMAT, lastCommitNumber, lastCommittedAt, highestSid, heads.size].join('\t'))];
  const all = Array.from(
    heads,
    ([name, a]) => `${a.sid} ${a.next} ${a.hashPrefix} ${a.commitNumber} ${a.committedAt} ${name}`,
  );
  for (let i = 0; i < all.length; i += HEADS_PER_LINE)
    lines.push(formatLine(['keep', ...all.slice(i, i + HEADS_PER_LINE)].join('\t')));
  return lines.join('');
}

function replaceFile(path: string, content: string): void {
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

function prependBacklog(backlog: Buffer, { bytes, from, to }: ByteRange): ByteRange {
  const all = Buffer.concat([backlog, bytes.subarray(from, to)]);
  return { bytes: all, from: 0, to: all.length };
}

export class AnchorFile {
  readonly #path: string;
  #fd: number;
  #sizeBytes: number;
  #compactAboveBytes: number;
  /** Lines that a full disk did not take; they go first once it does. */
  #backlog: Buffer | undefined;

  /** Replaces the file by what `fold` says and goes on from there; "keep" leaves a file that is there as it is, as evidence. */
  constructor(path: string, fold: AnchorState, how: 'replace' | 'keep' = 'replace') {
    this.#path = path;
    const kept = how === 'keep' ? statSync(path, { throwIfNoEntry: false })?.size : undefined;
    const content = serializeAnchor(fold);
    if (kept === undefined) replaceFile(path, content);
    this.#fd = openForAppend(path);
    this.#sizeBytes = kept ?? Buffer.byteLength(content);
    this.#compactAboveBytes = Math.max(MIN_COMPACTION_BYTES, 4 * this.#sizeBytes);
  }

  /** Adds the line of one commit; throws the system's error, and then keeps the line for the next time. */
  appendCommit(commit: number, at: number, heads: Iterable<SessionHead | undefined>, gone: Iterable<string>): void {
    let fields = `commit\t${commit}\t${at}`;
    for (const name of gone) fields += `\t- ${name}`;
    for (const head of heads)
      if (head !== undefined) fields += `\t${head.sid} ${head.next} ${hashPrefixOf(head.hash)} ${head.name}`;
    const line = encodeLine(fields);
    this.#write(this.#backlog === undefined ? line : prependBacklog(this.#backlog, line));
  }

  #write({ bytes, from, to }: ByteRange): void {
    try {
      for (let at = from; at < to; ) at += writeSync(this.#fd, bytes, at, to - at);
    } catch (error) {
      this.#backlog = Buffer.from(bytes.subarray(from, to));
      // Half a line would look like damage once more lines follow it.
      ftruncateSync(this.#fd, this.#sizeBytes);
      throw error;
    }
    this.#sizeBytes += to - from;
    this.#backlog = undefined;
  }

  /** True when the file has outgrown what it says. */
  get needsCompaction(): boolean {
    return this.#sizeBytes > this.#compactAboveBytes;
  }

  /** Rewrites the file without what is superseded. A file with flaws is kept as it is: it is evidence. */
  compact(): void {
    this.#compactAboveBytes = 2 * this.#sizeBytes;
    const fold = parseAnchor(readFileSync(this.#path, 'utf8'));
    if (fold.flaws.length > 0) return;
    const content = serializeAnchor(fold);
    replaceFile(this.#path, content);
    const fresh = openForAppend(this.#path);
    closeSync(this.#fd);
    this.#fd = fresh;
    this.#sizeBytes = Buffer.byteLength(content);
    this.#compactAboveBytes = Math.max(MIN_COMPACTION_BYTES, 4 * this.#sizeBytes);
  }

  close(): void {
    closeSync(this.#fd);
  }
}
