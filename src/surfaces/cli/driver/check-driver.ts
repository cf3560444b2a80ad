/**
 * Runs the conformance suite on a driver in a child process. If the driver blocks, throws in a timer or exits, the
 * running check fails, and another process runs the remaining checks; after five lost processes the remaining checks
 * fail too. The driver's stdout is redirected to stderr.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { ProcessGroup } from '../../../base/process-group.js';
import { catalogue } from '../../../conformance/catalogue.js';
import { suiteChecks } from '../../../conformance/checks/suite.js';
import { type CheckResult, type ConformanceReport, checkResultOf, reportOf } from '../../../conformance/report.js';
import type { ConformanceOptions } from '../../../conformance/run-suite.js';
import { UsageError } from '../../settings.js';
import { DRIVER_PROCESS_ENV, type DriverAssignment, type DriverProgress } from './messages.js';

/** The suite gives up after this many lost processes: processes that ended, or were killed because they blocked. */
// guard: lost-processes-bounded
const MAX_LOST_PROCESSES = 5;
/** Extra time for starting a process and loading the driver, in milliseconds. */
const STARTUP_MS = 5_000;
const DEFAULT_TIMEOUT_MS = 10_000;

/** The outcome of one child process. */
type ProcessOutcome =
  | { readonly report: ConformanceReport }
  | { readonly refused: string }
  | { readonly lost: string; readonly check: string | undefined; readonly name: string | undefined };

/** Options of `checkDriver`. */
interface CheckDriverOptions {
  readonly file: string;
  readonly options: ConformanceOptions;
  /** Called for each child process with the function that kills it. */
  readonly onStart: (stop: () => void) => void;
}

/**
 * Returns the report on the runtime of a driver. Throws a UsageError if the file exports no usable driver, a process is
 * lost before the driver is loaded, or an option is invalid.
 */
export async function checkDriver({ file, options, onStart }: CheckDriverOptions): Promise<ConformanceReport> {
  const decided = new Map<string, CheckResult>();
  for (let processCount = 1; ; processCount++) {
    const outcome = await checkInProcess({ file, options, decided: [...decided.values()] }, decided, onStart);
    if ('report' in outcome) return outcome.report;
    if ('refused' in outcome)
      throw new UsageError(`The driver ${file} cannot be used: ${outcome.refused.replace(/\.$/, '')}.`);
    const { check, name } = outcome;
    if (check === undefined || name === undefined) {
      throw new UsageError(`The driver ${file} was not loaded: ${outcome.lost}.`);
    }
    // guard: lost-check-fails
    decided.set(check, failedResult(check, outcome.lost));
    if (processCount === MAX_LOST_PROCESSES) return reportAfterGivingUp(name, options, decided);
  }
}

function failedResult(id: string, note: string): CheckResult {
  const check = [...catalogue, ...suiteChecks].find((each) => each.id === id);
  return checkResultOf(check ?? { id, section: '', level: 'MUST', title: id }, 'fail', note);
}

/** Returns the report for a driver that lost too many processes. Selected checks without a result fail. */
function reportAfterGivingUp(
  name: string,
  { only }: ConformanceOptions,
  decided: ReadonlyMap<string, CheckResult>,
): ConformanceReport {
  const rows = [...catalogue, ...suiteChecks].map((check) => {
    if (only?.includes(check.id) === false) return checkResultOf(check, 'not-applicable', 'not selected');
    return decided.get(check.id) ?? failedResult(check.id, `not run: the driver lost ${MAX_LOST_PROCESSES} processes`);
  });
  return reportOf(name, catalogue, rows);
}

/** Runs checks in one child process until it reports, refuses the driver or is lost. Adds each result to `decided`. */
function checkInProcess(
  assignment: DriverAssignment,
  decided: Map<string, CheckResult>,
  onStart: CheckDriverOptions['onStart'],
): Promise<ProcessOutcome> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = assignment.options;
  // A check and the closing of its runtimes each take up to `timeoutMs` without a message.
  const limitMs = 2 * timeoutMs + STARTUP_MS;
  const child = spawnDriverProcess();
  const group = child.pid === undefined ? undefined : new ProcessGroup(child.pid);
  onStart(() => group?.end());
  let check: string | undefined;
  let name: string | undefined;
  return new Promise<ProcessOutcome>((resolve) => {
    const settle = (outcome: ProcessOutcome): void => {
      clearTimeout(timer);
      // guard: messages-after-report-ignored
      child.off('message', onMessage);
      // guard: settled-process-ended
      group?.end();
      resolve(outcome);
    };
    const lose = (reason: string): void =>
      settle({ lost: reason, /* guard: lost-process-names-its-check */ check, name });
    const onTimeout = (): void => lose(`the driver blocked its process for ${limitMs} ms`);
    let timer = setTimeout(onTimeout, limitMs);
    const onMessage = (message: unknown): void => {
      const progress = message as DriverProgress;
      clearTimeout(timer);
      // guard: silence-timer-restarted
      timer = setTimeout(onTimeout, limitMs);
      if (progress.ready) child.send(assignment);
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

/**
 * Starts this program again as a driver process. Its stdout is redirected to stderr, because stdout is for the report.
 */
function spawnDriverProcess(): ChildProcess {
  return spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', 'conformance'], {
    stdio: ['ignore', /* guard: driver-stdout-redirected */ 2, 2, 'ipc'],
    env: { ...process.env, [DRIVER_PROCESS_ENV]: '1' },
    detached: true,
  });
}
