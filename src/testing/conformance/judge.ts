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
import { type CheckResult, type ConformanceReport, reportOf, rowOf, type Status } from './report.js';
import { Stage } from './stage.js';

/** What can be told to `judge`. */
export interface JudgeOptions {
  /** The ids of the checks to make; the others are reported as not applicable. */
  readonly only?: readonly string[];
  /** How long one check may take; 10 seconds unless told. */
  readonly timeoutMs?: number;
}

/** Holds a runtime against LSEM v0.1. */
export function judge(driver: LsemDriver, options: JudgeOptions = {}): Promise<ConformanceReport> {
  return judgeBy(catalogue, driver, options);
}

/** Holds a runtime against a catalogue of one's own, so that the suite can be put to the test too. */
export async function judgeBy(
  checks: readonly Check[],
  driver: LsemDriver,
  options: JudgeOptions = {},
): Promise<ConformanceReport> {
  const { asked, timeoutMs } = settle(checks, options);
  const verdicts = new Map<string, Verdict>();
  const history: Recording[] = [];
  for (const check of inTurn(checks.filter(({ id }) => asked(id)))) {
    verdicts.set(check.id, await verdictOn(check, driver, history, timeoutMs));
  }
  const rows = checks.map((check) => verdicts.get(check.id)?.row ?? unasked(check));
  const judgement: Omit<Judgement, 'report'> = {
    unproven: inTurn(checks.filter(({ id }) => verdicts.get(id)?.frugal !== true)),
    rejudge: rejudging(driver, verdicts, timeoutMs),
  };
  for (const check of suiteChecks) {
    const report = reportOf(driver.name, checks, [...rows, rowOf(check, 'pass')]);
    const verdict = asked(check.id) ? await settled(check.run({ ...judgement, report })) : undefined;
    rows.push(verdict === undefined ? unasked(check) : rowOf(check, verdict.status, verdict.note));
  }
  return reportOf(driver.name, checks, rows);
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

function rejudging(driver: LsemDriver, known: ReadonlyMap<string, Verdict>, timeoutMs: number): Judgement['rejudge'] {
  const sides = {
    all: { driver, history: [] as Recording[] },
    required: { driver: bare(driver), history: [] as Recording[] },
  } as const;
  return async (check, members) => {
    const before = members === 'all' ? known.get(check.id) : undefined;
    const side = sides[members];
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

function settle(checks: readonly Check[], options: JudgeOptions) {
  for (const key of Object.keys(options)) {
    if (!OPTIONS.has(key)) throw new TypeError(`judge has no option "${key}"; it has ${[...OPTIONS].join(', ')}.`);
  }
  const { only, timeoutMs = 10_000 } = options;
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) throw new TypeError(`timeoutMs is ${timeoutMs}; give milliseconds.`);
  const known = new Set([...checks, ...suiteChecks].map(({ id }) => id));
  const strange = only?.filter((id) => !known.has(id)) ?? [];
  if (strange.length > 0) throw new TypeError(`There is no check ${strange.join(', ')}; ids are like DEF-01.`);
  return { asked: (id: string): boolean => only?.includes(id) ?? true, timeoutMs };
}
