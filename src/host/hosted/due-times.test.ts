// The due times of cron and interval schedules, also across daylight saving time, compared with a walk over all minutes.

import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { nextDueTime } from './due-times.js';

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;

/** The due times of a cron expression after an ISO time, `count` of them, as ISO times without seconds. */
function dueTimes(cron: string, zone: string, after: string, count: number): string[] {
  const times: string[] = [];
  let time = Date.parse(after);
  for (let i = 0; i < count; i++) {
    time = nextDueTime({ cron, zone }, time, 0) ?? Number.NaN;
    times.push(new Date(time).toISOString().slice(0, 16));
  }
  return times;
}

/** ISO times from `from` on, in steps of some minutes. */
function every(minutes: number, from: string, count: number): string[] {
  const start = Date.parse(`${from}Z`);
  return Array.from({ length: count }, (_, i) => new Date(start + i * minutes * MINUTE).toISOString().slice(0, 16));
}

const skipped: readonly [cron: string, zone: string, after: string, expected: readonly string[]][] = [
  // 02:30 does not exist on 29 March: the clock goes from 02:00 to 03:00, at 01:00 UTC.
  [
    '30 2 * * *',
    'Europe/Berlin',
    '2026-03-27T12:00Z',
    ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30', '2026-03-31T00:30'],
  ],
  [
    '30 2 * * *',
    'America/New_York',
    '2026-03-07T00:00Z',
    ['2026-03-07T07:30', '2026-03-08T07:00', '2026-03-09T06:30', '2026-03-10T06:30'],
  ],
  // From 02:00 to 02:30.
  [
    '15 2 * * *',
    'Australia/Lord_Howe',
    '2026-10-02T00:00Z',
    ['2026-10-02T15:45', '2026-10-03T15:30', '2026-10-04T15:15', '2026-10-05T15:15'],
  ],
  // Midnight itself is skipped.
  ['0 0 * * *', 'America/Havana', '2026-03-07T12:00Z', ['2026-03-08T05:00', '2026-03-09T04:00']],
  // Several times of day: those that do not exist are left out.
  ['*/20 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-30T00:00', '2026-03-30T00:20', '2026-03-30T00:40']],
  ['30 2,3 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['2026-03-29T01:30', '2026-03-30T00:30']],
];

for (const [cron, zone, after, expected] of skipped)
  verifies('hosted.schedule', `"${cron}" in ${zone}: the skipped hour is as documented`, () => {
    expect(dueTimes(cron, zone, after, expected.length)).toEqual(expected);
  });

