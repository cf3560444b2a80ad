/**
 * Judges the runtime of a driver in a process of its own, so that whatever the driver does (write to stdout, block, throw
 * out of a timer, exit) ends at most the check that it did it in. What is left is judged by a further process.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { catalogue } from '../../../conformance/catalogue.js';
import { suiteChecks } from '../../../conformance/checks/report.js';
import type { JudgeOptions } from '../../../conformance/judge.js';
import { type CheckResult, type ConformanceReport, reportOf, rowOf } from '../../../conformance/report.js';
import { UsageError } from '../../settings.js';
import { type Assignment, DRIVER_PROCESS, type Progress } from './messages.js';

/** How many processes a driver may take down before it is given up. */
// guard: lost-processes-bounded
const MAX_LOST = 5;
/** What a check takes beside its own time: closing its runtimes, and starting a process. */
const SLACK_MS = 5_000;
const TIMEOUT_MS = 10_000;

/** How one process ended. */
type End =
  | { readonly report: ConformanceReport }
  | { readonly refused: string }
  | { readonly lost: string; readonly check: string | undefined; readonly name: string | undefined };

export interface Judging {
  readonly file: string;
  readonly options: JudgeOptions;
  /** Told how to end what runs, while something does. */
  readonly onStart: (stop: () => void) => void;
}

/** The report on the runtime of a driver; a UsageError if the file holds no driver. */
export async function judgeDriver({ file, options, onStart }: Judging): Promise<ConformanceReport> {
  const decided = new Map<string, CheckResult>();
  for (let lost = 1; ; lost++) {
    const end = await oneProcess({ file, options, decided: [...decided.values()] }, decided, onStart);
    if ('report' in end) return end.report;
    if ('refused' in end) throw new UsageError(`The driver ${file} cannot be used: ${end.refused.replace(/\.$/, '')}.`);
    const { check, name } = end;
    if (check === undefined || name === undefined) {
      throw new UsageError(`The driver ${file} was not loaded: ${end.lost}.`);
    }
    // guard: lost-check-fails
    decided.set(check, failed(check, end.lost));
    if (lost === MAX_LOST) return givenUp(name, options, decided);
  }
}

function failed(id: string, note: string): CheckResult {
  const check = [...catalogue, ...suiteChecks].find((each) => each.id === id);
  return rowOf(check ?? { id, section: '', level: 'MUST', title: id }, 'fail', note);
}

/** What a driver that takes down one process after another comes to. */
function givenUp(name: string, { only }: JudgeOptions, decided: ReadonlyMap<string, CheckResult>): ConformanceReport {
  const rows = [...catalogue, ...suiteChecks].map((check) => {
    if (only?.includes(check.id) === false) return rowOf(check, 'not-applicable', 'not asked for');
    return decided.get(check.id) ?? failed(check.id, `not judged: the driver took down ${MAX_LOST} processes`);
  });
  return reportOf(name, catalogue, rows);
}

/** Judges until the report is there or the process is lost; every result on the way is kept. */
function oneProcess(task: Assignment, decided: Map<string, CheckResult>, onStart: Judging['onStart']): Promise<End> {
  const { timeoutMs = TIMEOUT_MS } = task.options;
  const limitMs = 2 * timeoutMs + SLACK_MS;
  const child = start();
  onStart(() => end(child));
  let check: string | undefined;
  let name: string | undefined;
  return new Promise<End>((resolve) => {
    const settle = (how: End): void => {
      clearTimeout(timer);
      // guard: messages-after-report-ignored
      child.off('message', onMessage);
      // guard: settled-process-ended
      end(child);
      resolve(how);
    };
    const lose = (why: string): void => settle({ lost: why, /* guard: lost-process-names-its-check */ check, name });
    const late = (): void => lose(`the driver blocked its process for ${limitMs} ms`);
    let timer = setTimeout(late, limitMs);
    const onMessage = (sent: unknown): void => {
      const progress = sent as Progress;
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
function start(): ChildProcess {
  return spawn(process.execPath, [...process.execArgv, process.argv[1] ?? '', 'conformance'], {
    stdio: ['ignore', /* guard: driver-stdout-redirected */ 2, 2, 'ipc'],
    env: { ...process.env, [DRIVER_PROCESS]: '1' },
    detached: true,
  });
}

/** Ends the process, and those that the driver started. */
function end({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(/* guard: process-group-killed */ -pid, 'SIGKILL');
  } catch {
    // It has ended, and so have those it started.
  }
}
