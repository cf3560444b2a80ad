/** The messages of a session that came while something ran and that nobody has taken yet. */
import type { Entry } from '../protocol/entry.js';

/** What a message that comes in between is to do: be heard at the next round, or when there is an answer. */
export type MessageMode = 'steer' | 'queue';

export class MessageInbox {
  private readonly pending = new Map<string, MessageMode>();

  apply({ type, key, name, signalId }: Entry): void {
    if (type === 'signal.received') {
      if (name === 'steer' || name === 'queue') this.pending.set(key, name);
    } else if (type === 'wait.settled' && signalId !== undefined) this.pending.delete(signalId);
  }

  count(name: MessageMode): number {
    if (this.pending.size === 0) return 0;
    return [...this.pending.values()].filter((other) => other === name).length;
  }
}
