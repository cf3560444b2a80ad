/**
 * The open calls of a session, each with its parent, and helpers for keys. Ended calls are removed, so memory is
 * bounded by the number of open calls. The view that folds the entries decides when a call ends.
 */

/** A call that has started and not ended. */
export interface OpenCall {
  readonly key: string;
  readonly name: string;
  readonly parent: this | undefined;
  /** The number of open calls directly below this one. */
  openChildren: number;
  /** The number of open effects of this call. */
  openEffects: number;
}

/** The open calls of a session, by key. */
export class OpenCalls<C extends OpenCall> {
  private readonly calls = new Map<string, C>();
  private readonly roots: C[] = [];

  /** Returns the open root call that started last; undefined if none is open. */
  latestRoot(): C | undefined {
    return this.roots.at(-1);
  }

  /** Returns the open call with this key. */
  get(key: string): C | undefined {
    return this.calls.get(key);
  }

  /**
   * Returns the innermost open call that contains this key, not counting a call with the key itself; undefined if there
   * is none.
   */
  enclosing(key: string): C | undefined {
    for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) {
      const call = this.calls.get(key.slice(0, end));
      if (call !== undefined) return call;
    }
    return undefined;
  }

  /** Adds a call that starts. */
  add(call: C): void {
    this.calls.set(call.key, call);
    if (call.parent === undefined) this.roots.push(call);
    else call.parent.openChildren += 1;
  }

  /** Removes a call that ends. */
  remove(call: C): void {
    this.calls.delete(call.key);
    if (call.parent === undefined) this.roots.splice(this.roots.lastIndexOf(call), 1);
    else call.parent.openChildren -= 1;
  }

  /** Returns the open calls below a key, except those below `exceptKey`, innermost first. */
  descendantsOf(key: string, exceptKey?: string): readonly C[] {
    const descendants: C[] = [];
    for (const call of this.calls.values()) {
      const isExcepted = exceptKey !== undefined && isDescendantKey(call.key, exceptKey);
      if (isDescendantKey(call.key, key) && !isExcepted) descendants.push(call);
    }
    return descendants.sort((a, b) => b.key.length - a.key.length);
  }
}

/** Returns true if a key is below another, at any depth. */
export function isDescendantKey(key: string, ancestor: string): boolean {
  return key.length > ancestor.length && key[ancestor.length] === '/' && key.startsWith(ancestor);
}

/** Returns the key without its last step; an empty string for a root key. */
export function parentKeyOf(key: string): string {
  const slash = key.lastIndexOf('/');
  return slash === -1 ? '' : key.slice(0, slash);
}

/** Compares keys of one turn by step numbers, so that parallel branches sort by position and not by speed. */
export function compareByStep(a: string, b: string): number {
  const [stepsA, stepsB] = [a.split('/'), b.split('/')];
  for (let i = 1; i < Math.min(stepsA.length, stepsB.length); i++) {
    const difference = Number(stepsA[i]) - Number(stepsB[i]);
    if (difference) return difference;
  }
  return stepsA.length - stepsB.length;
}