const repeated: readonly [cron: string, zone: string, after: string, expected: readonly string[]][] = [
  // 02:30 exists twice on 25 October, at 00:30 and at 01:30 UTC.
  ['30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['2026-10-25T00:30', '2026-10-26T01:30']],
  ['30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', ['2026-11-01T05:30', '2026-11-02T06:30']],
  ['45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T12:00Z', ['2026-04-04T14:45', '2026-04-05T15:15']],
  // Several times of day occur in both hours.
  [
    '*/30 2 * * *',
    'Europe/Berlin',
    '2026-10-24T12:00Z',
    ['2026-10-25T00:00', '2026-10-25T00:30', '2026-10-25T01:00', '2026-10-25T01:30', '2026-10-26T01:00'],
  ],
];

for (const [cron, zone, after, expected] of repeated)
  verifies('hosted.schedule', `"${cron}" in ${zone}: the repeated hour is as documented`, () => {
    expect(dueTimes(cron, zone, after, expected.length)).toEqual(expected);
  });

const transitions: readonly [zone: string, after: string][] = [
  ['Europe/Berlin', '2026-03-28T20:00'],
  ['Europe/Berlin', '2026-10-24T20:00'],
  ['America/New_York', '2026-03-08T03:00'],
  ['America/New_York', '2026-11-01T03:00'],
  ['Australia/Lord_Howe', '2026-04-04T12:00'],
  ['Australia/Lord_Howe', '2026-10-03T12:00'],
  ['Asia/Kolkata', '2026-03-28T20:00'],
];

for (const [zone, after] of transitions)
  verifies('hosted.schedule', `"*/15 * * * *" in ${zone} is due every 15 minutes from ${after} on`, () => {
    const expected = every(15, after, 49).slice(1);
    expect(dueTimes('*/15 * * * *', zone, `${after}Z`, 48)).toEqual(expected);
  });

verifies('hosted.schedule', 'an hourly expression is due every hour across a change of one hour', () => {
  for (const [zone, after] of transitions.filter(([name]) => /Berlin|York/.test(name)))
    expect(dueTimes('0 * * * *', zone, `${after}Z`, 12)).toEqual(every(60, after, 13).slice(1));
  expect(dueTimes('0 * * * *', 'Asia/Kolkata', '2026-03-28T20:00Z', 5)).toEqual(every(60, '2026-03-28T20:30', 5));
});

verifies('hosted.schedule', 'an hourly expression follows the wall clock across a change of half an hour', () => {
  const spring = ['2026-10-03T13:30', '2026-10-03T14:30', '2026-10-03T16:00', '2026-10-03T17:00'];
  expect(dueTimes('0 * * * *', 'Australia/Lord_Howe', '2026-10-03T13:00Z', 4)).toEqual(spring);
  const autumn = ['2026-04-04T13:00', '2026-04-04T14:00', '2026-04-04T15:30', '2026-04-04T16:30'];
  expect(dueTimes('0 * * * *', 'Australia/Lord_Howe', '2026-04-04T12:30Z', 4)).toEqual(autumn);
  const half = ['2026-04-04T13:30', '2026-04-04T14:30', '2026-04-04T15:00', '2026-04-04T16:00'];
  expect(dueTimes('30 * * * *', 'Australia/Lord_Howe', '2026-04-04T13:00Z', 4)).toEqual(half);
});

interface LocalMinute {
  readonly at: number;
  readonly date: string;
  readonly day: number;
  readonly month: number;
  readonly weekday: number;
  /** Minutes since local midnight. */
  readonly time: number;
}

/** Every minute of a period as the clocks in a zone show it. */
function localMinutes(zone: string, start: number, days: number): LocalMinute[] {
  const format = new Intl.DateTimeFormat('en-GB', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' });
  return Array.from({ length: days * 1440 }, (_, i) => {
    const at = start + i * MINUTE;
    const [, day, month, year, hour, minute] = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+)$/.exec(format.format(at)) ?? [];
    const weekday = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDay();
    const time = Number(hour) * 60 + Number(minute);
    return { at, date: `${year}-${month}-${day}`, day: Number(day), month: Number(month), weekday, time };
  });
}

interface Field {
  readonly text: string;
  readonly values: ReadonlySet<number>;
}

const valuesFrom = (min: number, max: number, step = 1): number[] =>
  Array.from({ length: Math.floor((max - min) / step) + 1 }, (_, i) => min + i * step);

/** A field of a cron expression with the values that it stands for, which are not derived from its text. */
function field(min: number, max: number): fc.Arbitrary<Field> {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const step = fc.integer({ min: 1, max: max - min + 1 });
  const item = fc.oneof(
    value.map((n) => ({ text: `${n}`, values: [n] })),
    range.map(([a, b]) => ({ text: `${a}-${b}`, values: valuesFrom(a, b) })),
    fc.tuple(range, step).map(([[a, b], n]) => ({ text: `${a}-${b}/${n}`, values: valuesFrom(a, b, n) })),
    step.map((n) => ({ text: `*/${n}`, values: valuesFrom(min, max, n) })),
  );
  const list = fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => ({
    text: items.map(({ text }) => text).join(),
    values: new Set(items.flatMap(({ values }) => values)),
  }));
  const single = value.map((n) => ({ text: `${n}`, values: new Set([n]) }));
  return fc.oneof(fc.constant({ text: '*', values: new Set(valuesFrom(min, max)) }), single, single, list);
}

interface Expression {
  readonly minute: Field;
  readonly hour: Field;
  readonly day: Field;
  readonly month: Field;
  readonly weekday: Field;
}

const isOnDay = ({ day, month, weekday }: Expression, local: LocalMinute): boolean => {
  const [inMonth, inWeek] = [day.values.has(local.day), weekday.values.has(local.weekday)];
  const isEither = day.text !== '*' && weekday.text !== '*';
  return month.values.has(local.month) && (isEither ? inMonth || inWeek : inMonth && inWeek);
};

/** The one time of day of an expression without steps and lists, in minutes since midnight. */
function singleTime({ minute, hour }: Expression): number | undefined {
  if ([minute, hour].some(({ text }) => /[*/]/.test(text))) return undefined;
  const times = [...hour.values].flatMap((h) => [...minute.values].map((m) => h * 60 + m));
  return times.length === 1 ? times[0] : undefined;
}

