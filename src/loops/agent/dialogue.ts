/** A conversation in the making: its messages, how long they are, and one digest over all of them. */
import { digest } from '../../journal/record.js';
import type { ModelMessage } from '../../protocol/model.js';

export class Dialogue {
  readonly messages: ModelMessage[] = [];
  /** Characters of all messages. */
  length = 0;
  /** Changes with every message, and tells two conversations apart. */
  digest = '';

  constructor(before: readonly ModelMessage[]) {
    for (const message of before) this.add(message);
  }

  /** Takes a message; it is never changed afterwards. */
  add(message: ModelMessage): void {
    const text = JSON.stringify(message);
    this.messages.push(message);
    this.length += text.length;
    this.digest = digest(`${this.digest}\n${text}`);
  }
}
