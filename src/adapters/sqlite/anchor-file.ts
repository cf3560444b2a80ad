/**
 * The anchor: an append-only file next to the database that records where the hash chain of each session ends. SQLite
 * silently drops the end of a damaged WAL; the anchor makes that loss detectable. Invariants: a line is written after
 * its COMMIT and before any operation of the commit is acknowledged, so the anchor never names an uncommitted entry.
 * Every line has a checksum, and commit numbers have no gaps. Apart from appends, the file only changes as a whole
 * (temporary file, sync, rename).
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

/** The end of a session's chain, as the anchor records it. */
export interface AnchoredHead {
  /** The number of the session, which is never reused. */
  readonly sid: number;
  /** The sequence number of the next entry. */
  readonly next: number;
  /** The first characters of the head's hash; see `hashPrefixOf`. */
  readonly hashPrefix: string;
  /** The number of the commit that wrote the head. */
  readonly commitNumber: number;
  /** When that commit happened, in milliseconds since the epoch. */
  readonly committedAt: number;
}

/** The content of an anchor file, folded over all of its lines. */
export interface AnchorState {
  /** The heads of all sessions, by name. */
  readonly heads: Map<string, AnchoredHead>;
  /** The number of the last commit. */
  lastCommitNumber: number;
  /** When the last commit happened, in milliseconds since the epoch. */
  lastCommittedAt: number;
  /** The highest sid ever assigned, so that none is assigned twice. */
  highestSid: number;
  /** Reasons why the file may be incomplete. A torn line at the end is not one. */
  readonly flaws: string[];
}

const ANCHOR_FORMAT = 'rondo.anchor.v1';
/** While the store is open, smaller files are not compacted. */
const MIN_COMPACTION_BYTES = 1 << 20;
/** Larger files are not read. Enough for more than two million sessions. */
const MAX_ANCHOR_BYTES = 1 << 28;
const HEADS_PER_LINE = 500;

/** Returns the part of a hash that the anchor stores. */
export function hashPrefixOf(hash: string): string {
  return hash.slice(0, 16);
}

/** Applies the line of one commit: a removal as `- name`, a head as `sid next hash name`. */
function applyCommitLine(state: AnchorState, line: AnchorLineReader): void {
  const commit = line.readNumber();
  const at = line.readNumber();
  if (state.lastCommitNumber > 0 && commit !== state.lastCommitNumber + 1)
    state.flaws.push(`commit ${commit} follows commit ${state.lastCommitNumber}`);
  state.lastCommitNumber = Math.max(state.lastCommitNumber, commit);
  state.lastCommittedAt = at;
  while (line.hasMoreFields) {
    if (line.skipIfNext('- ')) {
      state.heads.delete(line.readField());
      continue;
    }
    const sid = line.readNumber();
    const next = line.readNumber();
    const head = line.readWord();
    state.heads.set(line.readField(), { sid, next, hashPrefix: head, commitNumber: commit, committedAt: at });
    state.highestSid = Math.max(state.highestSid, sid);
  }
}

/** Applies a line of compacted heads and returns the number of sessions on it. */
function applyHeadsLine(state: AnchorState, line: AnchorLineReader): number {
  let count = 0;
  for (; line.hasMoreFields; count++) {
    const sid = line.readNumber();
    const next = line.readNumber();
    const head = line.readWord();
    const commit = line.readNumber();
    const at = line.readNumber();
    state.heads.set(line.readField(), { sid, next, hashPrefix: head, commitNumber: commit, committedAt: at });
  }
  return count;
}

/** Applies the first line and returns the number of sessions that the compacted lines must have. */
function applyHeaderLine(state: AnchorState, line: AnchorLineReader): number {
  state.lastCommitNumber = line.readNumber();
  state.lastCommittedAt = line.readNumber();
  state.highestSid = line.readNumber();
  return line.readNumber();
}

/** Parses the text of an anchor file. Never throws: problems are listed in `flaws`. */
export function parseAnchor(content: string): AnchorState {
  const state: AnchorState = { heads: new Map(), lastCommitNumber: 0, lastCommittedAt: 0, highestSid: 0, flaws: [] };
  const line = new AnchorLineReader(content);
  let expectedSessions: number | undefined;
  let damagedLines: number[] = [];
  let sessions = 0;
  for (let number = 1; line.nextLine(); number++) {
    if (!line.verifyChecksum()) {
      damagedLines.push(number);
      continue;
    }
    // A damaged line at the end of the file is a torn write that was never acknowledged, so it is not a flaw.
    for (const earlier of damagedLines) state.flaws.push(`line ${earlier} is damaged`);
    damagedLines = [];
    if (line.skipIfNext('commit\t')) applyCommitLine(state, line);
    else if (line.skipIfNext('keep\t')) sessions += applyHeadsLine(state, line);
    else if (number === 1 && line.skipIfNext(`${ANCHOR_FORMAT}\t`)) expectedSessions = applyHeaderLine(state, line);
    else state.flaws.push(`line ${number} is not one of an anchor`);
  }
  if (expectedSessions === undefined) state.flaws.push('its first line is damaged');
  else if (sessions !== expectedSessions)
    state.flaws.push(`${expectedSessions - sessions} of ${expectedSessions} sessions were cut off`);
  return state;
}

