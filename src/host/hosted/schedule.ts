/** Schedules of hosted loops: what is wrong with one. */
import type { HostedSchedule } from '../../protocol/hosted-loop.js';

const CRON_FIELD = /^[0-9A-Za-z*/,#?-]+$/;

/** Returns why a schedule, whose members are those of one kind, cannot be used; undefined if it can. */
export function findScheduleProblem(schedule: HostedSchedule): string | undefined {
  if (!('cron' in schedule)) return undefined;
  const fields = schedule.cron.trim().split(/\s+/);
  if (fields.length < 5 || fields.length > 6 || !fields.every((field) => CRON_FIELD.test(field)))
    return 'has a cron expression that is not five fields, or six with seconds first';
  try {
    new Intl.DateTimeFormat('en', { timeZone: schedule.zone });
    return undefined;
  } catch {
    return 'has a zone that is not an IANA time zone, such as Europe/Berlin';
  }
}
