/**
 * Resource limits of a sandboxed command. The kernel enforces the size of files and, on Linux 5.14 or newer, the number
 * of tasks of users other than root. See sandbox-monitor.ts for the number of processes and the memory.
 */
import { release } from 'node:os';
import type { MountSource } from './mount-sources.js';
import type { CommandOptions } from './options.js';

/** The limits of one sandbox. */
export interface SandboxLimits {
  readonly maxProcesses: number;
  readonly maxMemoryBytes: number;
  readonly maxFileBytes: number;
}

const GIB = 1024 ** 3;
/** The unit of `ulimit -f`. */
const BLOCK_BYTES = 512;
/**
 * The number of tasks that the kernel allows for each allowed process. It counts threads as tasks, and a build may run
 * many threads in one process.
 */
const TASKS_PER_PROCESS = 16;

/** Returns the limits of the options, with defaults for missing ones. */
export function limitsOf({ maxProcesses, maxMemoryBytes, maxFileBytes }: CommandOptions): SandboxLimits {
  return {
    maxProcesses: maxProcesses ?? 256,
    maxMemoryBytes: maxMemoryBytes ?? 4 * GIB,
    maxFileBytes: maxFileBytes ?? GIB,
  };
}

/** Returns the number of tasks that the kernel allows. */
function maxTasksOf({ maxProcesses }: SandboxLimits): number {
  return maxProcesses * TASKS_PER_PROCESS;
}

/**
 * A shell script that checks the inodes of the mounts, sets the limits, and then executes the program in the remaining
 * arguments, which it does not interpret. If a check or a limit fails, it exits with 125. An existing lower limit
 * cannot be raised and is kept. Shells name the task limit -u or -p.
 */
// guard: file-size-limited
const LIMIT_SCRIPT = `
while [ "$1" != -- ]; do
  if [ "$(stat -c %d:%i -- "$2" 2>/dev/null)" != "$1" ]; then
    echo "Nothing was run: $2 was moved or replaced while the sandbox was set up. Try again."
    exit 125
  fi
  shift 2
done
shift
limit() { ulimit "$1" "$2" 2>/dev/null || [ "$(ulimit "$1")" -le "$2" ] || exit 125; }
ulimit -c 0 || exit 125
limit -f "$1"
if [ "$2" -gt 0 ]; then
  if (ulimit -u) >/dev/null 2>&1; then limit -u "$2"; else limit -p "$2"; fi
fi
shift 2
exec "$@"`;

/**
 * Returns the arguments that run a command with the limits that the kernel enforces, and only if the mounts show these
 * sources.
 */
export function withLimits(
  limits: SandboxLimits,
  sources: readonly MountSource[],
  argv: readonly string[],
): readonly string[] {
  const blocks = Math.ceil(limits.maxFileBytes / BLOCK_BYTES);
  const tasks = countsTasksPerNamespace(release()) ? maxTasksOf(limits) : 0;
  const expectedInodes = sources.flatMap(({ inode, path }) => [inode, path]);
  return ['/bin/sh', '-c', LIMIT_SCRIPT, 'sh', ...expectedInodes, '--', String(blocks), String(tasks), ...argv];
}

/**
 * Returns true if the task limit of this kernel release counts the tasks of a sandbox only (Linux 5.14 or newer). On
 * older kernels, it counts all tasks of the user on the machine, so processes elsewhere could exhaust it.
 */
export function countsTasksPerNamespace(kernel: string): boolean {
  const [major = 0, minor = 0] = kernel.split('.').map(Number);
  return major > 5 || (major === 5 && minor >= 14);
}

/** Formats a number of bytes with the largest binary unit of which it is a multiple. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && value % 1024 === 0 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value} ${units[unit]}`;
}
