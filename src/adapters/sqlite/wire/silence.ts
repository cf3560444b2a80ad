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
  /** When the oldest of what is waited for was asked, on the clock of `now`; undefined if nothing is any more. */
  since(): number | undefined;
  /** What the process is doing, as far as the system tells. */
  state(): ProcessState;
  /** It is silent for REPORT_MS and may only be busy. */
  report(state: ProcessState): void;
  /** It is given up: stopped for REPORT_MS, gone, or silent for too long. */
  giveUp(state: ProcessState): void;
}

/** Counts time in which this process could have heard an answer. */
export class ListeningTime {
  ms = 0;
  private last = 0;
  private timer: NodeJS.Timeout | undefined;

  start(tick: () => void = () => {}): void {
    if (this.timer !== undefined) return;
    this.ms = 0;
    this.last = performance.now();
    this.timer = setInterval(() => {
      const now = performance.now();
      this.ms += Math.min(now - this.last, 2 * TICK_MS);
      this.last = now;
      tick();
    }, TICK_MS).unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    this.ms = 0;
  }
}

export class Silence {
  private readonly options: SilenceOptions;
  private readonly time = new ListeningTime();
  private reported = false;

  constructor(options: SilenceOptions) {
    this.options = options;
  }

  /** The time in which an answer could have been heard since the first one was expected. */
  get now(): number {
    return this.time.ms;
  }

  /** An answer is expected. The clock stops by itself when none is any more. */
  start(): void {
    this.time.start(() => this.tick());
  }

  stop(): void {
    this.reported = false;
    this.time.stop();
  }

  private tick(): void {
    const since = this.options.since();
    if (since === undefined) return void this.stop();
    const ms = this.time.ms - since;
    if (ms < REPORT_MS) {
      this.reported = false;
      return;
    }
    const state = this.options.state();
    if (state === 'stopped' || state === 'gone' || ms >= GIVE_UP_MS) {
      this.stop();
      this.options.giveUp(state);
    } else if (!this.reported) {
      this.reported = true;
      this.options.report(state);
    }
  }
}
