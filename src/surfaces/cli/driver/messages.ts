/** What the process of a driver and the one that watches it say to each other. */

import type { CheckResult, ConformanceReport } from '../../../conformance/report.js';
import type { ConformanceOptions } from '../../../conformance/run-suite.js';

/** Set for the process that a driver runs in. */
export const DRIVER_PROCESS_ENV = 'RONDO_DRIVER_PROCESS';

/** Sent to the process once. */
export interface DriverAssignment {
  readonly file: string;
  readonly options: ConformanceOptions;
  /** What earlier processes found out. */
  readonly decided: readonly CheckResult[];
}

/** Sent by the process, each time with one member. */
export interface DriverProgress {
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
