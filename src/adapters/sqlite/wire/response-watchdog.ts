/**
 * Notices that another process does not answer. Time counts only while this process can listen: after its own event loop was
 * blocked, or the process was stopped, an answer may be waiting to be read.
 */
import type { ProcessState } from '../owner/process.js';

/** When the process that does not answer is reported, and when it is given up. */
export const REPORT_AFTER_MS = 5000;
const GIVE_UP_AFTER_MS = 8500;
const TICK_MS = 250;

export interface ResponseWatchdogOptions {
  /** When the oldest of what is waited for was asked, on the clock of `now`; undefined if nothing is any more. */
  oldestPendingMs(): number | undefined;
  /** What the process is doing, as far as the system tells. */
  processState(): ProcessState;
  /** It is silent for REPORT_MS and may only be busy. */
  onUnresponsive(state: ProcessState): void;
  /** It is given up: stopped for REPORT_MS, gone, or silent for too long. */
  onGiveUp(state: ProcessState): void;
}

/** Counts time in which this process could have heard an answer. */
export class ListeningTime {
  elapsedMs = 0;
  private lastTickAt = 0;
  private timer: NodeJS.Timeout | undefined;

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

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.elapsedMs = 0;
  }
}

export class ResponseWatchdog {
  private readonly options: ResponseWatchdogOptions;
  private readonly listeningTime = new ListeningTime();
  private isReported = false;

  constructor(options: ResponseWatchdogOptions) {
    this.options = options;
  }

  /** The time in which an answer could have been heard since the first one was expected. */
  get elapsedMs(): number {
    return this.listeningTime.elapsedMs;
  }

  /** An answer is expected. The clock stops by itself when none is any more. */
  start(): void {
    this.listeningTime.start(() => this.tick());
  }

  stop(): void {
    this.isReported = false;
    this.listeningTime.stop();
  }

  private tick(): void {
    const since = this.options.oldestPendingMs();
    if (since === undefined) return void this.stop();
    const ms = this.listeningTime.elapsedMs - since;
    if (ms < REPORT_AFTER_MS) {
      this.isReported = false;
      return;
    }
    const state = this.options.processState();
    if (state === 'stopped' || state === 'gone' || ms >= GIVE_UP_AFTER_MS) {
      this.stop();
      this.options.onGiveUp(state);
    } else if (!this.isReported) {
      this.isReported = true;
      this.options.onUnresponsive(state);
    }
  }
}
