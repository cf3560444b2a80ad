/** The ports to time and chance. Nothing else in the rings reads a clock, draws a number or makes an id. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves at `until` or later, never before; rejects with the signal's reason when aborted. */
  sleep(until: number, signal: AbortSignal): Promise<void>;
}

export interface Ids {
  /** A new id, unlike any other. */
  id(): string;
  /** A number from 0 up to, not including, 1. */
  random(): number;
}
