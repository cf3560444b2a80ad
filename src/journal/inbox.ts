/** The signals that no wait has taken: found by name, oldest first, however many of other names there are. */
import type { Entry } from '../protocol/entry.js';

export class Inbox {
  private readonly byId = new Map<string, Entry>();
  private readonly byName = new Map<string, Entry[]>();

  /** All of them, oldest first. */
  get all(): readonly Entry[] {
    return [...this.byId.values()].sort((a, b) => a.seq - b.seq);
  }

  /** The oldest of a name. */
  oldest(name: string): Entry | undefined {
    return this.byName.get(name)?.[0];
  }

  /** Adds a signal; one that is given back takes the place it had. */
  put(signal: Entry): void {
    const { key, name = '', seq } = signal;
    const list = this.byName.get(name) ?? [];
    const after = list.findLastIndex((other) => other.seq < seq);
    list.splice(/* guard: returned-signal-keeps-its-place */ after + 1, 0, signal);
    this.byName.set(name, list);
    this.byId.set(key, signal);
  }

  /** Takes a signal out by its delivery id. */
  take(id: string): Entry | undefined {
    const signal = this.byId.get(id);
    if (signal === undefined) return undefined;
    this.byId.delete(id);
    const { name = '' } = signal;
    const list = this.byName.get(name) ?? [];
    list.splice(list.indexOf(signal), 1);
    if (list.length === 0) this.byName.delete(name);
    return signal;
  }
}
