/**
 * Runs the conformance suite: every check on new runtimes, one after another, each with a time limit. A check fails if
 * it exceeds the limit or throws anything but NotApplicableError. The suite always ends, unless a runtime blocks the
 * thread.
 */
import { CheckFailure, messageOf, NotApplicableError } from './assertions.js';
import { catalogue } from './catalogue.js';
import type { ConformanceCheck } from './check.js';
import { CheckContext } from './check-context.js';
import { type SuiteRun, suiteChecks, withRequiredMembersOnly } from './checks/suite.js';
import type { LsemDriver } from './driver.js';
import type { RecordedRun } from './recorded-run.js';
import {
  type CheckResult,
  type CheckStatus,
  type ConformanceReport,
  checkResultOf,
  reportOf,
  staleKnownFailure,
} from './report.js';

/** Options of `checkConformance`. */
export interface ConformanceOptions {
  /**
   * The ids of the checks to run, such as `DEF-01`. The others are reported as not applicable.
   * @default all checks
   */
  readonly only?: readonly string[];
  /**
   * The time limit of one check, in milliseconds.
   * @default 10000
   */
  readonly timeoutMs?: number;
}

/** Observes a suite that another process may continue if this one is lost. */
interface CheckObserver {
  /** Called before each check and, with `NEG-01`, before each check that NEG-01 runs again. */
  readonly onCheck?: (id: string) => void;
  /** Called with the result of each check of the runtime, before known failures are applied. */
  readonly onResult?: (result: CheckResult) => void;
  /** Results of earlier processes, by check id. These checks are not run. */
  readonly knownResults?: ReadonlyMap<string, CheckResult>;
}

/** The wait for late events before the checks over all runs, in milliseconds. */
const LATE_EVENTS_MS = 50;

/**
 * Checks a runtime against LSEM v0.1, the Loop Stack Execution Model.
 *
 * @throws {TypeError} If an option is unknown, `timeoutMs` is out of range, or `only` or `knownFailures` has an unknown
 * id.
 *
 * @example
 * const report = await checkConformance(driver, { timeoutMs: 30_000 });
 * console.log(renderConformance(report, { color: false }));
 */
export function checkConformance(driver: LsemDriver, options: ConformanceOptions = {}): Promise<ConformanceReport> {
  return runChecks(catalogue, driver, options);
}

/** Runs a given catalogue of checks, reports progress to an observer, and reuses the results that it already has. */
export async function runChecks(
  checks: readonly ConformanceCheck[],
  driver: LsemDriver,
  options: ConformanceOptions = {},
  observer: CheckObserver = {},
): Promise<ConformanceReport> {
  const { isSelected, timeoutMs } = validateOptions(checks, driver, options);
  const { onCheck = () => {}, onResult, knownResults = new Map<string, CheckResult>() } = observer;
  const verdicts = new Map<string, CheckVerdict>();
  const history: RecordedRun[] = [];
  let hasWaited = false;
  for (const check of inRunOrder(checks.filter(({ id }) => isSelected(id) && !knownResults.has(id)))) {
    onCheck(check.id);
    if (check.coversAllRuns && !hasWaited) {
      hasWaited = true;
      // guard: late-events-awaited
      await new Promise((resolve) => setTimeout(resolve, LATE_EVENTS_MS));
    }
    const verdict = await runCheck(check, driver, history, timeoutMs);
    verdicts.set(check.id, verdict);
    onResult?.(verdict.result);
  }
  const knownFailures = driver.knownFailures ?? {};
  const rows = checks.map((check) => {
    const row = knownResults.get(check.id) ?? verdicts.get(check.id)?.result ?? skippedResult(check);
    return applyKnownFailure(row, Object.hasOwn(knownFailures, check.id) ? knownFailures[check.id] : undefined);
  });
  const suiteRun: Omit<SuiteRun, 'report'> = {
    unprovenChecks: inRunOrder(
      checks.filter(({ id }) => !knownResults.has(id) && verdicts.get(id)?.usesRequiredMembersOnly !== true),
    ),
    rerun: createRerun(driver, verdicts, timeoutMs, onCheck),
  };
  for (const check of suiteChecks) {
    onCheck(check.id);
    const report = reportOf(driver.name, checks, [...rows, checkResultOf(check, 'pass')]);
    const verdict =
      isSelected(check.id) && !knownResults.has(check.id)
        ? await statusOfWork(check.run({ ...suiteRun, report }))
        : undefined;
    rows.push(
      knownResults.get(check.id) ??
        (verdict === undefined ? skippedResult(check) : checkResultOf(check, verdict.status, verdict.note)),
    );
  }
  return reportOf(driver.name, checks, rows);
}

