/** Points in time as texts: ISO 8601 with a time of day and an offset, such as `2030-01-31T12:00:00Z`. */
import { isCalendarDay } from './calendar-day.js';

/** Completes the message "must be …" for a text that is not accepted. */
export const ISO_TIME_DESCRIPTION = 'an ISO time that exists, such as 2030-01-31T12:00:00Z';

/** The texts that look like a point in time. The day may not exist. */
export const ISO_TIME_PATTERN = /^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;

/** Returns a time in milliseconds since the epoch; undefined for anything else than the text of a time that exists. */
export function parseIsoTime(value: unknown): number | undefined {
  if (typeof value !== 'string' || !ISO_TIME_PATTERN.test(value)) return undefined;
  const time = Date.parse(value);
  // guard: iso-time-on-an-existing-day
  if (!isCalendarDay(value.slice(0, 10))) return undefined;
  return Number.isNaN(time) ? undefined : time;
}
