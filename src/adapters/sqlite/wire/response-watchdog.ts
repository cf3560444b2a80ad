/**
 * Detects that another process does not answer. Time counts only while this process can receive: after its own event
 * loop was blocked, or the process was stopped, an answer may be waiting to be read.
 */
import type { ProcessState } from '../owner/process.js';

/** An unresponsive process is reported after this time; a stopped one is given up. */
export const REPORT_AFTER_MS = 5000;
/** An unresponsive process that is not stopped is given up after this time. */
const GIVE_UP_AFTER_MS = 8500;
const TICK_MS = 250;

/** Options of a `ResponseWatchdog`. */
interface ResponseWatchdogOptions {
  /**
   * Returns when the oldest pending request was sent, in milliseconds of listening time; undefined if none is pending.
   */
  oldestPendingMs(): number | undefined;
  /** Returns the state of the watched process. */
  processState(): ProcessState;
  /** Called once in each period without an answer, when it has lasted `REPORT_AFTER_MS`. The process may be busy. */
  onUnresponsive(state: ProcessState): void;
  /** Called when the process is given up: stopped or gone after `REPORT_AFTER_MS`, or silent for `GIVE_UP_AFTER_MS`. */
  onGiveUp(state: ProcessState): void;
}

/** Measures the time in which this process could have received an answer. A pause counts as two ticks at most. */
export class ListeningTime {
  /** The measured time since the start. */
  elapsedMs = 0;
  private lastTickAt = 0;
  private timer: NodeJS.Timeout | undefined;

  /** Starts the measurement and calls `tick` every `TICK_MS`. Does nothing if the measurement is running. */
  start(tick: () => void = () => {}): void {
    if (this.timer !== undefined) return;
    this.elapsedMs = 0;
    this.lastTickAt = performance.now();
    this.timer = setInterval(() => {
      const now = performance.now();
      this.elapsedMs += Math.min(now - this.lastTickAt, 2 * TICK_MS);
      this.lastTickAt = now;
      tick();
    }, TICK_MS).unref();
  }

  /** Stops and resets the measurement. */
  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.elapsedMs = 0;
  }
}

/** Watches one process for its answers. */
export class ResponseWatchdog {
  private readonly options: ResponseWatchdogOptions;
  private readonly listeningTime = new ListeningTime();
  private isReported = false;

  constructor(options: ResponseWatchdogOptions) {
    this.options = options;
  }

  /** The listening time since watching started; 0 while nothing is watched. */
  get elapsedMs(): number {
    return this.listeningTime.elapsedMs;
  }

  /** Starts watching, because an answer is expected. Watching stops when no request is pending. */
  start(): void {
    this.listeningTime.start(() => this.tick());
  }

  /** Stops watching. */
  stop(): void {
    this.isReported = false;
    this.listeningTime.stop();
  }

  private tick(): void {
    const sentAtMs = this.options.oldestPendingMs();
    if (sentAtMs === undefined) return void this.stop();
    const silentMs = this.listeningTime.elapsedMs - sentAtMs;
    if (silentMs < REPORT_AFTER_MS) {
      this.isReported = false;
      return;
    }
    const state = this.options.processState();
    if (state === 'stopped' || state === 'gone' || silentMs >= GIVE_UP_AFTER_MS) {
      this.stop();
      this.options.onGiveUp(state);
    } else if (!this.isReported) {
      this.isReported = true;
      this.options.onUnresponsive(state);
    }
  }
}
