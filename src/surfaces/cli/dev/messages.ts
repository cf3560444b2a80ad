/** The messages between `rondo dev` and the child processes that hold the definitions. */
import type { BadFile } from '../../compose.js';

/** The environment variable that marks such a child process. */
export const DEV_PROCESS_ENV = 'RONDO_DEV_PROCESS';

/** A loop of the project, as it was loaded. */
export interface LoadedLoop {
  readonly id: string;
  readonly version: string;
  /** The digest of the definition. */
  readonly digest: string;
  readonly file?: string;
}

/** What a child process loaded. */
export interface LoadReport {
  readonly loops: readonly LoadedLoop[];
  readonly bad: readonly BadFile[];
  /** Modules that were not imported, because they define no loops. */
  readonly skipped: readonly BadFile[];
}

/** A message from a child process. It has exactly one member. */
export interface DevProgress {
  readonly loaded?: LoadReport;
  /** Why the project could not be loaded at all. */
  readonly failed?: string;
}

/** The message to a child process: take no more work, finish the turns that are running, and exit. */
export interface DevRequest {
  readonly stop: true;
}
