/** The ports to time and randomness. Nothing below the adapters reads a clock, draws a number or creates an id otherwise. */

/** The two clocks of a process. */
export interface Clock {
  /** The wall clock, in milliseconds since the epoch. It can be set forward and back: use it for points in time, not for durations. */
  now(): number;
  /** The monotonic clock of this process, in milliseconds from an arbitrary start, possibly with fractions. Use it for durations. */
  elapsed(): number;
  /** Resolves when `ms` milliseconds of the monotonic clock have passed, never earlier. Rejects with the signal's reason when aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The source of ids and random numbers. */
export interface Ids {
  /** Returns a new unique id. */
  id(): string;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
}
