/**
 * Follows the entries of a session, whichever process writes them: first the recorded ones, then new ones as they are
 * written, also before they are stored. The entries are polled, so a follower survives the exit of a process and
 * continues with the next one that runs a turn of the session.
 */
import type { Clock } from '../journal/clock.js';
import type { Entry } from '../protocol/entry.js';

/** The entries of a session from a position on. */
export interface EntryTail {
  readonly stored: readonly Entry[];
  /** The entries after the stored ones that a running turn has written. */
  readonly unstored: readonly Entry[];
}

/** New entries of a followed session. */
export interface FollowedEntries {
  readonly entries: readonly Entry[];
  /**
   * True if entries that were followed before were never stored, because their process died, and others are in their
   * place. `entries` are then all entries of the session from the first one.
   */
  readonly isRestart: boolean;
}

const MIN_POLL_MS = 50;
const MAX_POLL_MS = 500;

/** The position of a follower in a session. */
class EntryCursor {
  private nextStoredSeq = 0;
  /** The entries that were followed and are not stored yet. */
  private unstored: readonly Entry[] = [];

  private readonly readTail: (from: number) => Promise<EntryTail>;

  constructor(readTail: (from: number) => Promise<EntryTail>) {
    this.readTail = readTail;
  }

  async next(): Promise<FollowedEntries> {
    const tail = await this.readTail(this.nextStoredSeq);
    const known = [...tail.stored, ...tail.unstored];
    const isRestart = this.unstored.some((entry, index) => isOther(known[index], entry));
    const { stored, unstored } = isRestart ? await this.readTail(0) : tail;
    const entries = isRestart ? [...stored, ...unstored] : known.slice(this.unstored.length);
    this.nextStoredSeq = (isRestart ? 0 : this.nextStoredSeq) + stored.length;
    // A process that does not answer in time still has the entries that it sent before.
    const isShorter = !isRestart && known.length < this.unstored.length;
    this.unstored = isShorter ? this.unstored.slice(stored.length) : unstored;
    return { entries, isRestart };
  }
}

function isOther(entry: Entry | undefined, followed: Entry): boolean {
  if (entry === undefined) return false;
  return entry.type !== followed.type || entry.key !== followed.key || entry.at !== followed.at;
}

/** Yields new entries, and an empty list whenever there are none, until the signal aborts. */
export async function* followEntries(
  readTail: (from: number) => Promise<EntryTail>,
  clock: Pick<Clock, 'sleep'>,
  signal: AbortSignal,
): AsyncGenerator<FollowedEntries> {
  const cursor = new EntryCursor(readTail);
  for (let pollMs = MIN_POLL_MS; !signal.aborted; ) {
    const followed = await cursor.next();
    yield followed;
    pollMs = followed.entries.length > 0 ? MIN_POLL_MS : Math.min(MAX_POLL_MS, pollMs * 2);
    await clock.sleep(pollMs, signal).catch(() => undefined);
  }
}
