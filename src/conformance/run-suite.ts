/**
 * Judges a runtime: every check on fresh runtimes, one after another, each within its time. A check that hangs or
 * throws has failed; the judgement itself always ends, unless a runtime never lets go of the thread.
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

/** What can be told to `judge`. */
export interface ConformanceOptions {
  /** The ids of the checks to make; the others are reported as not applicable. */
  readonly only?: readonly string[];
  /** The timeout of one check in milliseconds. @default 10000 */
  readonly timeoutMs?: number;
}

/** For a judgement that is watched from outside, and gone on with in another process when the first one was lost. */
export interface CheckObserver {
  /** Told of each check before it is made, and again while it is made. */
  readonly onCheck?: (id: string) => void;
  /** Told how each check of the runtime went. */
  readonly onResult?: (result: CheckResult) => void;
  /** What is known already, by id: these checks are not made. */
  readonly knownResults?: ReadonlyMap<string, CheckResult>;
}

/** How long the census waits for what a runtime emits when its calls are over, in milliseconds. */
const LATE_EVENTS_MS = 50;

/** Holds a runtime against LSEM v0.1. */
export function checkConformance(driver: LsemDriver, options: ConformanceOptions = {}): Promise<ConformanceReport> {
  return runChecks(catalogue, driver, options);
}

/** Holds a runtime against a catalogue of one's own, so that the suite can be put to the test too. */
export async function runChecks(
  checks: readonly ConformanceCheck[],
  driver: LsemDriver,
  options: ConformanceOptions = {},
  watched: CheckObserver = {},
): Promise<ConformanceReport> {
  const { asked, timeoutMs } = validateOptions(checks, driver, options);
  const { onCheck = () => {}, onResult, knownResults = new Map<string, CheckResult>() } = watched;
  const verdicts = new Map<string, CheckVerdict>();
  const history: RecordedRun[] = [];
  let late = false;
  for (const check of inRunOrder(checks.filter(({ id }) => asked(id) && !knownResults.has(id)))) {
    onCheck(check.id);
    if (check.coversAllRuns && !late) {
      late = true;
      // guard: late-events-awaited
      await new Promise((resolve) => setTimeout(resolve, LATE_EVENTS_MS));
    }
    const verdict = await runCheck(check, driver, history, timeoutMs);
    verdicts.set(check.id, verdict);
    onResult?.(verdict.result);
  }
  const known = driver.knownFailures ?? {};
  const rows = checks.map((check) => {
    const row = knownResults.get(check.id) ?? verdicts.get(check.id)?.result ?? skippedResult(check);
    return applyKnownFailure(row, Object.hasOwn(known, check.id) ? known[check.id] : undefined);
  });
  const judgement: Omit<SuiteRun, 'report'> = {
    unprovenChecks: inRunOrder(
      checks.filter(({ id }) => !knownResults.has(id) && verdicts.get(id)?.usesRequiredMembersOnly !== true),
    ),
    rerun: createRerun(driver, verdicts, timeoutMs, onCheck),
  };
  for (const check of suiteChecks) {
    onCheck(check.id);
    const report = reportOf(driver.name, checks, [...rows, checkResultOf(check, 'pass')]);
    const verdict =
      asked(check.id) && !knownResults.has(check.id)
        ? await statusOfWork(check.run({ ...judgement, report }))
        : undefined;
    rows.push(
      knownResults.get(check.id) ??
        (verdict === undefined ? skippedResult(check) : checkResultOf(check, verdict.status, verdict.note)),
    );
  }
  return reportOf(driver.name, checks, rows);
}

/** A failure that the driver says is known is one of its own kind; one that did not happen is a reminder to say so. */
function applyKnownFailure(row: CheckResult, reason: string | undefined): CheckResult {
  if (reason === undefined || row.status === 'not-applicable') return row;
  if (row.status === 'pass') return /* guard: fixed-known-failure-reported */ staleKnownFailure(row, reason);
  return checkResultOf(row, 'known-failure', `known failure: ${reason} Seen: ${row.note}`);
}