/** The due times among some minutes, by the documented rules. */
function expectedTimes(expression: Expression, minutes: readonly LocalMinute[]): number[] {
  const { minute, hour } = expression;
  const single = singleTime(expression);
  const dates = new Set<string>();
  const isDue = ({ date, time }: LocalMinute, previous: LocalMinute | undefined): boolean => {
    const matches = hour.values.has(Math.floor(time / 60)) && minute.values.has(time % 60);
    if (single === undefined) return matches;
    const before = previous?.date === date ? previous.time : -1;
    const isSkipped = previous !== undefined && before < single && single < time;
    const isFirst = (matches || isSkipped) && !dates.has(date);
    if (isFirst) dates.add(date);
    return isFirst;
  };
  return minutes
    .filter((local, index) => isOnDay(expression, local) && isDue(local, minutes[index - 1]))
    .map(({ at }) => at);
}

const any = (min: number, max: number): fc.Arbitrary<Field> =>
  fc.oneof(fc.constant({ text: '*', values: new Set(valuesFrom(min, max)) }), field(min, max));
const early = fc.integer({ min: 0, max: 3 }).map((n) => ({ text: `${n}`, values: new Set([n]) }));
const expressions = fc.record({
  minute: field(0, 59),
  hour: fc.oneof(field(0, 23), early),
  day: any(1, 31),
  month: any(1, 12),
  weekday: any(0, 6),
});

const oracles: readonly [zone: string, start: string][] = [
  ...transitions,
  ['America/Havana', '2026-03-07T20:00'],
  ['America/Santiago', '2026-09-05T20:00'],
  ['Antarctica/Troll', '2026-03-28T20:00'],
  ['Antarctica/Troll', '2026-10-24T20:00'],
  ['Africa/Casablanca', '2026-02-14T20:00'],
  ['Asia/Kathmandu', '2026-12-30T00:00'],
  ['UTC', '2028-02-27T00:00'],
];

for (const [zone, start] of oracles)
  verifies('hosted.schedule', `the due times in ${zone} from ${start} on are those of a walk over all minutes`, () => {
    // A day more at both ends, so that the walk knows which times are skipped or repeated.
    const from = Date.parse(`${start}Z`) - DAY;
    const minutes = localMinutes(zone, from - DAY, 6);
    const after = fc.integer({ min: from, max: from + 2 * DAY });
    const property = fc.property(expressions, after, (expression, instant) => {
      const { minute, hour, day, month, weekday } = expression;
      const cron = [minute, hour, day, month, weekday].map(({ text }) => text).join(' ');
      const expected = expectedTimes(expression, minutes).filter((at) => at > instant && at <= from + 4 * DAY);
      const found: number[] = [];
      let time = instant;
      while (found.length < 40 && time <= from + 4 * DAY) {
        time = nextDueTime({ cron, zone }, time, 0) ?? Number.POSITIVE_INFINITY;
        if (time <= from + 4 * DAY) found.push(time);
      }
      expect(found, `${cron} after ${instant}`).toEqual(expected.slice(0, 40));
    });
    fc.assert(property, { numRuns: 100 });
  });

