/**
 * Identity and state of processes on this machine. A pid alone can be reused. Together with its start time, the boot
 * and the pid namespace, it identifies one process.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, readlinkSync } from 'node:fs';

/** The identity of a process. */
export interface ProcessId {
  readonly pid: number;
  /** Boot id, pid namespace and start time, separated by spaces; parts that the platform does not provide are empty. */
  readonly start: string;
}

/**
 * The state of a process. `stopped`: by a signal or a debugger. `unknown`: it is in another pid namespace (container).
 */
export type ProcessState = 'gone' | 'stopped' | 'running' | 'unknown';

interface ProcessStatus {
  readonly state: string;
  readonly startTime: string;
}

/** Reads the fields of /proc/PID/stat after the program name, which may itself contain spaces and parentheses. */
function linuxStatus(pid: number): ProcessStatus | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

/** Reads the status with `ps`, on platforms without /proc. */
function psStatus(pid: number): ProcessStatus | undefined {
  const { stdout, status } = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' });
  const [state = '', ...started] = (stdout ?? '').trim().split(/\s+/);
  return status === 0 && state !== '' ? { state, startTime: started.join(' ') } : undefined;
}

/** Returns an empty status if a process exists. For Windows, where Node offers neither its state nor its start time. */
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

/**
 * Returns the boot id and the pid namespace; empty where they are not available. Pids and start times are comparable
 * only within the same two.
 */
function bootAndNamespace(): readonly [boot: string, namespace: string] {
  if (process.platform !== 'linux') return ['', ''];
  try {
    return [readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(), readlinkSync('/proc/self/ns/pid')];
  } catch {
    return ['', ''];
  }
}

let cachedThisProcess: ProcessId | undefined;

/** Returns the identity of this process. */
export function thisProcess(): ProcessId {
  if (cachedThisProcess?.pid !== process.pid) cachedThisProcess = processIdOf(process.pid);
  return cachedThisProcess;
}

/** Returns the identity of the process that has this pid now. */
export function processIdOf(pid: number): ProcessId {
  return { pid, start: [...bootAndNamespace(), processStatusOf(pid)?.startTime ?? ''].join(' ') };
}

/** Returns the state of a process. It is gone if its pid was reused or the machine rebooted, and if it is a zombie. */
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