/** Marks a failure that the driver declares as known. A declared failure that passes is reported as stale. */
function applyKnownFailure(row: CheckResult, reason: string | undefined): CheckResult {
  if (reason === undefined || row.status === 'not-applicable') return row;
  if (row.status === 'pass') return /* guard: fixed-known-failure-reported */ staleKnownFailure(row, reason);
  return checkResultOf(row, 'known-failure', `known failure: ${reason} Seen: ${row.note}`);
}

/** Sorts the checks that cover all runs to the end. */
function inRunOrder(checks: readonly ConformanceCheck[]): readonly ConformanceCheck[] {
  return [
    ...checks.filter(({ coversAllRuns }) => !coversAllRuns),
    ...checks.filter(({ coversAllRuns }) => coversAllRuns),
  ];
}

function skippedResult(check: Omit<ConformanceCheck, 'run'>): CheckResult {
  return checkResultOf(check, 'not-applicable', 'not selected');
}

interface CheckVerdict {
  readonly result: CheckResult;
  /** True if the check used no optional member of the driver. */
  readonly usesRequiredMembersOnly: boolean;
}

async function runCheck(
  check: ConformanceCheck,
  driver: LsemDriver,
  history: RecordedRun[],
  timeoutMs: number,
): Promise<CheckVerdict> {
  const context = new CheckContext(driver, history);
  const { status, note } = await statusOfWork(withTimeout(timeoutMs, check.run(context)));
  const closing = await statusOfWork(withTimeout(timeoutMs, context.close()));
  if (closing.status !== 'pass') context.addNote(`closing the runtime: ${closing.note}`);
  const notes = new Set(note === undefined ? context.notes : [note, ...context.notes]);
  return {
    result: checkResultOf(check, status, [...notes].join('; ')),
    usesRequiredMembersOnly: context.requestedOptionalMembers.size === 0,
  };
}

/** Returns the function that NEG-01 uses to run a check again. A result with all members is reused if there is one. */
function createRerun(
  driver: LsemDriver,
  verdicts: ReadonlyMap<string, CheckVerdict>,
  timeoutMs: number,
  onCheck: (id: string) => void,
): SuiteRun['rerun'] {
  const variants = {
    all: { driver, history: [] as RecordedRun[] },
    required: { driver: withRequiredMembersOnly(driver), history: [] as RecordedRun[] },
  } as const;
  return async (check, members) => {
    const verdict = members === 'all' ? verdicts.get(check.id) : undefined;
    const variant = variants[members];
    onCheck('NEG-01');
    return (verdict ?? (await runCheck(check, variant.driver, variant.history, timeoutMs))).result;
  };
}

/** Awaits work and returns its status. Never rejects. */
async function statusOfWork(work: Promise<void>): Promise<{ readonly status: CheckStatus; readonly note?: string }> {
  try {
    await work;
    return { status: 'pass' };
  } catch (thrown) {
    const note = messageOf(thrown);
    if (thrown instanceof NotApplicableError) return { status: 'not-applicable', note };
    return { status: 'fail', note: thrown instanceof CheckFailure ? note : `the check was aborted: ${note}` };
  }
}

/** Settles like `work`, or rejects with CheckFailure after `ms` milliseconds. The work itself is not stopped. */
async function withTimeout(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new CheckFailure(`it did not end within ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

const CONFORMANCE_OPTION_NAMES: ReadonlySet<string> = new Set(['only', 'timeoutMs']);

function validateOptions(checks: readonly ConformanceCheck[], driver: LsemDriver, options: ConformanceOptions) {
  for (const key of Object.keys(options)) {
    if (!CONFORMANCE_OPTION_NAMES.has(key))
      throw new TypeError(
        `checkConformance has no option "${key}"; its options are ${[...CONFORMANCE_OPTION_NAMES].join(', ')}.`,
      );
  }
  const { only, timeoutMs = 10_000 } = options;
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31))
    throw new TypeError(`timeoutMs must be positive and less than 2^31, not ${timeoutMs}.`);
  const ids = new Set([...checks, ...suiteChecks].map(({ id }) => id));
  const unknownIds = only?.filter((id) => !ids.has(id)) ?? [];
  if (unknownIds.length > 0)
    throw new TypeError(`There is no check ${unknownIds.join(', ')}; an example of an id is DEF-01.`);
  const unknownFailures = Object.keys(driver.knownFailures ?? {}).filter((id) => !ids.has(id));
  if (unknownFailures.length > 0)
    throw new TypeError(`knownFailures of the driver: there is no check ${unknownFailures.join(', ')}.`);
  return { isSelected: (id: string): boolean => only?.includes(id) ?? true, timeoutMs };
}
