/**
 * Notices that another process does not answer. Time counts only while this process can listen: after its own event loop was
 * blocked, or the process was stopped, an answer may be waiting to be read.
 */
import type { ProcessState } from '../owner/process.js';

/** When the process that does not answer is reported, and when it is given up. */
export const REPORT_MS = 5000;
const GIVE_UP_MS = 8500;
const TICK_MS = 250;

export interface SilenceOptions {
  /** What the process is doing, as far as the system tells. */
  state(): ProcessState;
  /** It is silent for REPORT_MS and may only be busy. */
  report(state: ProcessState): void;
  /** It is given up: stopped for REPORT_MS, gone, or silent for too long. */
  giveUp(state: ProcessState): void;
}

export class Silence {
  private readonly options: SilenceOptions;
  private timer: NodeJS.Timeout | undefined;
  private last = 0;
  private silentMs = 0;
  private reported = false;

  constructor(options: SilenceOptions) {
    this.options = options;
  }

  /** An answer is expected. */
  start(): void {
    if (this.timer !== undefined) return;
    this.heard();
    this.last = performance.now();
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  /** Something was received. */
  heard(): void {
    this.silentMs = 0;
    this.reported = false;
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private tick(): void {
    const now = performance.now();
    this.silentMs += Math.min(now - this.last, 2 * TICK_MS);
    this.last = now;
    if (this.silentMs < REPORT_MS) return;
    const state = this.options.state();
    if (state === 'stopped' || state === 'gone' || this.silentMs >= GIVE_UP_MS) {
      this.stop();
      this.options.giveUp(state);
    } else if (!this.reported) {
      this.reported = true;
      this.options.report(state);
    }
  }
}
