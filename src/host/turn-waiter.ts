/** Waits for turns that other processes run or will continue, without running them. */
import type { Clock } from '../journal/clock.js';
import type { TurnResult, TurnStatus } from '../protocol/trace.js';
import { sessionIdOf } from './turn-result.js';
import { untilClosed } from './until-closed.js';

/** How often a turn that no process runs is checked, in milliseconds. */
const POLL_MS = 250;

interface TurnWaiterDeps {
  readonly clock: Clock;
  /** Returns the signal that is aborted when the host is closed. A wait then ends with SESSION_CLOSED. */
  readonly closing: () => AbortSignal;
  status(turnId: string): Promise<TurnStatus>;
  /** Returns the result of a turn that has ended or is paused; undefined for any other. */
  result(turnId: string): Promise<TurnResult | undefined>;
  /** Resolves when the process that runs the turn has finished with it or has exited. */
  followTurn(sessionId: string, turnId: string): Promise<void>;
}

/** Waits for the results of turns. */
export class TurnWaiter {
  private readonly deps: TurnWaiterDeps;

  constructor(deps: TurnWaiterDeps) {
    this.deps = deps;
  }

  /**
   * Waits while a process runs the turn. Returns the result of a turn that has then ended or paused; undefined if it was
   * interrupted. Throws TURN_NOT_FOUND.
   */
  async restingResult(turnId: string): Promise<TurnResult | undefined> {
    const { status, result, followTurn, closing } = this.deps;
    while ((await status(turnId)).status === 'running')
      await untilClosed(followTurn(sessionIdOf(turnId), turnId), closing());
    return result(turnId);
  }

  /** Waits until some process has ended or paused the turn, and returns its result. Throws TURN_NOT_FOUND. */
  async waitForResult(turnId: string): Promise<TurnResult> {
    const { clock, closing } = this.deps;
    for (;;) {
      const result = await this.restingResult(turnId);
      if (result !== undefined) return result;
      await untilClosed(clock.sleep(POLL_MS, closing()), closing());
    }
  }
}
