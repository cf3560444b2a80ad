/** How calls and groups of a session are nested, for the limits of a grant: the depth of calls and the width of groups. */

import type { Entry } from '../protocol/entry.js';

/** The nesting of a step. */
interface Nesting {
  /** How many calls below the root contain the step. */
  readonly depth: number;
  /** The number of branches of the widest group around the step; 1 without a group. */
  readonly fanOut: number;
}

/** Folds the calls and groups of a session. */
export class CallNesting {
  private readonly calls = new Set<string>();
  /** The number of branches of each group, by key. */
  private readonly groups = new Map<string, number>();

  constructor(entries: readonly Entry[] = []) {
    for (const entry of entries) this.apply(entry);
  }

  /** Applies the next entry of the session. */
  apply({ type, key, value }: Entry): void {
    if (type === 'call.started') this.calls.add(key);
    else if (type === 'call.completed' || type === 'call.errored') this.calls.delete(key);
    else if (type === 'group.opened') this.groups.set(key, typeof value === 'number' ? value : 1);
  }

  /** Returns the nesting of an effect. The call of a leaf effect need not be recorded yet. */
  at(effectKey: string): Nesting {
    let calls = 0;
    let fanOut = 1;
    let isDirectParent = true;
    for (let key = parentOf(effectKey); key !== undefined; key = parentOf(key)) {
      const parent = parentOf(key);
      const isBranch = parent !== undefined && this.groups.has(parent);
      if (this.calls.has(key) || (isDirectParent && !isBranch)) calls += 1;
      fanOut = Math.max(fanOut, this.groups.get(key) ?? 1);
      isDirectParent = false;
    }
    return { depth: Math.max(0, calls - 1), fanOut };
  }
}

function parentOf(key: string): string | undefined {
  const end = key.lastIndexOf('/');
  return end > 0 ? key.slice(0, end) : undefined;
}
