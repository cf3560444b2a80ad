/** A lifetime: the part of a run that is cancelled as one. Cheap to make, because every effect listens to one. */
import type { LoopError } from '../journal/errors.js';

type Listener = (reason: LoopError) => void;

export class Lifetime {
  /** Why it ended; undefined while it lasts. */
  reason: LoopError | undefined;
  /** A branch that lost a race leaves no outcome of its own: the race's entry says it all. */
  lost = false;
  private listeners: Set<Listener> | undefined;
  /** Stops following the lifetime around this one. */
  readonly detach: () => void;

  constructor(around?: Lifetime) {
    const follow = (reason: LoopError): void => this.end(reason, around?.lost ?? false);
    this.detach = () => around?.unlisten(follow);
    if (around?.reason !== undefined) follow(around.reason);
    else around?.listen(follow);
  }

  listen(listener: Listener): void {
    this.listeners ??= new Set();
    this.listeners.add(listener);
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
    if (this.reason !== undefined) throw this.reason;
  }

  /** The work's outcome, or the end of the lifetime, whichever is first. The work itself is not stopped. */
  bound<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.reason === undefined) this.listen(reject);
      else reject(this.reason);
      const leave = (): void => this.unlisten(reject);
      work.then(
        (value) => {
          leave();
          resolve(value);
        },
        (error: unknown) => {
          leave();
          reject(error);
        },
      );
    });
  }
}

/** An AbortSignal that follows a lifetime. */
export function abortSignal(life: Lifetime): { readonly signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const abort = (reason: LoopError): void => controller.abort(reason);
  if (life.reason === undefined) life.listen(abort);
  else controller.abort(life.reason);
  return { signal: controller.signal, release: () => life.unlisten(abort) };
}
