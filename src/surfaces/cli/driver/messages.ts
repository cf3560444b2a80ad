/** The messages between the child process of a driver and its parent process. */
import type { CheckResult, ConformanceReport } from '../../../conformance/report.js';
import type { ConformanceOptions } from '../../../conformance/run-suite.js';

/** The environment variable that marks the child process of a driver. */
export const DRIVER_PROCESS_ENV = 'RONDO_DRIVER_PROCESS';

/** The message to the child process, sent once. */
export interface DriverAssignment {
  readonly file: string;
  readonly options: ConformanceOptions;
  /** The results of earlier processes. */
  readonly decided: readonly CheckResult[];
}

/** A message from the child process. It has exactly one member. */
export interface DriverProgress {
  readonly ready?: true;
  /** The name of the driver, once it is loaded. */
  readonly loaded?: string;
  /** The check that starts now. */
  readonly check?: string;
  readonly result?: CheckResult;
  readonly report?: ConformanceReport;
  /** The reason why the driver cannot be used. */
  readonly refused?: string;
}
