/** Large values of a client that no acknowledged append has carried to the owner yet. */

type DigestAndText = readonly [digest: string, text: string];

export class PendingBlobs {
  readonly #sessions = new Map<string, Map<string, { readonly text: string; sent: boolean }>>();

  get isEmpty(): boolean {
    return this.#sessions.size === 0;
  }

  async add(session: string, digest: string, text: string): Promise<void> {
    const blobs = this.#sessions.get(session) ?? new Map();
    this.#sessions.set(session, blobs);
    if (!blobs.has(digest)) blobs.set(digest, { text, sent: false });
  }

  get(session: string, digest: string): string | undefined {
    return this.#sessions.get(session)?.get(digest)?.text;
  }

  /** What an append of this session has to carry; values that an earlier one carries are left out. */
  takeUnsent(session: string): readonly DigestAndText[] {
    const blobs = this.#sessions.get(session);
    if (blobs === undefined) return [];
    const taken: DigestAndText[] = [];
    for (const [digest, blob] of blobs) {
      if (blob.sent) continue;
      blob.sent = true;
      taken.push([digest, blob.text]);
    }
    return taken;
  }

  /** The append that carried them has ended. */
  discard(session: string, carried: readonly DigestAndText[]): void {
    const blobs = this.#sessions.get(session);
    if (blobs === undefined) return;
    for (const [digest] of carried) blobs.delete(digest);
    if (blobs.size === 0) this.#sessions.delete(session);
  }
}
