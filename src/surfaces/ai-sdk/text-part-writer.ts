/**
 * Writes the text or reasoning parts of one step. Live deltas and the journaled message produce the same parts: text
 * that was streamed is not emitted again, and text that was not streamed is emitted in full.
 */
import type { UiChunk } from './chunk.js';

/** Merges live deltas with journaled messages into parts of one kind. */
export class TextPartWriter {
  /** True if this step has emitted text. */
  hasText = false;
  private readonly kind: 'text' | 'reasoning';
  private readonly emit: (chunk: UiChunk) => void;
  private partCount = 0;
  private openPartId: string | undefined;
  /** Streamed text that no journaled message has covered yet. */
  private streamed = '';

  constructor(kind: 'text' | 'reasoning', emit: (chunk: UiChunk) => void) {
    this.kind = kind;
    this.emit = emit;
  }

  /** Appends a live delta. */
  appendDelta(text: string): void {
    this.streamed += text;
    this.emitDelta(text);
  }

  /** Completes the part with the journaled message: emits the text that was not streamed, and closes the part. */
  complete(text: string): void {
    const { streamed } = this;
    this.streamed = '';
    if (text.startsWith(streamed)) this.emitDelta(text.slice(streamed.length));
    else if (streamed.startsWith(text)) this.streamed = streamed.slice(text.length);
    // After a retried model call, the streamed text ends with the second reply. Chunks that were sent cannot be
    // withdrawn.
    else if (!streamed.endsWith(text)) {
      this.close();
      this.emitDelta(text);
    }
    this.close();
  }

  /** Ends the open part, if there is one. */
  close(): void {
    if (this.openPartId === undefined) return;
    this.emit({ type: `${this.kind}-end`, id: this.openPartId });
    this.openPartId = undefined;
  }

  /** Starts a new step without streamed text. */
  nextStep(): void {
    this.close();
    this.streamed = '';
    this.hasText = false;
  }

  private emitDelta(delta: string): void {
    if (delta === '') return;
    this.hasText = true;
    if (this.openPartId === undefined) {
      this.partCount += 1;
      this.openPartId = `${this.kind}-${this.partCount}`;
      this.emit({ type: `${this.kind}-start`, id: this.openPartId });
    }
    this.emit({ type: `${this.kind}-delta`, id: this.openPartId, delta });
  }
}
