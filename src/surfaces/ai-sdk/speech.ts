/**
 * What the model says in one step, as text or as thinking: pieces that come live and the finished message of the journal
 * make the same parts. What was streamed already is not said again, and what was not is said whole.
 */
import type { UiChunk } from './chunk.js';

export class Speech {
  /** Whether anything was said in this step. */
  spoke = false;
  private readonly kind: 'text' | 'reasoning';
  private readonly say: (chunk: UiChunk) => void;
  private count = 0;
  private open: string | undefined;
  /** What was streamed and no finished message has accounted for yet. */
  private streamed = '';

  constructor(kind: 'text' | 'reasoning', say: (chunk: UiChunk) => void) {
    this.kind = kind;
    this.say = say;
  }

  /** A piece that comes live. */
  piece(text: string): void {
    this.streamed += text;
    this.tell(text);
  }

  /** The finished message, as it was journaled. */
  whole(text: string): void {
    const { streamed } = this;
    this.streamed = '';
    if (text.startsWith(streamed)) this.tell(text.slice(streamed.length));
    else if (streamed.startsWith(text)) this.streamed = streamed.slice(text.length);
    // A reply that broke off and was asked for again: the second one is at the end, and what was shown stays shown.
    else if (!streamed.endsWith(text)) {
      this.close();
      this.tell(text);
    }
    this.close();
  }

  close(): void {
    if (this.open === undefined) return;
    this.say({ type: `${this.kind}-end`, id: this.open });
    this.open = undefined;
  }

  /** A new step: nothing of what follows was streamed before. */
  nextStep(): void {
    this.close();
    this.streamed = '';
    this.spoke = false;
  }

  private tell(delta: string): void {
    if (delta === '') return;
    this.spoke = true;
    if (this.open === undefined) {
      this.count += 1;
      this.open = `${this.kind}-${this.count}`;
      this.say({ type: `${this.kind}-start`, id: this.open });
    }
    this.say({ type: `${this.kind}-delta`, id: this.open, delta });
  }
}
