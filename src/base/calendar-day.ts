/** Days as texts: `YYYY-MM-DD`, in UTC. */

/** Returns true for the text of a day that exists, such as `2026-02-28`. */
export function isCalendarDay(value: unknown): value is string {
  if (typeof value !== 'string' || !/^\d{4}-\d\d-\d\d$/.test(value)) return false;
  const time = Date.parse(`${value}T00:00:00Z`);
  // `Date.parse` may accept 30 February as 2 March.
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(value);
}
