/**
 * The inbox of a session: signals that no wait has received. A signal is addressed to one root (a top-level call) or to
 * none; an unaddressed one may be received by any root. The time of a lookup depends neither on signals of other names
 * nor on those of other roots.
 */
import type { Entry } from '../protocol/entry.js';

/** Stands for the root of unaddressed signals. No root has an empty key. */
const UNADDRESSED = '';

/** Signals by delivery id and, oldest first, by root and name. */
export class Inbox {
  private readonly byId = new Map<string, Entry>();
  private readonly byRoot = new Map<string, Map<string, Entry[]>>();

  /** All signals, oldest first. */
  get all(): readonly Entry[] {
    return [...this.byId.values()].sort((a, b) => a.seq - b.seq);
  }

  /** Returns the oldest signal of a name that this root may receive; undefined if there is none. */
  oldest(name: string, root: string): Entry | undefined {
    const unaddressed = this.byRoot.get(UNADDRESSED)?.get(name)?.[0];
    const addressed = this.byRoot.get(root)?.get(name)?.[0];
    if (unaddressed === undefined || addressed === undefined) return unaddressed ?? addressed;
    return /* guard: oldest-signal-first */ addressed.seq < unaddressed.seq ? addressed : unaddressed;
  }

  /** Adds a signal. A signal that is returned to the inbox gets its former position. */
  put(signal: Entry): void {
    const { key, name = '', seq, turnId } = signal;
    const root = /* guard: addressed-signal-kept-for-its-root */ turnId ?? UNADDRESSED;
    const byName = this.byRoot.get(root) ?? new Map<string, Entry[]>();
    const list = byName.get(name) ?? [];
    const previous = list.findLastIndex((other) => other.seq < seq);
    list.splice(/* guard: returned-signal-keeps-its-place */ previous + 1, 0, signal);
    byName.set(name, list);
    this.byRoot.set(root, byName);
    this.byId.set(key, signal);
  }

  /** Removes a signal by its delivery id and returns it; undefined if it is not in the inbox. */
  take(id: string): Entry | undefined {
    const signal = this.byId.get(id);
    if (signal === undefined) return undefined;
    this.byId.delete(id);
    const { name = '', turnId = UNADDRESSED } = signal;
    const byName = this.byRoot.get(turnId);
    const list = byName?.get(name) ?? [];
    list.splice(list.indexOf(signal), 1);
    if (list.length === 0) byName?.delete(name);
    if (byName?.size === 0) this.byRoot.delete(turnId);
    return signal;
  }

  /** Removes the signals that are addressed to a root, which no wait can receive any more. */
  dropAddressedTo(root: string): void {
    for (const list of this.byRoot.get(root)?.values() ?? []) for (const { key } of list) this.byId.delete(key);
    this.byRoot.delete(root);
  }
}
