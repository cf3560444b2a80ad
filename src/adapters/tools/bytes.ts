/** Bytes as they arrive, in one buffer: many small pieces must not cost more than what they hold. */
export class Bytes {
  private buffer = Buffer.alloc(0);
  private used = 0;

  get length(): number {
    return this.used;
  }

  add(piece: Uint8Array): void {
    const needed = this.used + piece.length;
    if (needed > this.buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.buffer.length));
      this.buffer.copy(larger, 0, 0, this.used);
      this.buffer = larger;
    }
    this.buffer.set(piece, this.used);
    this.used = needed;
  }

  /** Adds a piece and forgets all but about the last `count` bytes. */
  roll(piece: Uint8Array, count: number): void {
    this.add(piece.subarray(-count));
    if (this.used <= 2 * count) return;
    this.buffer.copyWithin(0, this.used - count, this.used);
    this.used = count;
  }

  all(): Buffer {
    return this.buffer.subarray(0, this.used);
  }
}
