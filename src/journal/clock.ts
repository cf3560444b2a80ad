/** The ports to time and chance. Nothing else in the rings reads a clock, draws a number or makes an id. */
export interface Clock {
  /** The wall clock, in milliseconds since the epoch. It can be set forward and back: for points in time, not for durations. */
  now(): number;
  /** The monotonic clock of this process, in milliseconds from an arbitrary start; may have fractions. For durations. */
  elapsed(): number;
  /** Resolves when `ms` milliseconds of the monotonic clock have passed, never before; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export interface Ids {
  /** A new id, unlike any other. */
  id(): string;
  /** A number from 0 up to, not including, 1. */
  random(): number;
}
