/**
 * Monitors the resources of a sandbox as a whole: the number of its processes, and the memory of these processes and of
 * the files in its /tmp and /dev/shm. POSIX has no resource limits for a group of processes. The processes are listed
 * from the /proc of the sandbox, so none of them can hide. A sandbox that cannot be monitored is stopped.
 */
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { SandboxLimits } from './limits.js';

/** The reason why a sandbox is stopped. */
export type SandboxStopReason = 'processes' | 'memory' | 'unmonitored';

const POLL_INTERVAL_MS = 50;
const TMPFS_PATHS = ['/tmp', '/dev/shm'];
/** The number of processes in a sandbox that do not belong to the command: the first one is bubblewrap itself. */
const BUBBLEWRAP_PROCESSES = 1;

/**
 * Monitors a sandbox until the returned function is called.
 * @param info the stream on which bubblewrap reports the process id of the sandbox.
 * @param stop called at regular intervals while the sandbox exceeds a limit or cannot be monitored.
 */
export function monitorSandbox(
  info: Readable,
  limits: SandboxLimits,
  stop: (reason: SandboxStopReason) => void,
): () => void {
  let infoText = '';
  let timer: NodeJS.Timeout | undefined;
  info.setEncoding('utf8').on('error', () => undefined);
  info.on('data', (chunk: string) => {
    infoText += chunk;
    const pid = /"child-pid": (\d+)/.exec(infoText)?.[1];
    if (pid === undefined || timer !== undefined) return;
    timer = setInterval(() => {
      const reason = findStopReason(`/proc/${pid}/root`, limits);
      if (reason !== undefined) stop(reason);
    }, POLL_INTERVAL_MS);
  });
  return () => {
    clearInterval(timer);
    info.destroy();
  };
}

/** Returns the reason to stop a sandbox; undefined if it is within its limits, not set up yet, or gone. */
function findStopReason(root: string, limits: SandboxLimits): SandboxStopReason | undefined {
  try {
    const proc = `${root}/proc`;
    // Until the sandbox is set up, its root is that of the machine.
    if (statSync(proc).dev === statSync('/proc').dev) return undefined;
    const processes = readdirSync(proc).filter((name) => /^\d+$/.test(name));
    // guard: process-count-limited
    if (processes.length - BUBBLEWRAP_PROCESSES > limits.maxProcesses) return 'processes';
    const processDirectories = processes.map((pid) => `${proc}/${pid}`);
    const fileBytes = tmpfsBytes(root);
    if (fileBytes + sumBy(processDirectories, residentBytes) <= limits.maxMemoryBytes) return undefined;
    // This sum counts shared pages once per process. The exact sum is more expensive, so it is computed only now.
    // guard: memory-limited
    return fileBytes + sumBy(processDirectories, proportionalBytes) > limits.maxMemoryBytes ? 'memory' : undefined;
  } catch (error) {
    return isProcessGone(error) ? undefined : 'unmonitored';
  }
}

function tmpfsBytes(root: string): number {
  return sumBy(TMPFS_PATHS, (path) => {
    // A root of the tools may be mounted there instead of a tmpfs.
    if (statSync(root + path).dev === statSync(path, { throwIfNoEntry: false })?.dev) return 0;
    const { blocks, bfree, bsize } = statfsSync(root + path);
    return (blocks - bfree) * bsize;
  });
}

/** Returns the size of the memory of a process, resident or swapped out, that is not backed by a file on disk. */
function residentBytes(processDirectory: string): number {
  return sumKilobyteLines(`${processDirectory}/status`, /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+)/gm);
}

/** Returns the same, with shared pages divided by the number of processes that share them. */
function proportionalBytes(processDirectory: string): number {
  return sumKilobyteLines(`${processDirectory}/smaps_rollup`, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)/gm);
}

function sumKilobyteLines(file: string, lines: RegExp): number {
  try {
    return 1024 * sumBy([...readFileSync(file, 'utf8').matchAll(lines)], ([, count]) => Number(count));
  } catch (error) {
    if (isProcessGone(error)) return 0;
    throw error;
  }
}

function sumBy<T>(items: readonly T[], bytesOf: (item: T) => number): number {
  return items.reduce((total, item) => total + bytesOf(item), 0);
}

function isProcessGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '');
}