/** What a census counts must have been made before. */
function inRunOrder(checks: readonly ConformanceCheck[]): readonly ConformanceCheck[] {
  return [
    ...checks.filter(({ coversAllRuns }) => !coversAllRuns),
    ...checks.filter(({ coversAllRuns }) => coversAllRuns),
  ];
}

function skippedResult(check: Omit<ConformanceCheck, 'run'>): CheckResult {
  return checkResultOf(check, 'not-applicable', 'not asked for');
}

interface CheckVerdict {
  readonly result: CheckResult;
  /** Whether the check did without the optional members of a driver. */
  readonly usesRequiredMembersOnly: boolean;
}

async function runCheck(
  check: ConformanceCheck,
  driver: LsemDriver,
  history: RecordedRun[],
  timeoutMs: number,
): Promise<CheckVerdict> {
  const stage = new CheckContext(driver, history);
  const { status, note } = await statusOfWork(withTimeout(timeoutMs, check.run(stage)));
  const closing = await statusOfWork(withTimeout(timeoutMs, stage.close()));
  if (closing.status !== 'pass') stage.addNote(`closing the runtime: ${closing.note}`);
  const notes = new Set(note === undefined ? stage.notes : [note, ...stage.notes]);
  return {
    result: checkResultOf(check, status, [...notes].join('; ')),
    usesRequiredMembersOnly: stage.usedOptionalMembers.size === 0,
  };
}

function createRerun(
  driver: LsemDriver,
  known: ReadonlyMap<string, CheckVerdict>,
  timeoutMs: number,
  onCheck: (id: string) => void,
): SuiteRun['rerun'] {
  const sides = {
    all: { driver, history: [] as RecordedRun[] },
    required: { driver: withRequiredMembersOnly(driver), history: [] as RecordedRun[] },
  } as const;
  return async (check, members) => {
    const before = members === 'all' ? known.get(check.id) : undefined;
    const side = sides[members];
    onCheck('NEG-01');
    return (before ?? (await runCheck(check, side.driver, side.history, timeoutMs))).result;
  };
}

/** How work ended: a failure of any kind is a verdict, not an exception. */
async function statusOfWork(work: Promise<void>): Promise<{ readonly status: CheckStatus; readonly note?: string }> {
  try {
    await work;
    return { status: 'pass' };
  } catch (thrown) {
    const note = messageOf(thrown);
    if (thrown instanceof NotApplicableError) return { status: 'not-applicable', note };
    return { status: 'fail', note: thrown instanceof CheckFailure ? note : `the check was broken off: ${note}` };
  }
}

async function withTimeout(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new CheckFailure(`it did not end within ${ms} ms`)), ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

const CONFORMANCE_OPTION_NAMES: ReadonlySet<string> = new Set(['only', 'timeoutMs']);

function validateOptions(checks: readonly ConformanceCheck[], driver: LsemDriver, options: ConformanceOptions) {
  for (const key of Object.keys(options)) {
    if (!CONFORMANCE_OPTION_NAMES.has(key))
      throw new TypeError(`judge has no option "${key}"; it has ${[...CONFORMANCE_OPTION_NAMES].join(', ')}.`);
  }
  const { only, timeoutMs = 10_000 } = options;
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) throw new TypeError(`timeoutMs is ${timeoutMs}; give milliseconds.`);
  const known = new Set([...checks, ...suiteChecks].map(({ id }) => id));
  const strange = only?.filter((id) => !known.has(id)) ?? [];
  if (strange.length > 0) throw new TypeError(`There is no check ${strange.join(', ')}; ids are like DEF-01.`);
  const unknown = Object.keys(driver.knownFailures ?? {}).filter((id) => !known.has(id));
  if (unknown.length > 0) throw new TypeError(`knownFailures of the driver: there is no check ${unknown.join(', ')}.`);
  return { asked: (id: string): boolean => only?.includes(id) ?? true, timeoutMs };
}
