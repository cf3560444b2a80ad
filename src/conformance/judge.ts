/**
 * Judges a runtime: every check on fresh runtimes, one after another, each within its time. A check that hangs or
 * throws has failed; the judgement itself always ends, unless a runtime never lets go of the thread.
 */
import { catalogue } from './catalogue.js';
import type { Check } from './check.js';
import { bare, type Judgement, suiteChecks } from './checks/report.js';
import type { LsemDriver } from './driver.js';
import { CheckFailure, messageOf, NotApplicable } from './failure.js';
import type { Recording } from './recording.js';
import { type CheckResult, type ConformanceReport, reminderOf, reportOf, rowOf, type Status } from './report.js';
import { Stage } from './stage.js';

/** What can be told to `judge`. */
export interface JudgeOptions {
  /** The ids of the checks to make; the others are reported as not applicable. */
  readonly only?: readonly string[];
  /** How long one check may take; 10 seconds unless told. */
  readonly timeoutMs?: number;
}

/** For a judgement that is watched from outside, and gone on with in another process when the first one was lost. */
export interface Watched {
  /** Told of each check before it is made, and again while it is made. */
  readonly onCheck?: (id: string) => void;
  /** Told how each check of the runtime went. */
  readonly onResult?: (result: CheckResult) => void;
  /** What is known already, by id: these checks are not made. */
  readonly decided?: ReadonlyMap<string, CheckResult>;
}

/** How long the census waits for what a runtime emits when its calls are over, in milliseconds. */
const LATE_MS = 50;

/** Holds a runtime against LSEM v0.1. */
export function judge(driver: LsemDriver, options: JudgeOptions = {}): Promise<ConformanceReport> {
  return judgeBy(catalogue, driver, options);
}

/** Holds a runtime against a catalogue of one's own, so that the suite can be put to the test too. */
export async function judgeBy(
  checks: readonly Check[],
  driver: LsemDriver,
  options: JudgeOptions = {},
  watched: Watched = {},
): Promise<ConformanceReport> {
  const { asked, timeoutMs } = settle(checks, driver, options);
  const { onCheck = () => {}, onResult, decided = new Map<string, CheckResult>() } = watched;
  const verdicts = new Map<string, Verdict>();
  const history: Recording[] = [];
  let late = false;
  for (const check of inTurn(checks.filter(({ id }) => asked(id) && !decided.has(id)))) {
    onCheck(check.id);
    if (check.census && !late) {
      late = true;
      // guard: late-events-awaited
      await new Promise((resolve) => setTimeout(resolve, LATE_MS));
    }
    const verdict = await verdictOn(check, driver, history, timeoutMs);
    verdicts.set(check.id, verdict);
    onResult?.(verdict.row);
  }
  const known = driver.knownFailures ?? {};
  const rows = checks.map((check) => {
    const row = decided.get(check.id) ?? verdicts.get(check.id)?.row ?? unasked(check);
    return heldAgainst(row, Object.hasOwn(known, check.id) ? known[check.id] : undefined);
  });
  const judgement: Omit<Judgement, 'report'> = {
    unproven: inTurn(checks.filter(({ id }) => !decided.has(id) && verdicts.get(id)?.frugal !== true)),
    rejudge: rejudging(driver, verdicts, timeoutMs, onCheck),
  };
  for (const check of suiteChecks) {
    onCheck(check.id);
    const report = reportOf(driver.name, checks, [...rows, rowOf(check, 'pass')]);
    const verdict =
      asked(check.id) && !decided.has(check.id) ? await settled(check.run({ ...judgement, report })) : undefined;
    rows.push(
      decided.get(check.id) ?? (verdict === undefined ? unasked(check) : rowOf(check, verdict.status, verdict.note)),
    );
  }
  return reportOf(driver.name, checks, rows);
}

/** A failure that the driver says is known is one of its own kind; one that did not happen is a reminder to say so. */
function heldAgainst(row: CheckResult, reason: string | undefined): CheckResult {
  if (reason === undefined || row.status === 'not-applicable') return row;
  if (row.status === 'pass') return /* guard: fixed-known-failure-reported */ reminderOf(row, reason);
  return rowOf(row, 'known-failure', `known failure: ${reason} Seen: ${row.note}`);
}

/** What a census counts must have been made before. */
function inTurn(checks: readonly Check[]): readonly Check[] {
  return [...checks.filter(({ census }) => !census), ...checks.filter(({ census }) => census)];
}

function unasked(check: Omit<Check, 'run'>): CheckResult {
  return rowOf(check, 'not-applicable', 'not asked for');
}

interface Verdict {
  readonly row: CheckResult;
  /** Whether the check did without the optional members of a driver. */
  readonly frugal: boolean;
}

async function verdictOn(check: Check, driver: LsemDriver, history: Recording[], timeoutMs: number): Promise<Verdict> {
  const stage = new Stage(driver, history);
  const { status, note } = await settled(within(timeoutMs, check.run(stage)));
  const closing = await settled(within(timeoutMs, stage.close()));
  if (closing.status !== 'pass') stage.note(`closing the runtime: ${closing.note}`);
  const notes = new Set(note === undefined ? stage.notes : [note, ...stage.notes]);
  return { row: rowOf(check, status, [...notes].join('; ')), frugal: stage.wanted.size === 0 };
}

function rejudging(
  driver: LsemDriver,
  known: ReadonlyMap<string, Verdict>,
  timeoutMs: number,
  onCheck: (id: string) => void,
): Judgement['rejudge'] {
  const sides = {
    all: { driver, history: [] as Recording[] },
    required: { driver: bare(driver), history: [] as Recording[] },
  } as const;
  return async (check, members) => {
    const before = members === 'all' ? known.get(check.id) : undefined;
    const side = sides[members];
    onCheck('NEG-01');
    return (before ?? (await verdictOn(check, side.driver, side.history, timeoutMs))).row;
  };
}

/** How work ended: a failure of any kind is a verdict, not an exception. */
async function settled(work: Promise<void>): Promise<{ readonly status: Status; readonly note?: string }> {
  try {
    await work;
    return { status: 'pass' };
  } catch (thrown) {
    const note = messageOf(thrown);
    if (thrown instanceof NotApplicable) return { status: 'not-applicable', note };
    return { status: 'fail', note: thrown instanceof CheckFailure ? note : `the check was broken off: ${note}` };
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
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

const OPTIONS: ReadonlySet<string> = new Set(['only', 'timeoutMs']);

function settle(checks: readonly Check[], driver: LsemDriver, options: JudgeOptions) {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.has(key)) throw new TypeError(`judge has no option "${key}"; it has ${[...OPTIONS].join(', ')}.`);
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
