/**
 * The schedule rules of hosted loops: when the next turn is due, and what becomes of due times at which the turn before
 * was open (overlap) or no worker ran (catch-up). Pure functions of recorded times. Every due time up to `through` of
 * a turn is dealt with, so none is handled twice, also when the clock is set back.
 */
import { wholeNumbers } from '../../base/number-range.js';
import { isObject, ownProperty } from '../../base/own-property.js';
import type {
  CatchUpRule,
  CronSchedule,
  HostedLoopDocument,
  HostedSchedule,
  OverlapRule,
} from '../../protocol/hosted-loop.js';
import type { DuePlan, SkippedDueTimes } from '../../views/hosted-loop.js';
import { findCronProblem } from './cron-fields.js';
import { type GridSchedule, isDelaySchedule, nextDueTime } from './due-times.js';

/** A turn that has ended, by the wall clock. */
export interface EndedTurn {
  /** The `through` of its plan. Of a turn that the schedule did not cause: one less than `dueAt` of the pending plan. */
  readonly through: number;
  readonly requestedAt: number;
  readonly endedAt: number;
}

/** The shortest interval: one second, the shortest distance that a cron expression can express too. */
const MIN_INTERVAL_MS = 1000;
/** The longest interval and the longest delay: ten years. */
const MAX_PERIOD_MS = 10 * 366 * 86_400_000;
const INTERVAL_RANGE = wholeNumbers(MIN_INTERVAL_MS, MAX_PERIOD_MS);
const DELAY_RANGE = wholeNumbers(0, MAX_PERIOD_MS);
/** With catch-up `none`, how late a turn may be at most. Half the distance to the next due time is a limit too. */
const MAX_LATENESS_MS = 60_000;
/** A cron expression has no year, so it matches after any instant or never. */
const REFERENCE_TIME = Date.UTC(2000, 0, 1);
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]{0,99}$/;

/**
 * Returns what is wrong with the schedule of an untrusted document, as `.member: problem` or `: problem`; undefined if
 * nothing is.
 */
export function findScheduleProblem(schedule: unknown): string | undefined {
  // guard: schedule-members-exact
  const names = isObject(schedule) ? Object.keys(schedule).sort().join() : '';
  if (names === 'cron,zone') return findCronScheduleProblem(schedule);
  if (names === 'everyMs')
    return INTERVAL_RANGE.includes(ownProperty(schedule, 'everyMs'))
      ? undefined
      : `.everyMs: must be ${INTERVAL_RANGE.description}`;
  if (names === 'delayMs')
    return DELAY_RANGE.includes(ownProperty(schedule, 'delayMs'))
      ? undefined
      : `.delayMs: must be ${DELAY_RANGE.description}`;
  return ': must have exactly the members cron and zone, or only everyMs, or only delayMs';
}

function findCronScheduleProblem(schedule: unknown): string | undefined {
  const cron = ownProperty(schedule, 'cron');
  const problem = findCronProblem(cron);
  if (problem !== undefined) return `.cron: ${problem}`;
  const zone = ownProperty(schedule, 'zone');
  // guard: zone-is-known
  if (!isZone(zone)) return '.zone: must be an IANA time zone, such as Europe/Berlin or UTC';
  const next = nextDueTime({ cron, zone } as CronSchedule, REFERENCE_TIME, REFERENCE_TIME);
  // guard: cron-matches-sometime
  return next === undefined ? '.cron: no date matches it' : undefined;
}

/** True for a name that this runtime knows. An offset such as `+01:00` is no zone: it has no daylight saving time. */
function isZone(zone: unknown): boolean {
  if (typeof zone !== 'string' || !ZONE_NAME.test(zone)) return false;
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: zone }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/**
 * Returns the plan of the first turn: at the start, or at the first match of a cron expression after it. Undefined if
 * no turn is ever due.
 */
export function firstDue(schedule: HostedSchedule | undefined, startedAt: number): DuePlan | undefined {
  if (schedule === undefined || !Object.hasOwn(schedule, 'cron')) return planAt(startedAt);
  return planAt(nextDueTime(schedule as CronSchedule, startedAt, startedAt));
}

/**
 * Returns the plan of the turn after one that has ended; undefined if none is ever due. `anchor` is the start of the
 * hosted loop. Due times that were pending when the ended turn was requested stay pending. Those that came while it
 * was open are dropped (`skip`), or one turn is due for all of them at once (`queue-one`).
 */
export function dueAfterTurn(
  schedule: HostedSchedule | undefined,
  overlap: OverlapRule,
  { through, requestedAt, endedAt }: EndedTurn,
  anchor: number,
): DuePlan | undefined {
  if (schedule === undefined) return planAt(endedAt);
  // guard: delay-counts-from-the-end
  if (isDelaySchedule(schedule)) return planAt(endedAt + schedule.delayMs);
  // guard: due-times-are-handled-once
  const next = nextDueTime(schedule, through, anchor);
  // guard: pending-due-times-survive
  if (next === undefined || next <= requestedAt) return planAt(next);
  // guard: open-turn-overlaps
  if (next > endedAt) return planAt(next);
  // guard: queued-turn-covers-overlap
  if (overlap === 'queue-one') return { dueAt: next, through: endedAt };
  return planAfter(schedule, anchor, { from: next, until: endedAt, why: 'overlap' });
}

/**
 * Decides about a plan at `now`, just before its turn is requested with `requestedAt: now`. Returns the plan to run now
 * (`dueAt <= now`), whose `through` may be later; or a later plan (`dueAt > now`), if the clock was set back or the due
 * time is dropped. Undefined if it is dropped and no other turn is ever due.
 *
 * A due time is missed if its turn could have run, by the clock, more than a minute ago, or more than half the distance
 * to the next due time: a turn that is nearer to the next due time than to its own is never run.
 */
export function dueWhenLate(
  schedule: HostedSchedule | undefined,
  catchUp: CatchUpRule,
  { dueAt, through }: DuePlan,
  now: number,
): DuePlan | undefined {
  if (schedule === undefined || isDelaySchedule(schedule)) return { dueAt, through };
  // guard: catch-up-all-runs-each
  if (catchUp === 'all') return { dueAt, through };
  // guard: missed-due-time-dropped
  if (catchUp === 'none' && now - through > latenessLimit(schedule, dueAt))
    return planAfter(schedule, dueAt, { from: dueAt, until: now, why: 'missed' });
  // guard: caught-up-turn-covers-missed
  return { dueAt, through: Math.max(through, now) };
}

function latenessLimit(schedule: GridSchedule, dueAt: number): number {
  const next = nextDueTime(schedule, dueAt, dueAt) ?? Number.POSITIVE_INFINITY;
  // guard: lateness-is-bounded
  return Math.min(MAX_LATENESS_MS, (next - dueAt) / 2);
}

function planAt(dueAt: number | undefined): DuePlan | undefined {
  return dueAt === undefined ? undefined : { dueAt, through: dueAt };
}

/** The plan of the first due time after those that are dropped. */
function planAfter(schedule: GridSchedule, anchor: number, skipped: SkippedDueTimes): DuePlan | undefined {
  // guard: dropped-due-times-stay-dropped
  const plan = planAt(nextDueTime(schedule, skipped.until, anchor));
  return plan && { ...plan, skipped };
}

/** True if turns are caused by signals and handoffs alone. */
export function isEventDriven({ schedule, signals, acceptsHandoffsFrom }: HostedLoopDocument): boolean {
  return schedule === undefined && (signals !== undefined || acceptsHandoffsFrom !== undefined);
}
