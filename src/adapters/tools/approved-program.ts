/** Runs approved programs. The call fails if the file that runs may differ from the approved one. */
import { LoopError } from '../../base/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { assertProgramApproved, assertProgramUnchanged, fingerprintProgram } from './program.js';
import { type ProcessResult, type ProcessSpec, runProcess } from './run-process.js';

/** The time within which an interpreter has read the program it was started with. */
const STARTUP_CHECK_MS = 500;

/**
 * Runs an approved program. The file can be replaced between the last check and the moment at which the system or an
 * interpreter reads it. This race cannot be prevented, but it is detected: the program is stopped, and the call fails
 * whatever the program has printed.
 */
export async function runApprovedProgram(
  command: ProcessSpec,
  signal: AbortSignal,
  approved: ApprovalTarget,
  displayName: string,
  startMs: number = STARTUP_CHECK_MS,
): Promise<ProcessResult> {
  const program = await fingerprintProgram(command.file, displayName);
  // guard: program-matches-approval
  assertProgramApproved(approved, program.target, displayName);
  const check = () => assertProgramUnchanged(program, () => replacedError(displayName, command.file));
  let startupCheck: Promise<void> | undefined;
  const changed = new AbortController();
  const timer = setTimeout(() => {
    startupCheck = check();
    startupCheck.catch(/* guard: changed-program-stopped */ (error) => changed.abort(error));
  }, startMs);
  try {
    const result = await runProcess(command, AbortSignal.any([signal, changed.signal]));
    // guard: program-checked-after-run
    await (startupCheck ?? check());
    return result;
  } finally {
    clearTimeout(timer);
  }
}

function replacedError(displayName: string, path: string): LoopError {
  const message = `${displayName} was changed or replaced while it was started, so other bytes than the approved ones may have run. It was stopped; check what it did before you ask again.`;
  return new LoopError('TOOL_FAILED', message, { path });
}
