/**
 * The ports to time and randomness. The kernel, layers and loops read clocks and create ids only through them, so that
 * a test can control both.
 */

/** The two clocks of a process. */
export interface Clock {
  /** The wall clock, in milliseconds since the epoch. It can be set back: do not use it for durations. */
  now(): number;
  /** The monotonic clock of this process, in milliseconds from an arbitrary start. Use it for durations. */
  elapsed(): number;
  /** Resolves once `ms` milliseconds of the monotonic clock have passed; rejects with the reason of an abort. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The source of ids and random numbers. */
export interface Ids {
  /** Returns a new unique id. */
  id(): string;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
}
