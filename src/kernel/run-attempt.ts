/**
 * One attempt at a run. It counts strands: bodies that can still move by themselves. When the last one parks in a
 * wait, a doubt or a timer, nothing in this process can move the run any more, and the attempt ends as a pause.
 * An ended attempt never moves again: its bodies stay where they are, as if the process had died there.
 */

import { type Fault, LoopError } from '../base/errors.js';
import type { ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import { Lifetime } from './lifetime.js';

/** What a paused run waits for. */
export type PendingStep =
  | { readonly kind: 'signal'; readonly key: string; readonly name: string }
  | { readonly kind: 'doubt'; readonly key: string; readonly name: string; readonly input?: Json }
  | { readonly kind: 'timer'; readonly key: string; readonly until: number };

/** How a run ended, or why it did not. All of it is durable by the time it is returned. */
export type RunOutcome<O = unknown> =
  | { readonly status: 'ok'; readonly output: O }
  | { readonly status: 'error'; readonly error: ErrorRecord }
  | { readonly status: 'paused'; readonly pending: readonly PendingStep[] };

/** Whether a run stays for its timers or hands back a pause that names them. */
export type TimerMode = 'hold' | 'pause';

/** Whoever waits for the outcome, and how an outcome is made of an error. */
interface OutcomeReceiver {
  resolve(outcome: RunOutcome): void;
  reject(error: unknown): void;
  toOutcome(error: LoopError): RunOutcome;
}

interface ParkedWait {
  readonly pending: PendingStep;
  readonly unsubscribe: () => void;
}

/** A promise that never settles: how a body stops without seeing why. */
export function neverSettle(): Promise<never> {
  return new Promise(() => {});
}

export class RunAttempt {
  readonly lifetime: Lifetime = new Lifetime();
  isOver = false;
  private fault: Fault | undefined;
  private runnableCount = 1;
  private isPauseCheckQueued = false;
  private parkedWaits: Set<ParkedWait> | undefined;
  private readonly timerMode: TimerMode;
  private receiver: OutcomeReceiver | undefined;

  constructor(timers: TimerMode) {
    this.timerMode = timers;
  }

  /**
   * The root call's outcome, or what ended the attempt before it came to one. `failed` makes an outcome of a LoopError,
   * whether the call or the attempt itself ended with it.
   */
  outcome(call: Promise<unknown>, failed: (error: LoopError) => RunOutcome): Promise<RunOutcome> {
    return new Promise((resolve, reject) => {
      this.receiver = { resolve, reject, toOutcome: failed };
      if (this.fault !== undefined) reject(this.fault);
      call.then(
        (output) => resolve({ status: 'ok', output }),
        (error: unknown) => this.settleWithError(error),
      );
    });
  }

  /** Told once: what comes after the first end is of an attempt that is over. */
  private settleWithError(error: unknown): void {
    const { receiver } = this;
    this.receiver = undefined;
    try {
      if (error instanceof LoopError) receiver?.resolve(receiver.toOutcome(error));
      else receiver?.reject(error);
    } catch (broken) {
      receiver?.reject(broken);
    }
  }

  /** One strand becomes `count` strands. */
  fork(count: number): void {
    this.runnableCount += count - 1;
  }

  /** A strand is gone, and another one goes on in its place elsewhere. */
  removeRunnable(): void {
    this.runnableCount -= 1;
    if (this.runnableCount > 0 || this.isPauseCheckQueued) return;
    this.isPauseCheckQueued = true;
    setImmediate(() => this.checkForPause());
  }

  /** Throws what ended the attempt before it began. */
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

  /** Waits for something outside the run. `arm` says how to be woken and returns how to stop listening. */
  park<T>(pending: PendingStep, life: Lifetime, arm: (wake: (value: T) => void) => () => void): Promise<T> {
    if (this.isOver) return neverSettle();
    if (life.reason !== undefined) return Promise.reject(life.reason);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.parkedWaits?.delete(parked);
        this.runnableCount += 1;
        life.offEnd(cancel);
        parked.unsubscribe();
      };
      const cancel = (reason: LoopError): void => {
        leave();
        reject(reason);
      };
      const wake = (value: T): void => {
        if (!this.parkedWaits?.has(parked)) return;
        leave();
        resolve(value);
      };
      const parked: ParkedWait = { pending, unsubscribe: arm(wake) };
      this.parkedWaits ??= new Set();
      this.parkedWaits.add(parked);
      life.onEnd(cancel);
      this.removeRunnable();
    });
  }

  /** A strand that will not take its end for an answer stays where it is. */
  parkForever(): Promise<never> {
    this.removeRunnable();
    return neverSettle();
  }

  /**
   * Nothing moves by itself any more; only timers that are held can still wake the run. It is looked at after a turn of
   * the loop: by then a body that forgot to await a step has ended, which is an error and not a pause.
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
