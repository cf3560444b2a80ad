/**
 * The turns that this process currently runs for callers of the library. Answers and signals continue a turn in the
 * background; its result is awaited through here. Results are not kept: the journal has them.
 */
import { LoopError } from '../../base/errors.js';
import type { Host } from '../../host/host.js';
import type { TurnResult } from '../../protocol/trace.js';

/** The runs of one runtime, by turn id. */
export class TurnRuns {
  private readonly host: Host;
  private readonly running = new Map<string, Promise<TurnResult>>();

  constructor(host: Host) {
    this.host = host;
  }

  /** True if the turn runs here. */
  isRunning(turnId: string): boolean {
    return this.running.has(turnId);
  }

  /** Tracks the run of a turn until it settles. */
  track(turnId: string, run: Promise<TurnResult>): Promise<TurnResult> {
    this.running.set(turnId, run);
    const forget = (): void => {
      if (this.running.get(turnId) === run) this.running.delete(turnId);
    };
    run.then(forget, forget);
    return run;
  }

  /**
   * Continues a turn in the background. A turn that runs here is continued again if it pauses, because it may have
   * paused just before the fact that continues it was recorded.
   */
  continue(turnId: string): void {
    const resume = (): Promise<TurnResult> => this.resumeOrWait(turnId);
    const running = this.running.get(turnId);
    const run =
      running === undefined
        ? resume()
        : running.then((result) => (result.status === 'paused' ? resume() : result), resume);
    // An error reaches the callers of `result`.
    this.track(turnId, run).catch(() => undefined);
  }

  /** Returns the result of a turn when it ends or pauses; see `Turn.result`. */
  async result(turnId: string): Promise<TurnResult> {
    const running = this.running.get(turnId);
    if (running !== undefined) return running;
    const resting = await this.host.waiter.restingResult(turnId);
    return resting ?? this.track(turnId, this.resumeOrWait(turnId));
  }

  /** Resolves when all runs have settled. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.running.values());
  }

  /**
   * Continues a turn here or, if its loop is not registered in this process, waits for the process that does. A process
   * warning says so, because there may be no such process.
   */
  private async resumeOrWait(turnId: string): Promise<TurnResult> {
    try {
      return await this.host.resume(turnId);
    } catch (thrown) {
      if (!(thrown instanceof LoopError) || thrown.code !== 'LOOP_NOT_FOUND') throw thrown;
      process.emitWarning(
        `${thrown.message} The turn ${turnId} waits for a process that has it. To continue it here, pass the loop to createRondo({ loops }).`,
        'RondoWarning',
      );
      return this.host.waiter.waitForResult(turnId);
    }
  }
}
