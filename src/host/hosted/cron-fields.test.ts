// Which cron expressions are accepted, and what is said about the others.

import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { findCronProblem } from './cron-fields.js';
import { nextDueTime } from './due-times.js';

const accepted = [
  '* * * * *',
  ' 0  12\t* * * ',
  '0 0 12 * * *',
  '*/15 8-18 * * MON-FRI',
  '0,30 9-17/2 1,15 jan-Mar,12 0,sat',
  '59 23 31 12 7',
  '5 4 L * *',
  '5 4 1,L * *',
  '0 0 * * 1#1,5#5',
  '0 0 * * friL',
  '0 0 * * FRI-SUN',
  '0 0 * * 5-7/2',
];

for (const cron of accepted)
  verifies('hosted.schedule', `the cron expression ${JSON.stringify(cron)} is accepted`, () => {
    expect(findCronProblem(cron)).toBeUndefined();
    expect(nextDueTime({ cron, zone: 'UTC' }, 0, 0)).toBeGreaterThan(0);
  });

const refused: readonly [cron: unknown, problem: RegExp][] = [
  [5, /a text of at most 200/],
  [`0 0 * * ${'1,'.repeat(100)}1`, /a text of at most 200/],
  ['', /it has 0$/],
  ['* * * *', /it has 4$/],
  ['* * * * * * *', /it has 7$/],
  ['@daily', /it has 1$/],
  ['2026-01-01T00:00:00', /it has 1$/],
  ['*\u00a0* * * *', /it has 4$/],
  ['60 * * * *', /the minute "60" is invalid: it is \*, a number from 0 to 59, a range/],
  ['0 24 * * *', /the hour "24" .* from 0 to 23/],
  ['60 0 0 * * *', /the second "60"/],
  ['0 0 0 * *', /the day of month "0" .* from 1 to 31.* or L/],
  ['0 0 32 * *', /the day of month "32"/],
  ['0 0 * 13 *', /the month "13" .* from 1 to 12 or JAN-DEC/],
  ['0 0 * 1jan *', /the month "1jan"/],
  ['0 0 * JANFEB *', /the month/],
  ['0 0 * january *', /the month "january"/],
  ['0 0 * * 8', /the day of week "8"/],
  ['0 0 * * 5#6', /the day of week "5#6" .* or MON#1 or FRIL/],
  ['0 0 * * L', /the day of week "L"/],
  ['0 0 * * +1', /the day of week/],
  ['0 0 1L5 * *', /the day of month "1L5"/],
  ['0 0 15W * *', /the day of month "15W"/],
  ['L * * * *', /the minute "L"/],
  ['? * * * *', /the minute "\?"/],
  ['1,,2 * * * *', /the minute/],
  ['5/5 * * * *', /the minute "5\/5"/],
  ['/5 * * * *', /the minute/],
  ['*/0 * * * *', /the minute "\*\/0"/],
  ['*/61 * * * *', /a step from 1 to 60/],
  ['0 0 * * */8', /a step from 1 to 7/],
  ['50-10 * * * *', /the minute "50-10"/],
  ['0 22-2 * * *', /the hour "22-2"/],
  ['-5 * * * *', /the minute/],
  ['1.5 * * * *', /the minute/],
  ['1e1 * * * *', /the minute/],
  ['*-5 * * * *', /the minute/],
  ['** * * * *', /the minute/],
  ['٣ * * * *', /the minute/],
  ['__proto__ * * * *', /the minute/],
];

for (const [cron, problem] of refused)
  verifies(
    'hosted.schedule',
    `the cron expression ${JSON.stringify(cron)?.slice(0, 40)} is refused with its place`,
    () => {
      expect(findCronProblem(cron)).toMatch(problem);
    },
  );

verifies('hosted.schedule', 'names of months and weekdays are those of the calendar, in any case', () => {
  const next = (cron: string) => nextDueTime({ cron, zone: 'UTC' }, Date.UTC(2026, 0, 1), 0);
  const months = ['jan', 'FEB', 'Mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
  for (const [index, name] of months.entries()) expect(next(`0 5 1 ${name} *`)).toBe(Date.UTC(2026, index, 1, 5));
  const days = ['thu', 'FRI', 'Sat', 'sun', 'mon', 'tue', 'wed'];
  for (const [index, name] of days.entries()) expect(next(`0 5 * * ${name}`)).toBe(Date.UTC(2026, 0, 1 + index, 5));
  for (const [named, numbered] of [
    ['FRI-SUN', '5-7'],
    ['SUN-TUE', '0-2'],
    ['SUN', '7'],
    ['SUN-SUN', '0-7'],
  ])
    for (let time = Date.UTC(2026, 0, 1), i = 0; i < 20; i++) {
      const due = nextDueTime({ cron: `0 5 * * ${named}`, zone: 'UTC' }, time, 0);
      expect(due).toBe(nextDueTime({ cron: `0 5 * * ${numbered}`, zone: 'UTC' }, time, 0));
      time = due ?? Number.NaN;
    }
});

verifies('hosted.schedule', 'no text is accepted that the library refuses, and none makes the check throw', () => {
  const part = fc.string({ unit: fc.constantFrom(...'0123456789*/-,#LWjanSUNMOFRI?+:@'), minLength: 1, maxLength: 6 });
  const item = fc.oneof(
    part,
    fc.constantFrom('*', '5', '1-3', '*/2', '1-5/2', 'L', '2#1', '5L', 'mon', 'sun-sun', 'jan'),
  );
  const field = fc.oneof(
    item,
    fc.array(item, { minLength: 1, maxLength: 3 }).map((items) => items.join()),
  );
  const text = fc.array(field, { minLength: 4, maxLength: 7 }).map((fields) => fields.join(' '));
  const property = fc.property(text, (cron) => {
    if (findCronProblem(cron) !== undefined) return;
    expect(() => nextDueTime({ cron, zone: 'UTC' }, 0, 0), cron).not.toThrow();
  });
  fc.assert(property, { numRuns: 2000 });
});
