/**
 * Watches what a sandbox uses as a whole: how many processes it has, and how much memory they and the files in its /tmp and
 * /dev/shm take. No resource limit of POSIX holds for a group of processes. Its processes are those that its own /proc
 * shows, so none of them can hide. A sandbox that cannot be watched is stopped.
 */
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { SandboxLimits } from './limits.js';

/** Why a sandbox is stopped. */
export type SandboxStopReason = 'processes' | 'memory' | 'unwatched';

const POLL_INTERVAL_MS = 50;
const TMPFS_PATHS = ['/tmp', '/dev/shm'];
/** Of bubblewrap itself, which is the first process in the sandbox. */
const BUBBLEWRAP_PROCESSES = 1;

/**
 * Looks until the returned function is called.
 * @param info where bubblewrap tells the process id of the sandbox.
 */
export function monitorSandbox(
  info: Readable,
  limits: SandboxLimits,
  stop: (excess: SandboxStopReason) => void,
): () => void {
  let told = '';
  let timer: NodeJS.Timeout | undefined;
  info.setEncoding('utf8').on('error', () => undefined);
  info.on('data', (piece: string) => {
    told += piece;
    const pid = /"child-pid": (\d+)/.exec(told)?.[1];
    if (pid === undefined || timer !== undefined) return;
    timer = setInterval(() => {
      const excess = exceededLimitOf(`/proc/${pid}/root`, limits);
      if (excess !== undefined) stop(excess);
    }, POLL_INTERVAL_MS);
  });
  return () => {
    clearInterval(timer);
    info.destroy();
  };
}

/** What a sandbox with this root directory has too much of; undefined if nothing, or if it is not set up yet or gone. */
function exceededLimitOf(root: string, limits: SandboxLimits): SandboxStopReason | undefined {
  try {
    const proc = `${root}/proc`;
    // Until it is set up, the root is that of the whole machine.
    if (statSync(proc).dev === statSync('/proc').dev) return undefined;
    const processes = readdirSync(proc).filter((name) => /^\d+$/.test(name));
    // guard: process-count-limited
    if (processes.length - BUBBLEWRAP_PROCESSES > limits.maxProcesses) return 'processes';
    const places = processes.map((pid) => `${proc}/${pid}`);
    const files = tmpfsBytes(root);
    if (files + sumBy(places, residentBytes) <= limits.maxMemoryBytes) return undefined;
    // Pages that several processes share were counted for each of them. The exact count takes longer.
    // guard: memory-limited
    return files + sumBy(places, proportionalBytes) > limits.maxMemoryBytes ? 'memory' : undefined;
  } catch (error) {
    return isProcessGone(error) ? undefined : 'unwatched';
  }
}

function tmpfsBytes(root: string): number {
  return sumBy(TMPFS_PATHS, (path) => {
    // A root of the tools may be mounted there.
    if (statSync(root + path).dev === statSync(path, { throwIfNoEntry: false })?.dev) return 0;
    const { blocks, bfree, bsize } = statfsSync(root + path);
    return (blocks - bfree) * bsize;
  });
}

/** The memory of a process that is not backed by a file of the disk. */
function residentBytes(place: string): number {
  return sumKilobyteLines(`${place}/status`, /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+)/gm);
}

/** The same, with shared pages divided among those who share them. */
function proportionalBytes(place: string): number {
  return sumKilobyteLines(`${place}/smaps_rollup`, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)/gm);
}

function sumKilobyteLines(file: string, lines: RegExp): number {
  try {
    return 1024 * sumBy([...readFileSync(file, 'utf8').matchAll(lines)], ([, count]) => Number(count));
  } catch (error) {
    if (isProcessGone(error)) return 0;
    throw error;
  }
}

function sumBy<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}

function isProcessGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '');
}
