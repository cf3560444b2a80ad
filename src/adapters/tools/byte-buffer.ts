/** Bytes as they arrive, in one buffer: many small pieces must not cost more than what they hold. */
export class ByteBuffer {
  private buffer = Buffer.alloc(0);
  private usedBytes = 0;

  get length(): number {
    return this.usedBytes;
  }

  append(piece: Uint8Array): void {
    const needed = this.usedBytes + piece.length;
    if (needed > this.buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.buffer.length));
      this.buffer.copy(larger, 0, 0, this.usedBytes);
      this.buffer = larger;
    }
    this.buffer.set(piece, this.usedBytes);
    this.usedBytes = needed;
  }

  /** Adds a piece and forgets all but about the last `count` bytes. */
  appendKeepingLast(piece: Uint8Array, count: number): void {
    this.append(piece.subarray(-count));
    if (this.usedBytes <= 2 * count) return;
    this.buffer.copyWithin(0, this.usedBytes - count, this.usedBytes);
    this.usedBytes = count;
  }

  toBuffer(): Buffer {
    return this.buffer.subarray(0, this.usedBytes);
  }
}
