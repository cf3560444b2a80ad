/**
 * Identity and state of processes on this machine. A pid alone is reused; together with the time at which the process
 * started, and the boot and pid namespace in which that was, it names one process.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';

export interface ProcessId {
  readonly pid: number;
  /** When and where it started, in the system's own terms; empty where the system does not tell. */
  readonly start: string;
}

/** `unknown`: a process of another container, which cannot be seen from here. */
export type ProcessState = 'gone' | 'stopped' | 'running' | 'unknown';

interface ProcessStatus {
  readonly state: string;
  readonly startTime: string;
}

/** Fields of /proc/PID/stat behind the name of the program, which may itself hold spaces and parentheses. */
function linuxStatus(pid: number): ProcessStatus | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

function psStatus(pid: number): ProcessStatus | undefined {
  const { stdout, status } = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' });
  const [state = '', ...started] = (stdout ?? '').trim().split(/\s+/);
  return status === 0 && state !== '' ? { state, startTime: started.join(' ') } : undefined;
}

function signalStatus(pid: number): ProcessStatus | undefined {
  try {
    process.kill(pid, 0);
    return { state: '', startTime: '' };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' ? { state: '', startTime: '' } : undefined;
  }
}

const processStatusOf: (pid: number) => ProcessStatus | undefined =
  process.platform === 'linux' ? linuxStatus : process.platform === 'win32' ? signalStatus : psStatus;

/** The boot and the pid namespace, in which alone pids and start times can be compared. */
function bootAndNamespace(): readonly [boot: string, namespace: string] {
  if (process.platform !== 'linux') return ['', ''];
  try {
    return [readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), readlinkSync('/proc/self/ns/pid')];
  } catch {
    return ['', ''];
  }
}

let cachedThisProcess: ProcessId | undefined;

/** The identity of this process. */
export function thisProcess(): ProcessId {
  if (cachedThisProcess?.pid !== process.pid) cachedThisProcess = processIdOf(process.pid);
  return cachedThisProcess;
}

/** The identity of the process that has this pid now. */
export function processIdOf(pid: number): ProcessId {
  return { pid, start: [...bootAndNamespace(), processStatusOf(pid)?.startTime ?? ''].join(' ') };
}

/** What became of a process; a zombie has ended. */
export function processStateOf({ pid, start }: ProcessId): ProcessState {
  const [boot = '', namespace = '', ...started] = start.split(' ');
  const [ownBoot, ownNamespace] = bootAndNamespace();
  if (boot !== ownBoot) return 'gone';
  if (namespace !== ownNamespace) return 'unknown';
  const status = processStatusOf(pid);
  if (status === undefined || /^[ZXx]/.test(status.state)) return 'gone';
  // guard: owner-process-identified
  if (started.join(' ') !== status.startTime) return 'gone';
  return /^[Tt]/.test(status.state) ? 'stopped' : 'running';
}
