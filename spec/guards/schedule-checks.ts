// Checks of the schedules of hosted loops: what is refused, due times, overlap and catch-up.

import { deepStrictEqual, match, strictEqual } from 'node:assert';
import type { CatchUpRule, HostedSchedule } from '../../src/protocol/hosted-loop.js';

/** The modules that the checks use. */
export type ScheduleLibrary = typeof import('../../src/host/hosted/schedule.js') &
  typeof import('../../src/host/hosted/due-times.js');

type Check = (library: ScheduleLibrary) => Promise<void>;

const HOUR = 3_600_000;
const START = 1_000_000;
const hourly = { everyMs: HOUR };
const hour = (hours: number): number => START + hours * HOUR;
const planned = (hours: number) => ({ dueAt: hour(hours), through: hour(hours) });

/** The problem of a schedule; an empty text if it is accepted. */
const problemOf = (library: ScheduleLibrary, schedule: unknown): string => library.findScheduleProblem(schedule) ?? '';

const late = (library: ScheduleLibrary, schedule: HostedSchedule, catchUp: CatchUpRule, lateMs: number) =>
  library.dueWhenLate(schedule, catchUp, planned(1), hour(1) + lateMs);

export const scheduleChecks = {
  'a schedule with an unknown or a second member is refused': async (library) => {
    match(problemOf(library, { everyMs: HOUR, startAt: 0 }), /exactly/);
    match(problemOf(library, { everyMs: HOUR, delayMs: 0 }), /exactly/);
  },
  'a cron expression that the library would misread is refused': async (library) => {
    match(problemOf(library, { cron: '0 0 1 1jan *', zone: 'UTC' }), /the month "1jan"/);
    match(problemOf(library, { cron: '0 0 1L5 * *', zone: 'UTC' }), /the day of month "1L5"/);
  },
  'a time zone that does not exist is refused': async (library) => {
    match(problemOf(library, { cron: '0 0 * * *', zone: 'Europe/Atlantis' }), /IANA/);
  },
  'a cron expression that no date matches is refused': async (library) => {
    match(problemOf(library, { cron: '0 0 30 2 *', zone: 'UTC' }), /no date/);
  },
  'a cron expression is due by the clocks in its zone': async (library) => {
    const schedule = { cron: '30 2 * * *', zone: 'Asia/Kolkata' };
    strictEqual(library.nextDueTime(schedule, 0, 0), 21 * HOUR);
  },
  'the first of March is not missed after a February without the other days': async (library) => {
    const schedule = { cron: '0 0 1,31 * *', zone: 'UTC' };
    strictEqual(library.nextDueTime(schedule, Date.UTC(2027, 1, 10), 0), Date.UTC(2027, 2, 1));
  },
  'an interval is due after the given time, never at it': async (library) => {
    strictEqual(library.nextDueTime(hourly, hour(2), START), hour(3));
    strictEqual(library.nextDueTime(hourly, hour(2) - 1, START), hour(2));
  },
  'a delay counts from the end of a turn': async (library) => {
    const turn = { through: START, requestedAt: START, endedAt: START + 50 };
    deepStrictEqual(library.dueAfterTurn({ delayMs: 5 }, 'skip', turn, START), {
      dueAt: START + 55,
      through: START + 55,
    });
  },
  'no due time is handled again after the clock was set back': async (library) => {
    const turn = { through: hour(5), requestedAt: hour(2), endedAt: hour(2.1) };
    deepStrictEqual(library.dueAfterTurn(hourly, 'skip', turn, START), planned(6));
  },
  'due times that a turn found pending are not dropped': async (library) => {
    const turn = { through: hour(1), requestedAt: hour(4.5), endedAt: hour(4.6) };
    deepStrictEqual(library.dueAfterTurn(hourly, 'skip', turn, START), planned(2));
    deepStrictEqual(library.dueAfterTurn(hourly, 'queue-one', turn, START), planned(2));
  },
  'due times at which the turn was open are dropped': async (library) => {
    const turn = { through: START, requestedAt: START, endedAt: hour(3) };
    const plan = library.dueAfterTurn(hourly, 'skip', turn, START);
    deepStrictEqual(plan, { ...planned(4), skipped: { from: hour(1), until: hour(3), why: 'overlap' } });
  },
  'one turn is due for all due times at which the turn was open': async (library) => {
    const turn = { through: START, requestedAt: START, endedAt: hour(3) };
    const plan = library.dueAfterTurn(hourly, 'queue-one', turn, START);
    deepStrictEqual(plan, { dueAt: hour(1), through: hour(3) });
  },
  'each missed due time gets its turn': async (library) => {
    deepStrictEqual(late(library, hourly, 'all', 5 * HOUR), planned(1));
  },
  'one turn runs for all missed due times': async (library) => {
    deepStrictEqual(late(library, hourly, 'one', 5 * HOUR), { dueAt: hour(1), through: hour(6) });
  },
  'a missed due time is dropped': async (library) => {
    const skipped = { from: hour(1), until: hour(6.5), why: 'missed' };
    deepStrictEqual(late(library, hourly, 'none', 5.5 * HOUR), { ...planned(7), skipped });
  },
  'a turn that is a little late is not missed, and one that is nearer to the next due time is': async (library) => {
    strictEqual(late(library, hourly, 'none', 60_000)?.dueAt, hour(1));
    strictEqual(late(library, hourly, 'none', 60_001)?.dueAt, hour(2));
    strictEqual(late(library, { everyMs: 8000 }, 'none', 4000)?.dueAt, hour(1));
    strictEqual(late(library, { everyMs: 8000 }, 'none', 4001)?.dueAt, hour(1) + 8000);
  },
} satisfies { readonly [promise: string]: Check };
