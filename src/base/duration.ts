/** Durations as text, such as `3 days` or `1h 30m`. Only units of a fixed length are accepted. */
import { LoopError } from './errors.js';

/** The units by their names, and their lengths in milliseconds. */
const UNITS: ReadonlyMap<string, number> = new Map(
  (
    [
      [['ms', 'millisecond', 'milliseconds'], 1],
      [['s', 'sec', 'secs', 'second', 'seconds'], 1000],
      [['m', 'min', 'mins', 'minute', 'minutes'], 60_000],
      [['h', 'hr', 'hrs', 'hour', 'hours'], 3_600_000],
      [['d', 'day', 'days'], 86_400_000],
      [['w', 'week', 'weeks'], 604_800_000],
    ] as const
  ).flatMap(([names, ms]) => names.map((name) => [name, ms] as const)),
);
const MAX_TEXT_CHARS = 100;
const PART = /\s*(\d{1,12})(?:\.(\d{1,6}))?\s*([a-z]+)\s*/giy;

/**
 * Returns a duration in milliseconds. A number is returned as it is; a text is one or more numbers with units, the
 * largest unit first. Throws VALUE_INVALID for any other text.
 *
 * @example durationMs('1 hour 30 minutes') // 5400000
 */
export function durationMs(duration: number | string): number {
  if (typeof duration !== 'string') return duration;
  const ms = duration.length > MAX_TEXT_CHARS ? undefined : parseParts(duration);
  if (ms !== undefined) return ms;
  const shown = JSON.stringify(duration.slice(0, MAX_TEXT_CHARS));
  throw new LoopError(
    'VALUE_INVALID',
    `${shown} is not a duration of whole milliseconds. Examples: '500 ms', '90s', '2h', '1 hour 30 minutes', '3 days', ` +
      "'2 weeks'. The units are ms, s, m, h, d and w, or their names; the largest comes first.",
  );
}

/** Returns the sum of the parts; undefined if the text is not a duration of whole milliseconds. */
function parseParts(text: string): number | undefined {
  let total = 0;
  let previousUnit = Number.POSITIVE_INFINITY;
  let end = 0;
  for (const [part, whole = '', fraction = '', name = ''] of text.matchAll(PART)) {
    const unit = UNITS.get(name.toLowerCase());
    if (unit === undefined || unit >= previousUnit) return undefined;
    // Integers only: the product of a decimal fraction would not be exact.
    const fractionMs = (Number(fraction) * unit) / 10 ** fraction.length;
    total += Number(whole) * unit + fractionMs;
    previousUnit = unit;
    end += part.length;
  }
  return end > 0 && end === text.length && Number.isSafeInteger(total) ? total : undefined;
}
