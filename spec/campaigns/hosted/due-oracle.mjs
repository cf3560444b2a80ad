// Which times are due, found without the code under test: every minute is compared with what a clock in the zone shows.

const MINUTE_MS = 60_000;

/**
 * Returns the due times of a schedule after `from`, up to `to`. Of cron expressions, only lists of minutes and hours and
 * `* * * * * *` are understood. An interval is due at its start as well.
 * @param {{ cron?: string, zone?: string, everyMs?: number }} schedule @param {number} from @param {number} to
 */
export function dueTimesOf({ cron, zone, everyMs }, from, to) {
  if (everyMs !== undefined)
    return Array.from({ length: Math.floor((to - from) / everyMs) + 1 }, (_, index) => from + index * everyMs);
  if (cron === '* * * * * *') {
    const first = Math.floor(from / 1000) + 1;
    return Array.from({ length: Math.max(0, Math.floor(to / 1000) - first + 1) }, (_, index) => (first + index) * 1000);
  }
  const [minutes = '', hours = '', ...rest] = (cron ?? '').split(' ');
  if (rest.join(' ') !== '* * *') throw new TypeError(`The oracle does not understand "${cron}".`);
  const matches = (/** @type {string} */ list, /** @type {number} */ value) =>
    list.split(',').some((item) => item === '*' || Number(item) === value);
  const isTimeOfDay = /^\d+ \d+ /.test(cron ?? '');
  const due = [];
  for (let time = (Math.floor(from / MINUTE_MS) + 1) * MINUTE_MS; time <= to; time += MINUTE_MS) {
    const { hour, minute, day } = shownAt(zone ?? 'UTC', time);
    const before = shownAt(zone ?? 'UTC', time - MINUTE_MS);
    const minutesBefore = before.hour * 60 + before.minute;
    const shown = hour * 60 + minute;
    const asked = Number(hours) * 60 + Number(minutes);
    // A time of day in a skipped hour is due at its end.
    const isSkippedOver = isTimeOfDay && day === before.day && minutesBefore < asked && asked < shown;
    if ((matches(minutes, minute) && matches(hours, hour)) || isSkippedOver) due.push(time);
  }
  return due;
}

/** What a clock in the zone shows. @param {string} zone @param {number} time */
function shownAt(zone, time) {
  const text = formatOf(zone).format(time);
  const [, day = '', hour = '', minute = ''] = /(\d+\/\d+\/\d+), (\d+):(\d+)/.exec(text) ?? [];
  return { day, hour: Number(hour), minute: Number(minute) };
}

/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/** @param {string} zone */
function formatOf(zone) {
  const known = formats.get(zone);
  const format =
    known ??
    new Intl.DateTimeFormat('en-GB', { timeZone: zone, dateStyle: 'short', timeStyle: 'short', hourCycle: 'h23' });
  formats.set(zone, format);
  return format;
}
