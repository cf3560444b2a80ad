// Guards of the schedules of hosted loops.

import { guardsOf, proveGuards } from './prove.js';
import { type ScheduleLibrary, scheduleChecks } from './schedule-checks.js';

const guard = guardsOf(scheduleChecks);

proveGuards<ScheduleLibrary>(
  ['host/hosted/schedule.js', 'host/hosted/due-times.js'],
  [
    guard('hosted.document', 'a schedule with an unknown or a second member is refused', 'schedule-members-exact', {
      rewrite: [/\.sort\(\)/, '.sort().slice(0, 1)'],
    }),
    guard(
      'hosted.document',
      'a cron expression that the library would misread is refused',
      'cron-field-syntax',
      'always',
    ),
    guard('hosted.document', 'a time zone that does not exist is refused', 'zone-is-known', 'never'),
    guard('hosted.document', 'a cron expression that no date matches is refused', 'cron-matches-sometime', 'never'),
    guard('hosted.schedule', 'a cron expression is due by the clocks in its zone', 'cron-follows-zone', {
      value: "'UTC'",
    }),
    guard(
      'hosted.schedule',
      'the first of March is not missed after a February without the other days',
      'first-of-march-not-missed',
      'never',
    ),
    guard('hosted.schedule', 'an interval is due after the given time, never at it', 'due-time-is-after', {
      rewrite: [/Math\.floor\((.*)\) \+ 1/, 'Math.ceil($1)'],
    }),
    guard('hosted.schedule', 'a delay counts from the end of a turn', 'delay-counts-from-the-end', {
      rewrite: [/endedAt/, 'requestedAt'],
    }),
    guard(
      'hosted.schedule',
      'no due time is handled again after the clock was set back',
      'due-times-are-handled-once',
      { rewrite: [/through/, 'requestedAt'] },
    ),
    guard(
      'hosted.schedule',
      'due times that a turn found pending are not dropped',
      'pending-due-times-survive',
      'never',
    ),
    guard('hosted.schedule', 'due times at which the turn was open are dropped', 'open-turn-overlaps', 'always'),
    guard('hosted.schedule', 'due times at which the turn was open are dropped', 'dropped-due-times-stay-dropped', {
      rewrite: [/skipped\.until/, 'anchor'],
    }),
    guard(
      'hosted.schedule',
      'one turn is due for all due times at which the turn was open',
      'queued-turn-covers-overlap',
      { rewrite: [/through: endedAt/, 'through: next'] },
    ),
    guard('hosted.schedule', 'each missed due time gets its turn', 'catch-up-all-runs-each', 'never'),
    guard('hosted.schedule', 'one turn runs for all missed due times', 'caught-up-turn-covers-missed', {
      rewrite: [/Math\.max\(through, now\)/, 'through'],
    }),
    guard('hosted.schedule', 'a missed due time is dropped', 'missed-due-time-dropped', 'never'),
    guard(
      'hosted.schedule',
      'a turn that is a little late is not missed, and one that is nearer to the next due time is',
      'lateness-is-bounded',
      { rewrite: [/Math\.min/, 'Math.max'] },
    ),
  ],
);