/** The days of a month on which a special item of a cron expression falls, by counting. */
function specialDays(year: number, month: number, special: string): number[] {
  const days = valuesFrom(1, new Date(Date.UTC(year, month, 0)).getUTCDate());
  if (special === 'L') return days.slice(-1);
  const [, name = '', kind = ''] = /^(\d)(#\d|L)$/.exec(special) ?? [];
  const matching = days.filter((day) => new Date(Date.UTC(year, month - 1, day)).getUTCDay() === Number(name) % 7);
  const index = kind === 'L' ? matching.length - 1 : Number(kind.slice(1)) - 1;
  return matching.slice(index, index + 1);
}

interface LocalDay {
  readonly at: number;
  readonly day: number;
  readonly month: number;
  readonly year: number;
  readonly weekday: number;
}

/** Every day of a period in UTC. */
function localDays(start: number, count: number): LocalDay[] {
  return Array.from({ length: count }, (_, i) => {
    const date = new Date(start + i * DAY);
    const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
    return { at: date.getTime(), day, month, year, weekday: date.getUTCDay() };
  });
}

const isSpecial = ({ year, month, day }: LocalDay, item: string): boolean =>
  specialDays(year, month, item).includes(day);

const dates = fc.record({
  day: fc.oneof(any(1, 31), fc.constant({ text: 'L', values: new Set<number>() })),
  month: any(1, 12),
  weekday: any(0, 6),
  /** Further items of the day of the week. */
  nth: fc.array(
    fc
      .tuple(fc.integer({ min: 0, max: 7 }), fc.constantFrom('#1', '#2', '#4', '#5', 'L'))
      .map((parts) => parts.join('')),
    { maxLength: 2 },
  ),
});

verifies('hosted.schedule', 'the days on which an expression is due are those of a walk over all days', () => {
  const start = Date.UTC(2026, 11, 1);
  const days = localDays(start, 1500);
  const property = fc.property(dates, fc.integer({ min: 0, max: 700 }), ({ day, month, weekday, nth }, offset) => {
    const weekdays =
      nth.length === 0
        ? weekday.text
        : [weekday.text]
            .filter((text) => text !== '*')
            .concat(nth)
            .join();
    const inWeek = (date: LocalDay): boolean =>
      (weekday.text !== '*' && weekday.values.has(date.weekday)) || nth.some((item) => isSpecial(date, item));
    const inMonth = (date: LocalDay): boolean => (day.text === 'L' ? isSpecial(date, 'L') : day.values.has(date.day));
    const isDue = (date: LocalDay): boolean => {
      if (!month.values.has(date.month)) return false;
      if (weekdays === '*') return inMonth(date);
      return day.text === '*' ? inWeek(date) : inMonth(date) || inWeek(date);
    };
    const cron = `0 12 ${day.text} ${month.text} ${weekdays}`;
    const expected = days.slice(offset).filter(isDue);
    let time = start + offset * DAY;
    for (const { at } of expected.slice(0, 40)) {
      time = nextDueTime({ cron, zone: 'UTC' }, time, 0) ?? Number.NaN;
      expect(new Date(time).toISOString(), cron).toBe(new Date(at + DAY / 2).toISOString());
    }
  });
  fc.assert(property, { numRuns: 100 });
});

verifies('hosted.schedule', 'the first days of March are not missed after a February without the other days', () => {
  const march = ['2027-03-01T00:00', '2027-03-31T00:00', '2027-04-01T00:00'];
  expect(dueTimes('0 0 1,31 * *', 'UTC', '2027-02-10T00:00Z', 3)).toEqual(march);
  expect(dueTimes('0 0 */5 * *', 'UTC', '2028-02-26T00:00Z', 2)).toEqual(['2028-03-01T00:00', '2028-03-06T00:00']);
  expect(dueTimes('30 3 2,31 2-3 *', 'Europe/Berlin', '2027-02-10T00:00Z', 1)).toEqual(['2027-03-02T02:30']);
});

verifies('hosted.schedule', 'the last day, the nth and the last weekday of a month are those of a calendar', () => {
  const specials = ['L', ...valuesFrom(0, 7).flatMap((day) => ['#1', '#3', '#5', 'L'].map((kind) => `${day}${kind}`))];
  for (const special of specials) {
    const cron = special === 'L' ? '0 12 L * *' : `0 12 * * ${special}`;
    const expected = valuesFrom(2026, 2028).flatMap((year) =>
      valuesFrom(1, 12).flatMap((month) =>
        specialDays(year, month, special).map((day) => new Date(Date.UTC(year, month - 1, day, 12)).toISOString()),
      ),
    );
    const found = dueTimes(cron, 'UTC', '2025-12-31T23:59Z', expected.length);
    expect(found, cron).toEqual(expected.map((time) => time.slice(0, 16)));
  }
});

verifies(
  'hosted.schedule',
  'due times are whole seconds after the given time, wherever between two seconds it is',
  () => {
    const property = fc.property(
      fc.integer({ min: 0, max: 4e12 }),
      fc.constantFrom('UTC', 'Europe/Berlin'),
      (at, zone) => {
        const everySecond = nextDueTime({ cron: '* * * * * *', zone }, at, 0);
        expect(everySecond).toBe(Math.floor(at / 1000) * 1000 + 1000);
        const halfMinutes = nextDueTime({ cron: '*/30 * * * * *', zone }, at, 0);
        expect(halfMinutes).toBe(Math.floor(at / 30_000) * 30_000 + 30_000);
      },
    );
    fc.assert(property, { numRuns: 300 });
  },
);

verifies('hosted.schedule', 'an interval is due at exact multiples from its anchor, however long ago that is', () => {
  const period = fc.integer({ min: 1000, max: 3e11 });
  const property = fc.property(fc.integer({ min: 0, max: 4e12 }), period, fc.nat(4e12), (anchor, everyMs, elapsed) => {
    const after = anchor - 1 + elapsed;
    const next = nextDueTime({ everyMs }, after, anchor) ?? Number.NaN;
    expect((next - anchor) % everyMs).toBe(0);
    expect(next).toBeGreaterThan(after);
    expect(next - everyMs).toBeLessThanOrEqual(after);
  });
  fc.assert(property);
});

verifies('hosted.schedule', 'there is no due time after the last year of the calendar of the library', () => {
  expect(nextDueTime({ cron: '0 0 1 1 *', zone: 'UTC' }, Date.UTC(2999, 5, 1), 0)).toBeUndefined();
});
