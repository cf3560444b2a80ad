/** The messages of a session that came while something ran and that nobody has taken yet. */
import type { Entry } from '../protocol/entry.js';

/** What a message that comes in between is to do: be heard at the next round, or when there is an answer. */
export type MailName = 'steer' | 'queue';

export class Mailbox {
  private readonly waiting = new Map<string, MailName>();

  apply({ type, key, name, signal }: Entry): void {
    if (type === 'signal.received') {
      if (name === 'steer' || name === 'queue') this.waiting.set(key, name);
    } else if (type === 'wait.settled' && signal !== undefined) this.waiting.delete(signal);
  }

  count(name: MailName): number {
    if (this.waiting.size === 0) return 0;
    return [...this.waiting.values()].filter((other) => other === name).length;
  }
}
