/** Lifetimes: a run, and each branch of a race, has one. Everything in a lifetime is cancelled together. */
import type { LoopError } from './errors.js';

type EndListener = (reason: LoopError) => void;

/** The lifetime of a run or of one branch of a race. It ends at most once and never starts again. */
export class Lifetime {
  /** Why the lifetime ended; undefined until then. */
  reason: LoopError | undefined;
  /** True if it ended because its branch lost a race. Such a branch records no end: the entry of the race covers it. */
  hasLostRace = false;
  /** Signals that follow this lifetime and are free for the next effect. */
  readonly idleSignals: LifetimeSignal[] = [];
  private listeners: Set<EndListener> | undefined;
  private readonly parent: Lifetime | undefined;
  private readonly onParentEnd: EndListener | undefined;

  constructor(parent?: Lifetime) {
    this.parent = parent;
    this.onParentEnd = parent && ((reason) => this.end(reason, parent.hasLostRace));
    if (this.onParentEnd !== undefined) parent?.onEnd(this.onParentEnd);
  }

  /** Stops following the parent: the end of the parent no longer ends this lifetime. */
  detach(): void {
    if (this.onParentEnd !== undefined) this.parent?.offEnd(this.onParentEnd);
  }

  /** Calls the listener when the lifetime ends, or at once if it has ended. */
  onEnd(listener: EndListener): void {
    this.listeners ??= new Set();
    if (this.reason === undefined) this.listeners.add(listener);
    else listener(this.reason);
  }

  /** Removes a listener of `onEnd`. */
  offEnd(listener: EndListener): void {
    this.listeners?.delete(listener);
  }

  /** Ends the lifetime and calls its listeners. A second call changes nothing. */
  end(reason: LoopError, hasLostRace: boolean): void {
    this.detach();
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.hasLostRace = hasLostRace;
    const listeners = this.listeners ?? [];
    this.listeners = undefined;
    for (const listener of listeners) listener(reason);
  }

  /** Throws the reason if the lifetime has ended. Call it before new work starts. */
  throwIfEnded(): void {
    // guard: ended-lifetime-refuses-work
    if (this.reason !== undefined) throw this.reason;
  }

  /**
   * Settles like `work`, or rejects with the reason when the lifetime ends first. The work itself is not stopped.
   * `onSettled` is called when the work settles, in either case.
   */
  raceWithEnd<T>(work: Promise<T>, onSettled?: () => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.onEnd(reject);
      const settled = (): void => {
        this.offEnd(reject);
        onSettled?.();
      };
      work.then(
        (value) => {
          settled();
          resolve(value);
        },
        (thrown) => {
          settled();
          reject(thrown);
        },
      );
    });
  }
}

/** An AbortSignal that follows a lifetime until it is released. */
export interface LifetimeSignal {
  readonly signal: AbortSignal;
  /** Stops following the lifetime. */
  release(): void;
}

/** Creates a signal that is aborted with the reason of the lifetime's end. */
export function createLifetimeSignal(lifetime: Lifetime): LifetimeSignal {
  const controller = new AbortController();
  const abort = (reason: LoopError): void => controller.abort(reason);
  lifetime.onEnd(abort);
  return { signal: controller.signal, release: () => lifetime.offEnd(abort) };
}
