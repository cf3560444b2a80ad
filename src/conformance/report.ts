/** What is said of a runtime in the end: every check with its status, the five points, and the sum of it. */
import { singleLine, truncate } from '../base/hidden-characters.js';
import type { ConformanceCheck, ConformancePoint, RequirementLevel } from './check.js';

/** `known-failure`: it failed, and the driver says that it is known to, and why. */
export type CheckStatus = 'pass' | 'fail' | 'not-applicable' | 'known-failure';

/** How one check went. */
export interface CheckResult {
  readonly id: string;
  readonly section: string;
  readonly level: RequirementLevel;
  readonly status: CheckStatus;
  readonly title: string;
  /** Why it failed or could not be made, or what to know of a pass. */
  readonly note?: string;
}

/** How a runtime stands to one point of LSEM's section on conformance. */
export interface PointResult {
  readonly point: ConformancePoint;
  readonly text: string;
  readonly status: CheckStatus;
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

const POINT_TEXTS: { readonly [P in ConformancePoint]: string } = {
  1: 'takes definitions as section 4 has them',
  2: 'holds every input and output against its schema',
  3: 'leads calls of all three kinds through the lifecycle',
  4: 'emits the defined events, payloads complete',
  5: 'runs composites as section 7 has them',
};

/** A row of the report. */
export function checkResultOf(
  { id, section, level, title }: Omit<ConformanceCheck, 'run'>,
  status: CheckStatus,
  note?: string,
): CheckResult {
  return {
    id,
    section,
    level,
    status,
    title,
    ...(note === undefined || note === '' ? {} : { note: toSingleLine(note) }),
  };
}

/** The report of a suite whose rows are known. */
export function reportOf(
  runtime: string,
  suite: readonly ConformanceCheck[],
  rows: readonly CheckResult[],
): ConformanceReport {
  const points = ([1, 2, 3, 4, 5] as const).map((point) => {
    const ids = new Set(suite.filter((check) => check.point === point).map(({ id }) => id));
    return { point, text: POINT_TEXTS[point], status: overallStatus(rows.filter(({ id }) => ids.has(id))) };
  });
  const count = (status: CheckStatus): number => rows.filter((row) => row.status === status).length;
  return {
    runtime: toSingleLine(runtime),
    spec: 'LSEM v0.1',
    checks: rows,
    points,
    summary: {
      total: rows.length,
      passed: count('pass'),
      failed: count('fail'),
      notApplicable: count('not-applicable'),
      knownFailures: count('known-failure'),
      conformant: overallStatus(rows) === 'pass',
    },
  };
}

/** A MAY or a SHOULD that fails breaks nothing; a MUST that was not judged leaves the question open. */
function overallStatus(rows: readonly CheckResult[]): CheckStatus {
  const binding = rows.filter(({ level }) => level === 'MUST' || level === 'IMPLIED');
  if (binding.some((row) => row.status === 'fail' && !isStaleKnownFailure(row))) return 'fail';
  const musts = binding.filter(({ level }) => level === 'MUST');
  if (musts.some(({ status }) => status === 'known-failure'))
    return /* guard: known-failure-is-no-pass */ 'known-failure';
  return musts.length > 0 && musts.every((row) => row.status === 'pass' || isStaleKnownFailure(row))
    ? 'pass'
    : 'not-applicable';
}

/** The report in a word, and whether that is what was hoped for: nothing failed that was not known to. */
export function conformanceVerdict({ checks, summary }: ConformanceReport): {
  readonly text: string;
  readonly good: boolean;
} {
  const { knownFailures: known } = summary;
  const unjudged = checks.some(({ level, status }) => level === 'MUST' && status === 'not-applicable');
  if (overallStatus(checks) === 'fail') return { text: 'not conformant', good: false };
  if (unjudged) return { text: 'conformance not shown', good: false };
  const but = known === 0 ? '' : `, but for ${known} known ${known === 1 ? 'failure' : 'failures'}`;
  if (checks.some(isStaleKnownFailure)) return { text: `conformant${but}; a ${STALE_KNOWN_FAILURE}`, good: false };
  return { text: `conformant${but}`, good: true };
}

/** A check that the driver says fails, and that does not: what the driver says has to be changed. */
export function staleKnownFailure(row: CheckResult, reason: string): CheckResult {
  const note = `${STALE_KNOWN_FAILURE}: remove ${row.id} from knownFailures of the driver (reason given: ${reason})`;
  return { ...row, status: 'fail', note: toSingleLine(note) };
}

const STALE_KNOWN_FAILURE = 'known failure no longer fails';

function isStaleKnownFailure({ status, note }: CheckResult): boolean {
  return status === 'fail' && note?.startsWith(STALE_KNOWN_FAILURE) === true;
}

/** How many checks there are of each family, numbered from 01. */
const CHECK_COUNTS = { DEF: 16, VAL: 7, LIF: 13, TRC: 22, CMP: 14, CNF: 1, NEG: 1 } as const;
const CHECK_STATUSES: readonly string[] = ['pass', 'fail', 'not-applicable', 'known-failure'];

/** What a report must not leave out, and does. */
export function findReportProblems(report: ConformanceReport): string[] {
  const expected = Object.entries(CHECK_COUNTS).flatMap(([family, count]) =>
    Array.from({ length: count }, (_, n) => `${family}-${String(n + 1).padStart(2, '0')}`),
  );
  const ids = report.checks.map(({ id }) => id);
  const faults = expected.filter((id) => !ids.includes(id)).map((id) => `${id} is not in the report`);
  if (report.runtime === '') faults.push('the report does not say which runtime was judged');
  for (const { id, status, note } of report.checks) {
    if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`${id} is in the report more than once`);
    if (!CHECK_STATUSES.includes(status)) faults.push(`${id} has the status ${status}`);
    if (status !== 'pass' && note === undefined) faults.push(`${id} does not say why it is ${status}`);
  }
  const points = report.points.map(({ point }) => point).join();
  return points === '1,2,3,4,5' ? faults : [...faults, `the report has the points ${points}, not all five`];
}

const MAX_NOTE_CHARS = 600;

/** Text that a runtime may have written: one line, no control characters, not endless. */
function toSingleLine(text: string): string {
  return truncate(singleLine(text).trim(), MAX_NOTE_CHARS);
}
