/** The unread messages of a session: signals named `steer` or `queue` that no agent has received yet. */
import type { Entry } from '../protocol/entry.js';

/** When the agent reads a message: at its next round (`steer`), or after its answer (`queue`). */
export type MessageMode = 'steer' | 'queue';

/** Counts the unread messages of a session. */
export class MessageInbox {
  private readonly pending = new Map<string, MessageMode>();

  /** Applies the next entry of the session. */
  apply({ type, key, name, signalId }: Entry): void {
    if (type === 'signal.received') {
      if (name === 'steer' || name === 'queue') this.pending.set(key, name);
    } else if (type === 'wait.settled' && signalId !== undefined) this.pending.delete(signalId);
  }

  /** Returns the number of unread messages of a mode. */
  count(mode: MessageMode): number {
    if (this.pending.size === 0) return 0;
    return [...this.pending.values()].filter((other) => other === mode).length;
  }
}
