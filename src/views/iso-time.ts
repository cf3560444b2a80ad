/** Formats times. The last result is cached: formatting is costly, and most events have the time of the one before. */

let lastTime = Number.NaN;
let lastText = '';

/**
 * Returns a time, in milliseconds since the epoch, as ISO 8601 in UTC. Throws a RangeError if a Date cannot represent
 * it.
 */
export function isoTime(at: number): string {
  if (at !== lastTime) {
    lastText = new Date(at).toISOString();
    lastTime = at;
  }
  return lastText;
}
