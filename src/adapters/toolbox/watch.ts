/**
 * Watches what a sandbox uses as a whole: how many processes it has, and how much memory they and the files in its /tmp and
 * /dev/shm take. No resource limit of POSIX holds for a group of processes. Its processes are those that its own /proc
 * shows, so none of them can hide. A sandbox that cannot be watched is stopped.
 */
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Limits } from './limits.js';

/** Why a sandbox is stopped. */
export type Excess = 'processes' | 'memory' | 'unwatched';

const INTERVAL_MS = 50;
const MEMORY_FILES = ['/tmp', '/dev/shm'];
/** Of bubblewrap itself, which is the first process in the sandbox. */
const OWN_PROCESSES = 1;

/**
 * Looks until the returned function is called.
 * @param info where bubblewrap tells the process id of the sandbox.
 */
export function watchSandbox(info: Readable, limits: Limits, stop: (excess: Excess) => void): () => void {
  let told = '';
  let timer: NodeJS.Timeout | undefined;
  info.setEncoding('utf8').on('error', () => undefined);
  info.on('data', (piece: string) => {
    told += piece;
    const pid = /"child-pid": (\d+)/.exec(told)?.[1];
    if (pid === undefined || timer !== undefined) return;
    timer = setInterval(() => {
      const excess = excessOf(`/proc/${pid}/root`, limits);
      if (excess !== undefined) stop(excess);
    }, INTERVAL_MS);
  });
  return () => {
    clearInterval(timer);
    info.destroy();
  };
}

/** What a sandbox with this root directory has too much of; undefined if nothing, or if it is not set up yet or gone. */
function excessOf(root: string, limits: Limits): Excess | undefined {
  try {
    const proc = `${root}/proc`;
    // Until it is set up, the root is that of the whole machine.
    if (statSync(proc).dev === statSync('/proc').dev) return undefined;
    const processes = readdirSync(proc).filter((name) => /^\d+$/.test(name));
    // guard: process-count-limited
    if (processes.length - OWN_PROCESSES > limits.processes) return 'processes';
    const places = processes.map((pid) => `${proc}/${pid}`);
    const files = memoryFiles(root);
    if (files + sum(places, resident) <= limits.memoryBytes) return undefined;
    // Pages that several processes share were counted for each of them. The exact count takes longer.
    // guard: memory-limited
    return files + sum(places, proportional) > limits.memoryBytes ? 'memory' : undefined;
  } catch (error) {
    return isGone(error) ? undefined : 'unwatched';
  }
}

function memoryFiles(root: string): number {
  return sum(MEMORY_FILES, (path) => {
    // A root of the tools may be mounted there.
    if (statSync(root + path).dev === statSync(path, { throwIfNoEntry: false })?.dev) return 0;
    const { blocks, bfree, bsize } = statfsSync(root + path);
    return (blocks - bfree) * bsize;
  });
}

/** The memory of a process that is not backed by a file of the disk. */
function resident(place: string): number {
  return kilobytes(`${place}/status`, /^(?:RssAnon|RssShmem|VmSwap):\s+(\d+)/gm);
}

/** The same, with shared pages divided among those who share them. */
function proportional(place: string): number {
  return kilobytes(`${place}/smaps_rollup`, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)/gm);
}

function kilobytes(file: string, lines: RegExp): number {
  try {
    return 1024 * sum([...readFileSync(file, 'utf8').matchAll(lines)], ([, count]) => Number(count));
  } catch (error) {
    if (isGone(error)) return 0;
    throw error;
  }
}

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}

function isGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '');
}
