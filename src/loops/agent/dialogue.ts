/** A conversation in the making: its messages, how long they are, and one digest over all of them. */
import { digest } from '../../journal/record.js';
import type { ModelMessage } from '../../protocol/model.js';

export class Dialogue {
  readonly messages: ModelMessage[] = [];
  /** Characters of all messages. */
  length = 0;
  private chained = '';
  /** What was said since the digest was last asked for. */
  private news: string[] = [];

  constructor(before: readonly ModelMessage[]) {
    for (const message of before) this.add(message);
  }

  /** Takes a message; it is never changed afterwards. */
  add(message: ModelMessage): void {
    const text = JSON.stringify(message);
    this.messages.push(message);
    this.length += text.length;
    this.news.push(text);
  }

  /** Changes with every message, and tells two conversations apart. Asked for once a round, it costs one hash a round. */
  get digest(): string {
    if (this.news.length > 0) this.chained = digest(`${this.chained}\n${this.news.join('\n')}`);
    this.news = [];
    return this.chained;
  }
}
