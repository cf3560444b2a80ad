/**
 * Blobs that a client has put and that are not in the store yet. The next append of their session carries them to the
 * owner, so that entries and their blobs are stored together.
 */

type DigestAndText = readonly [digest: string, text: string];

/** The pending blobs of a client, by session and digest. */
export class PendingBlobs {
  private readonly sessions = new Map<string, Map<string, { readonly text: string; sent: boolean }>>();

  /** True if no blob is pending. */
  get isEmpty(): boolean {
    return this.sessions.size === 0;
  }

  /** Adds a blob for the next append of its session, unless it is already pending. */
  async add(session: string, digest: string, text: string): Promise<void> {
    const blobs = this.sessions.get(session) ?? new Map();
    this.sessions.set(session, blobs);
    if (!blobs.has(digest)) blobs.set(digest, { text, sent: false });
  }

  /** Returns the text of a pending blob; undefined if there is none. */
  get(session: string, digest: string): string | undefined {
    return this.sessions.get(session)?.get(digest)?.text;
  }

  /** Marks the unsent blobs of a session as sent and returns them, for an append to carry. */
  takeUnsent(session: string): readonly DigestAndText[] {
    const blobs = this.sessions.get(session);
    if (blobs === undefined) return [];
    const unsent: DigestAndText[] = [];
    for (const [digest, blob] of blobs) {
      if (blob.sent) continue;
      blob.sent = true;
      unsent.push([digest, blob.text]);
    }
    return unsent;
  }

  /** Discards blobs after the append that carried them has ended, successfully or not. */
  discard(session: string, carried: readonly DigestAndText[]): void {
    const blobs = this.sessions.get(session);
    if (blobs === undefined) return;
    for (const [digest] of carried) blobs.delete(digest);
    if (blobs.size === 0) this.sessions.delete(session);
  }
}
