/** Formats times. The text of the last second is cached: formatting is costly, and most times are close to the one before. */

/** The last time that a Date can represent. */
const MAX_TIME = 8.64e15;

let lastSecond = Number.NaN;
/** The text of that second, up to the point before its milliseconds. */
let lastText = '';

/**
 * Returns a time, in milliseconds since the epoch, as ISO 8601 in UTC. Throws a RangeError if a Date cannot represent
 * it.
 */
export function isoTime(at: number): string {
  const whole = Math.trunc(at);
  const second = Math.floor(whole / 1000);
  if (second !== lastSecond || whole > MAX_TIME) {
    lastText = new Date(whole).toISOString().slice(0, -4);
    lastSecond = second;
  }
  return `${lastText}${String(whole - 1000 * second).padStart(3, '0')}Z`;
}
