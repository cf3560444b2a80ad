/**
 * The due times of cron and interval schedules: the first one after an instant. It is computed from that instant alone,
 * so it costs the same after one turn and after a million, and after a second and a year of downtime.
 */
import { createRequire } from 'node:module';
import type { CronSchedule, DelaySchedule, HostedSchedule, IntervalSchedule } from '../../protocol/hosted-loop.js';

// Loaded when the first due time of an expression is computed, because most programs have none.
const requireModule = createRequire(import.meta.url);

/** A schedule with due times that do not depend on when turns end. */
export type GridSchedule = CronSchedule | IntervalSchedule;

/** True for a schedule that counts from the end of the turn before. */
export function isDelaySchedule(schedule: HostedSchedule): schedule is DelaySchedule {
  return Object.hasOwn(schedule, 'delayMs');
}

function isCronSchedule(schedule: GridSchedule): schedule is CronSchedule {
  return Object.hasOwn(schedule, 'cron');
}

/**
 * Returns the first due time after an instant, in milliseconds since the epoch; undefined if there is none before the
 * year 3000. `anchor` is any due time of an interval.
 */
export function nextDueTime(schedule: GridSchedule, after: number, anchor: number): number | undefined {
  if (isCronSchedule(schedule)) return nextCronTime(schedule, after);
  const { everyMs } = schedule;
  // guard: due-time-is-after
  return anchor + (Math.floor((after - anchor) / everyMs) + 1) * everyMs;
}

function nextCronTime({ cron, zone }: CronSchedule, after: number): number | undefined {
  const runAfter = croner(cron, zone);
  const marchAfter = croner('0 0 1 3 *', zone);
  let found = runAfter(after);
  let march = marchAfter(after);
  // croner 11 takes 30 February for 2 March (in a leap year, 31 February) and goes on from there, so it misses 1 March
  // in `1,31` or `*/5`. A second search starts right before March.
  // guard: first-of-march-not-missed
  while (found !== undefined && march !== undefined && march < found) {
    found = runAfter(march - 1000);
    march = marchAfter(march);
  }
  return found;
}

/** Returns the function that finds the first match of an expression after an instant. */
function croner(cron: string, zone: string): (after: number) => number | undefined {
  const { Cron } = requireModule('croner') as typeof import('croner');
  // Without a function, croner starts no timer, and `nextRun(from)` depends on neither the clock nor earlier calls.
  const times = new Cron(cron, { /* guard: cron-follows-zone */ timezone: zone, paused: true, mode: '5-or-6-parts' });
  return (after) => times.nextRun(new Date(after))?.getTime();
}
