/** Runs programs that were approved: what runs is the approved file, or the call fails. */
import { LoopError } from '../../base/errors.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { assertProgramApproved, assertProgramUnchanged, fingerprintProgram } from './program.js';
import { type ProcessResult, type ProcessSpec, runProcess } from './run-process.js';

/** In this time an interpreter has read the program that it was started with. */
const STARTUP_CHECK_MS = 500;

/**
 * Runs an approved program. Between the last look at its file and the moment at which the system or an interpreter reads it, the file
 * can be replaced. That cannot be prevented, but it shows: then the program is stopped, and the call fails whatever it has printed.
 */
export async function runApprovedProgram(
  command: ProcessSpec,
  signal: AbortSignal,
  approved: ApprovalTarget,
  named: string,
  startMs: number = STARTUP_CHECK_MS,
): Promise<ProcessResult> {
  const program = await fingerprintProgram(command.file, named);
  // guard: program-matches-approval
  assertProgramApproved(approved, program.target, named);
  const look = () => assertProgramUnchanged(program, () => replacedError(named, command.file));
  const looks: Promise<void>[] = [];
  const stopped = new AbortController();
  const timer = setTimeout(() => {
    looks.push(look());
    looks[0]?.catch(/* guard: changed-program-stopped */ (error) => stopped.abort(error));
  }, startMs);
  try {
    const ending = await runProcess(command, AbortSignal.any([signal, stopped.signal]));
    // guard: program-checked-after-run
    await (looks[0] ?? look());
    return ending;
  } finally {
    clearTimeout(timer);
  }
}

function replacedError(named: string, path: string): LoopError {
  const message = `${named} was changed or replaced while it was started, so other bytes than the approved ones may have run. It was stopped; look at what it did before you ask again.`;
  return new LoopError('TOOL_FAILED', message, { path });
}
