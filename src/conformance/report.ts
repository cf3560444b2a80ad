/** What is said of a runtime in the end: every check with its status, the five points, and the sum of it. */
import { singleLine, truncate } from '../base/hidden-characters.js';
import type { Check, Level, Point } from './check.js';

/** `known-failure`: it failed, and the driver says that it is known to, and why. */
export type Status = 'pass' | 'fail' | 'not-applicable' | 'known-failure';

/** How one check went. */
export interface CheckResult {
  readonly id: string;
  readonly section: string;
  readonly level: Level;
  readonly status: Status;
  readonly title: string;
  /** Why it failed or could not be made, or what to know of a pass. */
  readonly note?: string;
}

/** How a runtime stands to one point of LSEM's section on conformance. */
export interface PointResult {
  readonly point: Point;
  readonly text: string;
  readonly status: Status;
}

/** The whole judgement, as JSON. */
export interface ConformanceReport {
  readonly runtime: string;
  readonly spec: 'LSEM v0.1';
  readonly checks: readonly CheckResult[];
  readonly points: readonly PointResult[];
  readonly summary: {
    readonly total: number;
    readonly passed: number;
    readonly failed: number;
    readonly notApplicable: number;
    readonly knownFailures: number;
    /**
     * Every MUST was judged and holds, and nothing that the text implies was found broken but for known failures. A MUST that
     * is known to fail does not hold.
     */
    readonly conformant: boolean;
  };
}

const texts: { readonly [P in Point]: string } = {
  1: 'takes definitions as section 4 has them',
  2: 'holds every input and output against its schema',
  3: 'leads calls of all three kinds through the lifecycle',
  4: 'emits the defined events, payloads complete',
  5: 'runs composites as section 7 has them',
};

/** A row of the report. */
export function rowOf({ id, section, level, title }: Omit<Check, 'run'>, status: Status, note?: string): CheckResult {
  return { id, section, level, status, title, ...(note === undefined || note === '' ? {} : { note: plain(note) }) };
}

/** The report of a suite whose rows are known. */
export function reportOf(runtime: string, suite: readonly Check[], rows: readonly CheckResult[]): ConformanceReport {
  const points = ([1, 2, 3, 4, 5] as const).map((point) => {
    const ids = new Set(suite.filter((check) => check.point === point).map(({ id }) => id));
    return { point, text: texts[point], status: overall(rows.filter(({ id }) => ids.has(id))) };
  });
  const count = (status: Status): number => rows.filter((row) => row.status === status).length;
  return {
    runtime: plain(runtime),
    spec: 'LSEM v0.1',
    checks: rows,
    points,
    summary: {
      total: rows.length,
      passed: count('pass'),
      failed: count('fail'),
      notApplicable: count('not-applicable'),
      knownFailures: count('known-failure'),
      conformant: overall(rows) === 'pass',
    },
  };
}

/** A MAY or a SHOULD that fails breaks nothing; a MUST that was not judged leaves the question open. */
function overall(rows: readonly CheckResult[]): Status {
  const binding = rows.filter(({ level }) => level === 'MUST' || level === 'IMPLIED');
  if (binding.some((row) => row.status === 'fail' && !isReminder(row))) return 'fail';
  const musts = binding.filter(({ level }) => level === 'MUST');
  if (musts.some(({ status }) => status === 'known-failure'))
    return /* guard: known-failure-is-no-pass */ 'known-failure';
  return musts.length > 0 && musts.every((row) => row.status === 'pass' || isReminder(row)) ? 'pass' : 'not-applicable';
}

/** The report in a word, and whether that is what was hoped for: nothing failed that was not known to. */
export function verdictOf({ checks, summary }: ConformanceReport): { readonly text: string; readonly good: boolean } {
  const { knownFailures: known } = summary;
  const unjudged = checks.some(({ level, status }) => level === 'MUST' && status === 'not-applicable');
  if (overall(checks) === 'fail') return { text: 'not conformant', good: false };
  if (unjudged) return { text: 'conformance not shown', good: false };
  const but = known === 0 ? '' : `, but for ${known} known ${known === 1 ? 'failure' : 'failures'}`;
  if (checks.some(isReminder)) return { text: `conformant${but}; a ${REMINDER}`, good: false };
  return { text: `conformant${but}`, good: true };
}

/** A check that the driver says fails, and that does not: what the driver says has to be changed. */
export function reminderOf(row: CheckResult, reason: string): CheckResult {
  const note = `${REMINDER}: remove ${row.id} from knownFailures of the driver (reason given: ${reason})`;
  return { ...row, status: 'fail', note: plain(note) };
}

const REMINDER = 'known failure no longer fails';

function isReminder({ status, note }: CheckResult): boolean {
  return status === 'fail' && note?.startsWith(REMINDER) === true;
}

/** How many checks there are of each family, numbered from 01. */
const families = { DEF: 16, VAL: 7, LIF: 13, TRC: 22, CMP: 14, CNF: 1, NEG: 1 } as const;
const statuses: readonly string[] = ['pass', 'fail', 'not-applicable', 'known-failure'];

/** What a report must not leave out, and does. */
export function reportFaults(report: ConformanceReport): string[] {
  const expected = Object.entries(families).flatMap(([family, count]) =>
    Array.from({ length: count }, (_, n) => `${family}-${String(n + 1).padStart(2, '0')}`),
  );
  const ids = report.checks.map(({ id }) => id);
  const faults = expected.filter((id) => !ids.includes(id)).map((id) => `${id} is not in the report`);
  if (report.runtime === '') faults.push('the report does not say which runtime was judged');
  for (const { id, status, note } of report.checks) {
    if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`${id} is in the report more than once`);
    if (!statuses.includes(status)) faults.push(`${id} has the status ${status}`);
    if (status !== 'pass' && note === undefined) faults.push(`${id} does not say why it is ${status}`);
  }
  const points = report.points.map(({ point }) => point).join();
  return points === '1,2,3,4,5' ? faults : [...faults, `the report has the points ${points}, not all five`];
}

const LONGEST = 600;

/** Text that a runtime may have written: one line, no control characters, not endless. */
function plain(text: string): string {
  return truncate(singleLine(text).trim(), LONGEST);
}
