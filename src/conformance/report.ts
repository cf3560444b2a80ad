/**
 * The conformance report: the result of every check, the five points of LSEM (the Loop Stack Execution Model), and a
 * summary. A known failure is a failure that the driver declares; it is stale if the check passes.
 */
import { singleLine, truncate } from '../base/hidden-characters.js';
import type { ConformanceCheck, ConformancePoint, RequirementLevel } from './check.js';

/** The status of a check. `known-failure`: the check failed, and the driver declares the failure with a reason. */
export type CheckStatus = 'pass' | 'fail' | 'not-applicable' | 'known-failure';

/** The result of one check. */
export interface CheckResult {
  readonly id: string;
  readonly section: string;
  readonly level: RequirementLevel;
  readonly status: CheckStatus;
  readonly title: string;
  /** The reason of a failure or of a check that is not applicable, or a remark on a pass. */
  readonly note?: string;
}

/** The result for one point of LSEM's section on conformance. */
export interface PointResult {
  readonly point: ConformancePoint;
  readonly text: string;
  readonly status: CheckStatus;
}

/** A conformance report, as JSON. */
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
     * True if every MUST passed and no IMPLIED check failed. A known failure of an IMPLIED check is accepted, that of a
     * MUST is not. A stale known failure counts as passed.
     */
    readonly conformant: boolean;
  };
}

const POINT_TEXTS: { readonly [P in ConformancePoint]: string } = {
  1: 'accepts definitions as specified in section 4',
  2: 'validates every input and output against its schema',
  3: 'runs calls of all three kinds through the lifecycle',
  4: 'emits the defined events with complete payloads',
  5: 'runs composites as specified in section 7',
};

/** Returns the result of a check. The note is made one line of limited length; an empty one is omitted. */
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

/** Returns the report of a suite with these results. */
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

/**
 * Returns the status of several checks. Only MUST and IMPLIED count. It is `not-applicable` if there is no MUST or a
 * MUST did not apply. A stale known failure counts as passed.
 */
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

/**
 * Returns the verdict as text. `good` is true if the runtime is conformant except for known failures, and none is
 * stale.
 */
export function conformanceVerdict({ checks, summary }: ConformanceReport): {
  readonly text: string;
  readonly good: boolean;
} {
  const { knownFailures } = summary;
  const hasUndecidedMust = checks.some(({ level, status }) => level === 'MUST' && status === 'not-applicable');
  if (overallStatus(checks) === 'fail') return { text: 'not conformant', good: false };
  if (hasUndecidedMust) return { text: 'conformance not shown', good: false };
  const failureWord = knownFailures === 1 ? 'failure' : 'failures';
  const exception = knownFailures === 0 ? '' : `, except for ${knownFailures} known ${failureWord}`;
  if (checks.some(isStaleKnownFailure))
    return { text: `conformant${exception}; a ${STALE_KNOWN_FAILURE}`, good: false };
  return { text: `conformant${exception}`, good: true };
}

/** Returns the result of a check that passed although the driver declares it as a known failure. */
export function staleKnownFailure(row: CheckResult, reason: string): CheckResult {
  const note = `${STALE_KNOWN_FAILURE}: remove ${row.id} from knownFailures of the driver (reason given: ${reason})`;
  return { ...row, status: 'fail', note: toSingleLine(note) };
}

const STALE_KNOWN_FAILURE = 'known failure no longer fails';

function isStaleKnownFailure({ status, note }: CheckResult): boolean {
  return status === 'fail' && note?.startsWith(STALE_KNOWN_FAILURE) === true;
}

/** The number of checks by the prefix of their ids. The ids of a prefix are numbered from 01. */
const CHECK_COUNTS = { DEF: 16, VAL: 7, LIF: 13, TRC: 22, CMP: 14, CNF: 1, NEG: 1 } as const;
const CHECK_STATUSES: readonly string[] = ['pass', 'fail', 'not-applicable', 'known-failure'];

/**
 * Returns the problems of a report: missing or duplicate checks, invalid statuses, and missing notes, points or
 * runtime.
 */
export function findReportProblems(report: ConformanceReport): string[] {
  const expectedIds = Object.entries(CHECK_COUNTS).flatMap(([family, count]) =>
    Array.from({ length: count }, (_, n) => `${family}-${String(n + 1).padStart(2, '0')}`),
  );
  const ids = report.checks.map(({ id }) => id);
  const problems = expectedIds.filter((id) => !ids.includes(id)).map((id) => `${id} is not in the report`);
  if (report.runtime === '') problems.push('the report does not name the runtime');
  for (const { id, status, note } of report.checks) {
    if (ids.indexOf(id) !== ids.lastIndexOf(id)) problems.push(`${id} is in the report more than once`);
    if (!CHECK_STATUSES.includes(status)) problems.push(`${id} has the status ${status}`);
    if (status !== 'pass' && note === undefined) problems.push(`${id} has no reason for the status ${status}`);
  }
  const points = report.points.map(({ point }) => point).join();
  return points === '1,2,3,4,5' ? problems : [...problems, `the report has the points ${points}, not all five`];
}

const MAX_NOTE_CHARS = 600;

/** Makes text of a runtime safe: one line, without hidden characters, and of limited length. */
function toSingleLine(text: string): string {
  return truncate(singleLine(text).trim(), MAX_NOTE_CHARS);
}
