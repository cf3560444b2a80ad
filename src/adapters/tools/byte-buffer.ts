/** A growing byte buffer. */

/** Collects chunks in one buffer, which doubles when it is full, so that many small chunks need little extra memory. */
export class ByteBuffer {
  private buffer = Buffer.alloc(0);
  private usedBytes = 0;

  /** The number of collected bytes. */
  get length(): number {
    return this.usedBytes;
  }

  /** Appends a chunk. */
  append(chunk: Uint8Array): void {
    const neededBytes = this.usedBytes + chunk.length;
    if (neededBytes > this.buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(neededBytes, 2 * this.buffer.length));
      this.buffer.copy(larger, 0, 0, this.usedBytes);
      this.buffer = larger;
    }
    this.buffer.set(chunk, this.usedBytes);
    this.usedBytes = neededBytes;
  }

  /** Appends a chunk and discards old bytes. The buffer keeps at least the last `count` and at most twice as many. */
  appendKeepingLast(chunk: Uint8Array, count: number): void {
    this.append(chunk.subarray(-count));
    if (this.usedBytes <= 2 * count) return;
    this.buffer.copyWithin(0, this.usedBytes - count, this.usedBytes);
    this.usedBytes = count;
  }

  /** Returns the bytes without copying them. They are valid until the next append. */
  toBuffer(): Buffer {
    return this.buffer.subarray(0, this.usedBytes);
  }
}
