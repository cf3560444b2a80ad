/** Runs approved programs. The call fails if the file that runs may differ from the approved one. */
import { LoopError } from '../../base/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { assertProgramApproved, assertProgramUnchanged, fingerprintProgram } from './program.js';
import { type ProcessResult, type ProcessSpec, runProcess } from './run-process.js';

/** The delay after which a started program is checked again. An interpreter is assumed to read its file within it. */
const STARTUP_CHECK_MS = 500;

/**
 * Runs an approved program. Throws TOOL_NOT_ADMITTED, and runs nothing, if the file is not the approved one. The file
 * can be replaced between this check and the moment at which the system or an interpreter reads it. This race cannot be
 * prevented, but it is detected `startMs` milliseconds after the start, or when the program exits before that. The
 * program is then stopped, and the call fails with TOOL_FAILED, whatever the program has printed.
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
