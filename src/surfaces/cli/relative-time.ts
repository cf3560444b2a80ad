/** Formats points in time for people: how long ago they are. JSON output has ISO 8601 times instead. */

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** A time that is longer ago is shown as a date. */
const MAX_RELATIVE_MS = 60 * DAY_MS;

/**
 * Formats an ISO 8601 time relative to `now`, in milliseconds since the epoch: `just now`, `12 s ago`, `3 min ago`,
 * `5 h ago`, `2 d ago`, or the date if it is more than 60 days ago or in the future.
 */
export function relativeTime(iso: string, now: number): string {
  const agoMs = now - Date.parse(iso);
  if (!(agoMs > -5 * SECOND_MS && agoMs < MAX_RELATIVE_MS)) return iso.slice(0, 10);
  if (agoMs < 5 * SECOND_MS) return 'just now';
  if (agoMs < MINUTE_MS) return `${Math.floor(agoMs / SECOND_MS)} s ago`;
  if (agoMs < HOUR_MS) return `${Math.floor(agoMs / MINUTE_MS)} min ago`;
  if (agoMs < 2 * DAY_MS) return `${Math.floor(agoMs / HOUR_MS)} h ago`;
  return `${Math.floor(agoMs / DAY_MS)} d ago`;
}

/** Formats an ISO 8601 time to the second: `2026-11-17 14:32:15 UTC`. */
export function timeToSecond(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/** Formats an ISO 8601 time to the second, with how long ago it is: `2026-11-17 14:32:15 UTC (3 min ago)`. */
export function timeWithAge(iso: string, now: number): string {
  return `${timeToSecond(iso)} (${relativeTime(iso, now)})`;
}
