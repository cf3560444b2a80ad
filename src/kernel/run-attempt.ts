/**
 * One attempt at a run. A run has one or more branches: concurrent executions of loop bodies. A branch parks when it
 * waits for a signal, a timer or the resolution of an effect in doubt. When the last branch has parked, the attempt
 * ends as paused, unless timers hold it. After its end no body continues: each stays suspended, as if the process had
 * died there.
 */

import { Fault, LoopError } from '../base/errors.js';
import { Lifetime } from '../base/lifetime.js';
import { neverSettles } from '../base/microtasks.js';
import type { Clock } from '../journal/clock.js';
import type { PendingStep, RunOutcome, RunStop, TimerMode } from '../protocol/session.js';

/** The callbacks that settle the promise of the outcome, and the conversion of an error to an outcome. */
interface OutcomeReceiver {
  resolve(outcome: RunOutcome): void;
  reject(error: unknown): void;
  toOutcome(error: LoopError): RunOutcome;
}

interface ParkedWait {
  readonly pending: PendingStep;
  readonly unsubscribe: () => void;
}

/** The state of one attempt: its lifetime, its runnable branches, its parked waits and its outcome. */
export class RunAttempt {
  /** Ends when the run is cancelled. */
  readonly lifetime: Lifetime = new Lifetime();
  /** True once the attempt has ended. */
  isOver = false;
  /** The fault that ended it. */
  fault: Fault | undefined;
  private runnableCount = 1;
  private isPauseCheckQueued = false;
  private parkedWaits: Set<ParkedWait> | undefined;
  private readonly timerMode: TimerMode;
  private readonly clock: Clock;
  private receiver: OutcomeReceiver | undefined;
  /** Why the attempt was stopped; undefined if it was not. */
  stopped: RunStop | undefined;

  constructor(timerMode: TimerMode, clock: Clock) {
    this.timerMode = timerMode;
    this.clock = clock;
  }

  /**
   * Waits for the end of the attempt: the root call ends, the run pauses, or `fail` is called. Resolves for every
   * outcome of the run, also for a LoopError; rejects for any other error.
   */
  outcome(call: Promise<unknown>, toOutcome: (error: LoopError) => RunOutcome): Promise<RunOutcome> {
    return new Promise((resolve, reject) => {
      this.receiver = { resolve, reject, toOutcome };
      if (this.fault !== undefined) reject(this.fault);
      if (this.stopped !== undefined) resolve({ status: 'stopped', stop: this.stopped });
      call.then(
        (output) => resolve({ status: 'ok', output }),
        (error: unknown) => this.settleWithError(error),
      );
    });
  }

  /** Settles the outcome with the first error. Later errors are ignored. */
  private settleWithError(error: unknown): void {
    const { receiver } = this;
    this.receiver = undefined;
    try {
      if (error instanceof LoopError) receiver?.resolve(receiver.toOutcome(error));
      else receiver?.reject(error);
    } catch (conversionError) {
      receiver?.reject(conversionError);
    }
  }

  /** Counts `count` runnable branches in place of one: a branch starts a group of branches and waits for them. */
  fork(count: number): void {
    this.runnableCount += count - 1;
  }

  /**
   * Counts one runnable branch less: it waits, or it has ended before the other branches of its group. The last one
   * queues a pause check.
   */
  removeRunnable(): void {
    this.runnableCount -= 1;
    if (this.runnableCount > 0 || this.isPauseCheckQueued) return;
    this.isPauseCheckQueued = true;
    setImmediate(() => this.checkForPause());
  }

  /** Throws the fault of `fail`, if it was called. Call it before the body starts. */
  throwIfFailed(): void {
    if (this.fault !== undefined) throw this.fault;
  }

  /** Ends the attempt: with a fault of the runtime, which rejects its outcome, or with the error of a cancelled root. */
  fail(error: Fault | LoopError): void {
    if (error instanceof Fault) this.fault ??= error;
    this.finish();
    this.settleWithError(error);
  }

  /** Ends the attempt as stopped. No body continues, and none notices it. Call it once. */
  stop(stop: RunStop): void {
    this.stopped = stop;
    this.finish();
    this.receiver?.resolve({ status: 'stopped', stop });
  }

  /** Ends the attempt: every wait is unsubscribed and stays pending. Does not settle the outcome. */
  finish(): void {
    this.isOver = true;
    for (const { unsubscribe } of this.parkedWaits ?? []) unsubscribe();
    this.parkedWaits = undefined;
  }

  /**
   * Waits for an event outside of the run. Rejects when the lifetime ends; never settles once the attempt is over.
   * `subscribe` arranges a call of `wake` and returns a function that unsubscribes.
   */
  park<T>(pending: PendingStep, lifetime: Lifetime, subscribe: (wake: (value: T) => void) => () => void): Promise<T> {
    if (this.isOver) return neverSettles();
    if (lifetime.reason !== undefined) return Promise.reject(lifetime.reason);
    return new Promise((resolve, reject) => {
      const unpark = (): void => {
        this.parkedWaits?.delete(parked);
        this.runnableCount += 1;
        lifetime.offEnd(cancel);
        parked.unsubscribe();
      };
      const cancel = (reason: LoopError): void => {
        unpark();
        reject(reason);
      };
      const wake = (value: T): void => {
        if (!this.parkedWaits?.has(parked)) return;
        unpark();
        resolve(value);
      };
      const parked: ParkedWait = { pending, unsubscribe: subscribe(wake) };
      this.parkedWaits ??= new Set();
      this.parkedWaits.add(parked);
      lifetime.onEnd(cancel);
      this.removeRunnable();
    });
  }

  /**
   * Suspends a branch forever. Used for a body that ignores a cancellation: it catches every error and starts more
   * steps.
   */
  parkForever(): Promise<never> {
    this.removeRunnable();
    return neverSettles();
  }

  /**
   * Ends the attempt if no branch is runnable: with the error if it is cancelled, as paused otherwise. In `hold` mode a
   * pending timer keeps it alive. The check runs one iteration of the event loop after the last branch has parked, so
   * that a body that returns without awaiting its steps fails with an error first.
   */
  private checkForPause(): void {
    this.isPauseCheckQueued = false;
    if (this.runnableCount > 0 || this.isOver) return;
    if (this.lifetime.reason !== undefined) {
      this.settleWithError(this.lifetime.reason);
      return;
    }
    const pending = [...(this.parkedWaits ?? [])].map((parked) => parked.pending);
    if (this.timerMode !== 'pause' && pending.some((step) => step.kind === 'timer' && this.isHeld(step.until))) return;
    this.finish();
    this.receiver?.resolve({ status: 'paused', pending });
  }

  private isHeld(until: number): boolean {
    return this.timerMode === 'hold' || until - this.clock.now() <= Number(this.timerMode);
  }
}
