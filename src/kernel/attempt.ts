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
export type Pending =
  | { readonly kind: 'signal'; readonly key: string; readonly name: string }
  | { readonly kind: 'doubt'; readonly key: string; readonly name: string; readonly input?: Json }
  | { readonly kind: 'timer'; readonly key: string; readonly until: number };

/** How a run ended, or why it did not. All of it is durable by the time it is returned. */
export type Outcome<O = unknown> =
  | { readonly status: 'ok'; readonly output: O }
  | { readonly status: 'error'; readonly error: ErrorRecord }
  | { readonly status: 'paused'; readonly pending: readonly Pending[] };

/** Whether a run stays for its timers or hands back a pause that names them. */
export type Timers = 'hold' | 'pause';

/** Whoever waits for the outcome, and how an outcome is made of an error. */
interface Asker {
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
  failed(error: LoopError): Outcome;
}

interface Parked {
  readonly pending: Pending;
  readonly disarm: () => void;
}

/** A promise that never settles: how a body stops without seeing why. */
export function stall(): Promise<never> {
  return new Promise(() => {});
}

export class Attempt {
  readonly life: Lifetime = new Lifetime();
  over = false;
  private fault: Fault | undefined;
  private strands = 1;
  private looking = false;
  private parked: Set<Parked> | undefined;
  private readonly timers: Timers;
  private asker: Asker | undefined;

  constructor(timers: Timers) {
    this.timers = timers;
  }

  /**
   * The root call's outcome, or what ended the attempt before it came to one. `failed` makes an outcome of a LoopError,
   * whether the call or the attempt itself ended with it.
   */
  outcome(call: Promise<unknown>, failed: (error: LoopError) => Outcome): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.asker = { resolve, reject, failed };
      if (this.fault !== undefined) reject(this.fault);
      call.then(
        (output) => resolve({ status: 'ok', output }),
        (error: unknown) => this.end(error),
      );
    });
  }

  /** Told once: what comes after the first end is of an attempt that is over. */
  private end(error: unknown): void {
    const { asker } = this;
    this.asker = undefined;
    try {
      if (error instanceof LoopError) asker?.resolve(asker.failed(error));
      else asker?.reject(error);
    } catch (broken) {
      asker?.reject(broken);
    }
  }

  /** One strand becomes `count` strands. */
  fork(count: number): void {
    this.strands += count - 1;
  }

  /** A strand is gone, and another one goes on in its place elsewhere. */
  leave(): void {
    this.strands -= 1;
    if (this.strands > 0 || this.looking) return;
    this.looking = true;
    setImmediate(() => this.look());
  }

  /** Throws what ended the attempt before it began. */
  check(): void {
    if (this.fault !== undefined) throw this.fault;
  }

  fail(fault: Fault): void {
    this.fault ??= fault;
    this.finish();
    this.end(fault);
  }

  finish(): void {
    this.over = true;
    for (const { disarm } of this.parked ?? []) disarm();
    this.parked = undefined;
  }

  /** Waits for something outside the run. `arm` says how to be woken and returns how to stop listening. */
  park<T>(pending: Pending, life: Lifetime, arm: (wake: (value: T) => void) => () => void): Promise<T> {
    if (this.over) return stall();
    if (life.reason !== undefined) return Promise.reject(life.reason);
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.parked?.delete(parked);
        this.strands += 1;
        life.unlisten(cancel);
        parked.disarm();
      };
      const cancel = (reason: LoopError): void => {
        leave();
        reject(reason);
      };
      const wake = (value: T): void => {
        if (!this.parked?.has(parked)) return;
        leave();
        resolve(value);
      };
      const parked: Parked = { pending, disarm: arm(wake) };
      this.parked ??= new Set();
      this.parked.add(parked);
      life.listen(cancel);
      this.leave();
    });
  }

  /** A strand that will not take its end for an answer stays where it is. */
  giveUp(): Promise<never> {
    this.leave();
    return stall();
  }

  /**
   * Nothing moves by itself any more; only timers that are held can still wake the run. It is looked at after a turn of
   * the loop: by then a body that forgot to await a step has ended, which is an error and not a pause.
   */
  private look(): void {
    this.looking = false;
    if (this.strands > 0 || this.over) return;
    if (this.life.reason !== undefined) {
      this.end(this.life.reason);
      return;
    }
    const pending = [...(this.parked ?? [])].map((parked) => parked.pending);
    if (this.timers === 'hold' && pending.some(({ kind }) => kind === 'timer')) return;
    this.finish();
    this.asker?.resolve({ status: 'paused', pending });
  }
}
