/** Ends child processes and reads the rest of their output. */
import type { ProcessGroup } from './process-group.js';

/** How long one round of `drainOutput` waits for output. */
const DRAIN_PAUSE_MS = 50;
const DRAIN_ROUNDS = 4;

/** Periods of {@link stopProcessGroup}. */
interface StopPeriods {
  /** How long the processes may take to exit after SIGTERM. */
  readonly graceMs: number;
  /** How long to wait after SIGKILL: a process in an uninterruptible system call does not exit. */
  readonly killWaitMs: number;
}

/**
 * Sends SIGTERM to a group, then SIGKILL once its leader has exited or the grace period is over. Resolves when the
 * leader has exited, or `killWaitMs` after SIGKILL at the latest. `exited` resolves when the leader has exited.
 */
export async function stopProcessGroup(
  group: ProcessGroup,
  exited: Promise<void>,
  { graceMs, killWaitMs }: StopPeriods,
): Promise<void> {
  group.signal('SIGTERM');
  await Promise.race([exited, delay(graceMs)]);
  group.signal('SIGKILL');
  await Promise.race([exited, delay(killWaitMs)]);
}

/** Resolves after a period. The timer is unreferenced: a running child process keeps the event loop alive by itself. */
function delay(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

/** The output pipes of a child process. */
interface OutputPipes {
  /** Resolves when all pipes are closed. */
  readonly closed: Promise<unknown>;
  isClosed(): boolean;
  /** Returns a number that grows with every chunk read. */
  progress(): number;
}

/**
 * Waits for output that an exited process has written but that is still in the pipes. Stops when the pipes are closed,
 * after a round without output, or after a few rounds: a process that left the group may keep the pipes open.
 */
export async function drainOutput(pipes: OutputPipes): Promise<void> {
  for (let round = 0; round < DRAIN_ROUNDS && !pipes.isClosed(); round++) {
    const before = pipes.progress();
    await Promise.race([pipes.closed, new Promise((resolve) => setTimeout(resolve, DRAIN_PAUSE_MS))]);
    // If the event loop was blocked, the pause may end before pending output was read. This reads it.
    await new Promise((resolve) => setImmediate(resolve));
    if (pipes.progress() === before) return;
  }
}
