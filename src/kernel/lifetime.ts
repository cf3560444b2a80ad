/** A lifetime: the part of a run that is cancelled as one. Cheap to make, because every effect listens to one. */
import type { LoopError } from '../base/errors.js';

type EndListener = (reason: LoopError) => void;

export class Lifetime {
  /** Why it ended; undefined while it lasts. */
  reason: LoopError | undefined;
  /** A branch that lost a race leaves no outcome of its own: the race's entry says it all. */
  hasLostRace = false;
  /** Signals that follow it and that nobody uses at present. */
  readonly idleSignals: LifetimeSignal[] = [];
  private listeners: Set<EndListener> | undefined;
  private readonly parent: Lifetime | undefined;
  private readonly onParentEnd: EndListener | undefined;

  constructor(around?: Lifetime) {
    this.parent = around;
    this.onParentEnd = around && ((reason) => this.end(reason, around.hasLostRace));
    if (this.onParentEnd !== undefined) around?.onEnd(this.onParentEnd);
  }

  /** Stops following the lifetime around this one. */
  detach(): void {
    if (this.onParentEnd !== undefined) this.parent?.offEnd(this.onParentEnd);
  }

  /** Tells the listener when the lifetime ends; at once if it has. */
  onEnd(listener: EndListener): void {
    this.listeners ??= new Set();
    if (this.reason === undefined) this.listeners.add(listener);
    else listener(this.reason);
  }

  offEnd(listener: EndListener): void {
    this.listeners?.delete(listener);
  }

  end(reason: LoopError, lost: boolean): void {
    this.detach();
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.hasLostRace = lost;
    const listeners = this.listeners ?? [];
    this.listeners = undefined;
    for (const listener of listeners) listener(reason);
  }

  /** New work is refused once the lifetime has ended. */
  throwIfEnded(): void {
    // guard: ended-lifetime-refuses-work
    if (this.reason !== undefined) throw this.reason;
  }

  /** The work's outcome, or the end of the lifetime, whichever is first. The work itself is not stopped. */
  raceWithEnd<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.onEnd(reject);
      void work.then(resolve, reject).then(() => this.offEnd(reject));
    });
  }
}

/** An AbortSignal that follows a lifetime until it is released. */
export interface LifetimeSignal {
  readonly signal: AbortSignal;
  release(): void;
}

export function createLifetimeSignal(life: Lifetime): LifetimeSignal {
  const controller = new AbortController();
  const abort = (reason: LoopError): void => controller.abort(reason);
  life.onEnd(abort);
  return { signal: controller.signal, release: () => life.offEnd(abort) };
}