/**
 * Reads an anchor file; undefined if there is none. A file that is too large is not read, which is listed as a flaw.
 */
export function readAnchorFile(path: string): AnchorState | undefined {
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  if (size === undefined) return undefined;
  if (size <= MAX_ANCHOR_BYTES) return parseAnchor(readFileSync(path, 'utf8'));
  return { ...parseAnchor(''), flaws: [`it has ${size} bytes, more than an anchor can have`] };
}

/** Returns the compacted text of an anchor. */
function serializeAnchor(state: AnchorState): string {
  const { lastCommitNumber, lastCommittedAt, highestSid, heads } = state;
  const lines = [formatLine([ANCHOR_FORMAT, lastCommitNumber, lastCommittedAt, highestSid, heads.size].join('\t'))];
  const fields = Array.from(
    heads,
    ([name, head]) => `${head.sid} ${head.next} ${head.hashPrefix} ${head.commitNumber} ${head.committedAt} ${name}`,
  );
  for (let i = 0; i < fields.length; i += HEADS_PER_LINE)
    lines.push(formatLine(['keep', ...fields.slice(i, i + HEADS_PER_LINE)].join('\t')));
  return lines.join('');
}

/** Replaces a file atomically. The file and its directory are synced. */
function replaceFile(path: string, content: string): void {
  const temporaryPath = `${path}.new`;
  rmSync(temporaryPath, { force: true });
  writeNewFile(temporaryPath, content, { flush: true });
  renameSync(temporaryPath, path);
  // Windows cannot sync a directory.
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

/** The anchor file of an open store. */
export class AnchorFile {
  private readonly path: string;
  private fd: number;
  private sizeBytes: number;
  private compactAboveBytes: number;
  /** Lines that could not be written, for example because the disk was full. They are written before the next line. */
  private backlog: Buffer | undefined;

  /**
   * Replaces the file by this state and opens it. "keep" opens an existing file unchanged, to preserve it as evidence.
   */
  constructor(path: string, state: AnchorState, mode: 'replace' | 'keep' = 'replace') {
    this.path = path;
    const existingBytes = mode === 'keep' ? statSync(path, { throwIfNoEntry: false })?.size : undefined;
    const content = serializeAnchor(state);
    if (existingBytes === undefined) replaceFile(path, content);
    this.fd = openForAppend(path);
    this.sizeBytes = existingBytes ?? Buffer.byteLength(content);
    this.compactAboveBytes = Math.max(MIN_COMPACTION_BYTES, 4 * this.sizeBytes);
  }

  /** Appends the line of one commit. On failure, throws the system error and keeps the line for the next call. */
  appendCommit(commit: number, at: number, heads: Iterable<SessionHead | undefined>, removed: Iterable<string>): void {
    let fields = `commit\t${commit}\t${at}`;
    for (const name of removed) fields += `\t- ${name}`;
    for (const head of heads)
      if (head !== undefined) fields += `\t${head.sid} ${head.next} ${hashPrefixOf(head.hash)} ${head.name}`;
    const line = encodeLine(fields);
    this.write(this.backlog === undefined ? line : prependBacklog(this.backlog, line));
  }

  /** Writes a range of bytes completely, or removes what was written of it, keeps it as the backlog and throws. */
  private write({ bytes, from, to }: ByteRange): void {
    try {
      for (let at = from; at < to; ) at += writeSync(this.fd, bytes, at, to - at);
    } catch (error) {
      this.backlog = Buffer.from(bytes.subarray(from, to));
      // A partial line followed by further lines would count as damage.
      ftruncateSync(this.fd, this.sizeBytes);
      throw error;
    }
    this.sizeBytes += to - from;
    this.backlog = undefined;
  }

  /** True if the file has grown far beyond its size after the last compaction. */
  get needsCompaction(): boolean {
    return this.sizeBytes > this.compactAboveBytes;
  }

  /** Rewrites the file without superseded lines. A file with flaws is preserved as evidence. */
  compact(): void {
    this.compactAboveBytes = 2 * this.sizeBytes;
    const state = parseAnchor(readFileSync(this.path, 'utf8'));
    if (state.flaws.length > 0) return;
    const content = serializeAnchor(state);
    replaceFile(this.path, content);
    const newFd = openForAppend(this.path);
    closeSync(this.fd);
    this.fd = newFd;
    this.sizeBytes = Buffer.byteLength(content);
    this.compactAboveBytes = Math.max(MIN_COMPACTION_BYTES, 4 * this.sizeBytes);
  }

  /** Closes the file. */
  close(): void {
    closeSync(this.fd);
  }
}
