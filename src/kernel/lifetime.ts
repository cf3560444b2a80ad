/** A lifetime: the part of a run that is cancelled as one. Cheap to make, because every effect listens to one. */
import type { LoopError } from '../base/errors.js';

type Listener = (reason: LoopError) => void;

export class Lifetime {
  /** Why it ended; undefined while it lasts. */
  reason: LoopError | undefined;
  /** A branch that lost a race leaves no outcome of its own: the race's entry says it all. */
  lost = false;
  /** Signals that follow it and that nobody uses at present. */
  readonly idle: Following[] = [];
  private listeners: Set<Listener> | undefined;
  private readonly around: Lifetime | undefined;
  private readonly follow: Listener | undefined;

  constructor(around?: Lifetime) {
    this.around = around;
    this.follow = around && ((reason) => this.end(reason, around.lost));
    if (this.follow !== undefined) around?.listen(this.follow);
  }

  /** Stops following the lifetime around this one. */
  detach(): void {
    if (this.follow !== undefined) this.around?.unlisten(this.follow);
  }

  /** Tells the listener when the lifetime ends; at once if it has. */
  listen(listener: Listener): void {
    this.listeners ??= new Set();
    if (this.reason === undefined) this.listeners.add(listener);
    else listener(this.reason);
  }

  unlisten(listener: Listener): void {
    this.listeners?.delete(listener);
  }

  end(reason: LoopError, lost: boolean): void {
    this.detach();
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.lost = lost;
    const listeners = this.listeners ?? [];
    this.listeners = undefined;
    for (const listener of listeners) listener(reason);
  }

  /** New work is refused once the lifetime has ended. */
  check(): void {
    // guard: ended-lifetime-refuses-work
    if (this.reason !== undefined) throw this.reason;
  }

  /** The work's outcome, or the end of the lifetime, whichever is first. The work itself is not stopped. */
  bound<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.listen(reject);
      void work.then(resolve, reject).then(() => this.unlisten(reject));
    });
  }
}

/** An AbortSignal that follows a lifetime until it is released. */
export interface Following {
  readonly signal: AbortSignal;
  release(): void;
}

export function abortSignal(life: Lifetime): Following {
  const controller = new AbortController();
  const abort = (reason: LoopError): void => controller.abort(reason);
  life.listen(abort);
  return { signal: controller.signal, release: () => life.unlisten(abort) };
}
