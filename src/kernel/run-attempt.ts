/**
 * One attempt at a run. It counts the branches that can still continue by themselves. When the last one parks at a
 * signal, an effect in doubt or a timer, nothing in this process can continue the run, and the attempt ends as paused.
 * After its end no body of the attempt continues: each stays suspended, as if the process had died there.
 */

import { type Fault, LoopError } from '../base/errors.js';
import type { PendingStep, RunOutcome, TimerMode } from '../protocol/session.js';
import { Lifetime } from './lifetime.js';

/** Settles the promise of the outcome, and converts an error to an outcome. */
interface OutcomeReceiver {
  resolve(outcome: RunOutcome): void;
  reject(error: unknown): void;
  toOutcome(error: LoopError): RunOutcome;
}

interface ParkedWait {
  readonly pending: PendingStep;
  readonly unsubscribe: () => void;
}

/** Returns a promise that never settles. It suspends a body without an error that the body could catch. */
export function neverSettle(): Promise<never> {
  return new Promise(() => {});
}

/** The state of one attempt: its lifetime, its runnable branches, its parked waits and its outcome. */
export class RunAttempt {
  readonly lifetime: Lifetime = new Lifetime();
  isOver = false;
  private fault: Fault | undefined;
  private runnableCount = 1;
  private isPauseCheckQueued = false;
  private parkedWaits: Set<ParkedWait> | undefined;
  private readonly timerMode: TimerMode;
  private receiver: OutcomeReceiver | undefined;

  constructor(timerMode: TimerMode) {
    this.timerMode = timerMode;
  }

  /** Settles with the outcome of the root call, or with the error that ended the attempt first. */
  outcome(call: Promise<unknown>, toOutcome: (error: LoopError) => RunOutcome): Promise<RunOutcome> {
    return new Promise((resolve, reject) => {
      this.receiver = { resolve, reject, toOutcome };
      if (this.fault !== undefined) reject(this.fault);
      call.then(
        (output) => resolve({ status: 'ok', output }),
        (error: unknown) => this.settleWithError(error),
      );
    });
  }

  /** Settles the outcome once: errors after the first one belong to an attempt that has ended. */
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

  /** Replaces one runnable branch by `count` branches. */
  fork(count: number): void {
    this.runnableCount += count - 1;
  }

  /** Removes a runnable branch: it has parked, or it has ended while others of its group continue. */
  removeRunnable(): void {
    this.runnableCount -= 1;
    if (this.runnableCount > 0 || this.isPauseCheckQueued) return;
    this.isPauseCheckQueued = true;
    setImmediate(() => this.checkForPause());
  }

  /** Throws the fault that ended the attempt before its body started. */
  throwIfFailed(): void {
    if (this.fault !== undefined) throw this.fault;
  }

  fail(fault: Fault): void {
    this.fault ??= fault;
    this.finish();
    this.settleWithError(fault);
  }

  finish(): void {
    this.isOver = true;
    for (const { unsubscribe } of this.parkedWaits ?? []) unsubscribe();
    this.parkedWaits = undefined;
  }

  /** Waits for something outside of the run. `subscribe` arranges for `wake` to be called, and returns its undo. */
  park<T>(pending: PendingStep, lifetime: Lifetime, subscribe: (wake: (value: T) => void) => () => void): Promise<T> {
    if (this.isOver) return neverSettle();
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

  /** Suspends a branch for good, without a pending step: its body ignores that its lifetime has ended. */
  parkForever(): Promise<never> {
    this.removeRunnable();
    return neverSettle();
  }

  /**
   * Ends the attempt if no branch is runnable; in `hold` mode a pending timer keeps it alive. It runs one turn of the
   * event loop later: a body that did not await a step has ended by this point, which is an error and not a pause.
   */
  private checkForPause(): void {
    this.isPauseCheckQueued = false;
    if (this.runnableCount > 0 || this.isOver) return;
    if (this.lifetime.reason !== undefined) {
      this.settleWithError(this.lifetime.reason);
      return;
    }
    const pending = [...(this.parkedWaits ?? [])].map((parked) => parked.pending);
    if (this.timerMode === 'hold' && pending.some(({ kind }) => kind === 'timer')) return;
    this.finish();
    this.receiver?.resolve({ status: 'paused', pending });
  }
}
