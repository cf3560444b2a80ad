/**
 * Judges the runtime of a driver in a process of its own, so that whatever the driver does (write to stdout, block, throw
 * out of a timer, exit) ends at most the check that it did it in. What is left is judged by a further process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { catalogue } from '../../../conformance/catalogue.js';
import { suiteChecks } from '../../../conformance/checks/suite.js';
import { type CheckResult, type ConformanceReport, checkResultOf, reportOf } from '../../../conformance/report.js';
import type { ConformanceOptions } from '../../../conformance/run-suite.js';
import { UsageError } from '../../settings.js';
import { DRIVER_PROCESS_ENV, type DriverAssignment, type DriverProgress } from './messages.js';

/** How many processes a driver may take down before it is given up. */
// guard: lost-processes-bounded
const MAX_LOST_PROCESSES = 5;
/** What a check takes beside its own time: closing its runtimes, and starting a process. */
const OVERHEAD_MS = 5_000;
const DEFAULT_TIMEOUT_MS = 10_000;

/** How one process ended. */
type ProcessOutcome =
  | { readonly report: ConformanceReport }
  | { readonly refused: string }
  | { readonly lost: string; readonly check: string | undefined; readonly name: string | undefined };

export interface JudgeDriverOptions {
  readonly file: string;
  readonly options: ConformanceOptions;
  /** Told how to end what runs, while something does. */
  readonly onStart: (stop: () => void) => void;
}

/** The report on the runtime of a driver; a UsageError if the file holds no driver. */
export async function judgeDriver({ file, options, onStart }: JudgeDriverOptions): Promise<ConformanceReport> {
  const decided = new Map<string, CheckResult>();
  for (let lost = 1; ; lost++) {
    const end = await judgeInProcess({ file, options, decided: [...decided.values()] }, decided, onStart);
    if ('report' in end) return end.report;
    if ('refused' in end) throw new UsageError(`The driver ${file} cannot be used: ${end.refused.replace(/\.$/, '')}.`);
    const { check, name } = end;
    if (check === undefined || name === undefined) {
      throw new UsageError(`The driver ${file} was not loaded: ${end.lost}.`);
    }
    // guard: lost-check-fails
    decided.set(check, failedResult(check, end.lost));
    if (lost === MAX_LOST_PROCESSES) return reportAfterGivingUp(name, options, decided);
  }
}

function failedResult(id: string, note: string): CheckResult {
  const check = [...catalogue, ...suiteChecks].find((each) => each.id === id);
  return checkResultOf(check ?? { id, section: '', level: 'MUST', title: id }, 'fail', note);
}

/** What a driver that takes down one process after another comes to. */
function reportAfterGivingUp(
  name: string,
  { only }: ConformanceOptions,
  decided: ReadonlyMap<string, CheckResult>,
): ConformanceReport {
  const rows = [...catalogue, ...suiteChecks].map((check) => {
    if (only?.includes(check.id) === false) return checkResultOf(check, 'not-applicable', 'not asked for');
    return (
      decided.get(check.id) ??
      failedResult(check.id, `not judged: the driver took down ${MAX_LOST_PROCESSES} processes`)
    );
  });
  return reportOf(name, catalogue, rows);
}

/** Judges until the report is there or the process is lost; every result on the way is kept. */
function judgeInProcess(
  task: DriverAssignment,
  decided: Map<string, CheckResult>,
  onStart: JudgeDriverOptions['onStart'],
): Promise<ProcessOutcome> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = task.options;
  const limitMs = 2 * timeoutMs + OVERHEAD_MS;
  const child = spawnDriverProcess();
  onStart(() => killProcessGroup(child));
  let check: string | undefined;
  let name: string | undefined;
  return new Promise<ProcessOutcome>((resolve) => {
    const settle = (how: ProcessOutcome): void => {
      clearTimeout(timer);
      // guard: messages-after-report-ignored
      child.off('message', onMessage);
      // guard: settled-process-ended
      killProcessGroup(child);
      resolve(how);
    };
    const lose = (why: string): void => settle({ lost: why, /* guard: lost-process-names-its-check */ check, name });
    const late = (): void => lose(`the driver blocked its process for ${limitMs} ms`);
    let timer = setTimeout(late, limitMs);
    const onMessage = (sent: unknown): void => {
      const progress = sent as DriverProgress;
      clearTimeout(timer);
      // guard: silence-timer-restarted
      timer = setTimeout(late, limitMs);
      if (progress.ready) child.send(task);
      name = progress.loaded ?? name;
      check = progress.check ?? check;
      // guard: results-kept-as-they-come
      if (progress.result !== undefined) decided.set(progress.result.id, progress.result);
      if (progress.report !== undefined) settle({ report: progress.report });
      if (progress.refused !== undefined) settle({ refused: progress.refused });
    };
    child.on('message', onMessage);
    child.on('error', (error) => lose(error.message));
    child.on('exit', (code, signal) => lose(`the process of the driver ended (${signal ?? `exit code ${code}`})`));
  });
}

/** The same command line again, its stdout among our messages for people: ours is for the report. */
function spawnDriverProcess(): ChildProcess {
  return spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', 'conformance'], {
    stdio: ['ignore', /* guard: driver-stdout-redirected */ 2, 2, 'ipc'],
    env: { ...process.env, [DRIVER_PROCESS_ENV]: '1' },
    detached: true,
  });
}

/** Ends the process, and those that the driver started. */
function killProcessGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(/* guard: process-group-killed */ -pid, 'SIGKILL');
  } catch {
    // It has ended, and so have those it started.
  }
}
