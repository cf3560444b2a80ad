/** The delay between attempts, for every kind of retry. */

/** How delays grow from attempt to attempt. */
interface Backoff {
  /** The delay after the first attempt, in milliseconds. */
  readonly initialMs: number;
  /** The factor by which each delay exceeds the one before. */
  readonly factor: number;
  readonly maxMs: number;
  /** The largest share of a delay that is subtracted at random, from 0 to 1. */
  readonly jitter: number;
}

/**
 * Returns the delay after a failed attempt, in whole milliseconds. `attempt` counts from 1; `random` is between 0 and 1.
 */
export function backoffMs({ initialMs, factor, maxMs, jitter }: Backoff, attempt: number, random: number): number {
  // 0 * Infinity is NaN, so a delay of zero is handled separately.
  const grown = initialMs === 0 ? 0 : Math.min(initialMs * factor ** (attempt - 1), maxMs);
  return Math.round(grown * (1 - jitter * random));
}
