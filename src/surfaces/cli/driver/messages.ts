/** What the process of a driver and the one that watches it say to each other. */
import type { JudgeOptions } from '../../../conformance/judge.js';
import type { CheckResult, ConformanceReport } from '../../../conformance/report.js';

/** Set for the process that a driver runs in. */
export const DRIVER_PROCESS = 'RONDO_DRIVER_PROCESS';

/** Sent to the process once. */
export interface Assignment {
  readonly file: string;
  readonly options: JudgeOptions;
  /** What earlier processes found out. */
  readonly decided: readonly CheckResult[];
}

/** Sent by the process, each time with one member. */
export interface Progress {
  readonly ready?: true;
  /** The name of the driver, once it is loaded. */
  readonly loaded?: string;
  /** The check that is made now. */
  readonly check?: string;
  readonly result?: CheckResult;
  readonly report?: ConformanceReport;
  /** Why there is nothing to judge. */
  readonly refused?: string;
}
