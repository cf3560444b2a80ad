/**
 * The inbox of a session: signals that no wait has received. The time of a lookup by name does not depend on signals of
 * other names.
 */
import type { Entry } from '../protocol/entry.js';

/** Signals by delivery id and, oldest first, by name. */
export class Inbox {
  private readonly byId = new Map<string, Entry>();
  private readonly byName = new Map<string, Entry[]>();

  /** All signals, oldest first. */
  get all(): readonly Entry[] {
    return [...this.byId.values()].sort((a, b) => a.seq - b.seq);
  }

  /** Returns the oldest signal of a name; undefined if there is none. */
  oldest(name: string): Entry | undefined {
    return this.byName.get(name)?.[0];
  }

  /** Adds a signal. A signal that is returned to the inbox gets its former position. */
  put(signal: Entry): void {
    const { key, name = '', seq } = signal;
    const list = this.byName.get(name) ?? [];
    const previous = list.findLastIndex((other) => other.seq < seq);
    list.splice(/* guard: returned-signal-keeps-its-place */ previous + 1, 0, signal);
    this.byName.set(name, list);
    this.byId.set(key, signal);
  }

  /** Removes a signal by its delivery id and returns it; undefined if it is not in the inbox. */
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
