/**
 * The calls of a session that have begun and not ended, each with the call around it. What ended is forgotten, so this
 * is never larger than what is open. It does not know why calls end: whoever folds entries tells it.
 */

export interface OpenCall {
  readonly key: string;
  readonly name: string;
  readonly parent: this | undefined;
  /** How many calls directly below it are open. */
  openChildren: number;
  /** How many effects of its own are asked for and not settled. */
  openEffects: number;
}

export class OpenCalls<C extends OpenCall> {
  private readonly calls = new Map<string, C>();
  private readonly roots: C[] = [];

  /** The root that began last, of those that are open. */
  latestRoot(): C | undefined {
    return this.roots.at(-1);
  }

  /** The open call of this very key. */
  get(key: string): C | undefined {
    return this.calls.get(key);
  }

  /** The innermost open call that this key is a step of. */
  enclosing(key: string): C | undefined {
    for (let end = key.lastIndexOf('/'); end > 0; end = key.lastIndexOf('/', end - 1)) {
      const found = this.calls.get(key.slice(0, end));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  add(call: C): void {
    this.calls.set(call.key, call);
    if (call.parent === undefined) this.roots.push(call);
    else call.parent.openChildren += 1;
  }

  remove(call: C): void {
    this.calls.delete(call.key);
    if (call.parent === undefined) this.roots.splice(this.roots.lastIndexOf(call), 1);
    else call.parent.openChildren -= 1;
  }

  /** The open calls below a key but not below another, innermost first. */
  descendantsOf(key: string, but?: string): readonly C[] {
    const found: C[] = [];
    for (const call of this.calls.values()) {
      if (isDescendantKey(call.key, key) && (but === undefined || !isDescendantKey(call.key, but))) found.push(call);
    }
    return found.sort((a, b) => b.key.length - a.key.length);
  }
}

/** Whether one key is a step inside another, however deep. */
export function isDescendantKey(key: string, above: string): boolean {
  return key.length > above.length && key[above.length] === '/' && key.startsWith(above);
}

/** The key without its last step; empty for a root. */
export function parentKeyOf(key: string): string {
  const cut = key.lastIndexOf('/');
  return cut === -1 ? '' : key.slice(0, cut);
}

/** Compares keys of one turn by the place of their steps: parallel branches in the order of the calls, not of their speed. */
export function compareByStep(a: string, b: string): number {
  const [steps, others] = [a.split('/'), b.split('/')];
  for (let i = 1; i < Math.min(steps.length, others.length); i++) {
    const difference = Number(steps[i]) - Number(others[i]);
    if (difference) return difference;
  }
  return steps.length - others.length;
}
