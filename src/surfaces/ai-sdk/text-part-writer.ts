/**
 * What the model says in one step, as text or as thinking: pieces that come live and the finished message of the journal
 * make the same parts. What was streamed already is not said again, and what was not is said whole.
 */
import type { UiChunk } from './chunk.js';

export class TextPartWriter {
  /** Whether anything was said in this step. */
  hasText = false;
  private readonly kind: 'text' | 'reasoning';
  private readonly emit: (chunk: UiChunk) => void;
  private partCount = 0;
  private openPartId: string | undefined;
  /** What was streamed and no finished message has accounted for yet. */
  private streamed = '';

  constructor(kind: 'text' | 'reasoning', say: (chunk: UiChunk) => void) {
    this.kind = kind;
    this.emit = say;
  }

  /** A piece that comes live. */
  appendDelta(text: string): void {
    this.streamed += text;
    this.emitDelta(text);
  }

  /** The finished message, as it was journaled. */
  complete(text: string): void {
    const { streamed } = this;
    this.streamed = '';
    if (text.startsWith(streamed)) this.emitDelta(text.slice(streamed.length));
    else if (streamed.startsWith(text)) this.streamed = streamed.slice(text.length);
    // A reply that broke off and was asked for again: the second one is at the end, and what was shown stays shown.
    else if (!streamed.endsWith(text)) {
      this.close();
      this.emitDelta(text);
    }
    this.close();
  }

  close(): void {
    if (this.openPartId === undefined) return;
    this.emit({ type: `${this.kind}-end`, id: this.openPartId });
    this.openPartId = undefined;
  }

  /** A new step: nothing of what follows was streamed before. */
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
