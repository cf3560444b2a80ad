/**
 * Interrupts the model calls of a turn that may not go on. A model that is silent, or that ignores its signal, must not
 * hold a turn beyond its running time or the expiry of its grant. No end of an interrupted call is recorded: it is made
 * again when the turn continues.
 */
import { withSignal } from '../../base/effect-context.js';
import { NotPerformed } from '../../base/errors.js';
import type { Clock } from '../../journal/clock.js';
import type { Effect } from '../../protocol/body.js';

/** A wall clock that was set forward is noticed after at most this many milliseconds. */
const MAX_SLEEP_MS = 60_000;

/** The interruption of one turn. */
export class Interruption {
  private readonly controller = new AbortController();
  /** Called at the interruption. A set, because a signal warns of many listeners. */
  private readonly listeners = new Set<() => void>();

  /** Ends all waits of `until`, and every later one. */
  interrupt(): void {
    this.controller.abort(new NotPerformed());
    for (const listener of this.listeners) listener();
  }

  /** Settles like `work`, or rejects with NotPerformed at the interruption. The work is not stopped. */
  until<T>(work: Promise<T> | T): Promise<T> {
    return new Promise((resolve, reject) => {
      const onInterrupt = (): void => reject(this.controller.signal.reason);
      // guard: silent-model-interrupted
      this.listeners.add(onInterrupt);
      if (this.controller.signal.aborted) onInterrupt();
      const settle = (end: () => void): void => {
        this.listeners.delete(onInterrupt);
        end();
      };
      Promise.resolve(work).then(
        (value) => settle(() => resolve(value)),
        (thrown) => settle(() => reject(thrown)),
      );
    });
  }

  /** Returns an effect that ends at the interruption, even if it ignores its signal, which aborts then too. */
  interruptible(effect: Effect): Effect {
    const perform: Effect['perform'] = async (input, context) => {
      const { signal } = this.controller;
      if (signal.aborted) throw signal.reason;
      return this.until(effect.perform(input, withSignal(context, AbortSignal.any([context.signal, signal]))));
    };
    return { ...effect, perform };
  }
}

/** Calls `onExpired` when the wall clock reaches a time, unless the signal aborts before. */
export async function whenExpired(
  clock: Clock,
  expiresAt: number,
  signal: AbortSignal,
  onExpired: () => void,
): Promise<void> {
  try {
    for (let rest = expiresAt - clock.now(); rest > 0; rest = expiresAt - clock.now())
      await clock.sleep(Math.min(rest, MAX_SLEEP_MS), signal);
  } catch {
    return;
  }
  onExpired();
}
