/**
 * Runs one program in its own process group, with an empty stdin, and with stdout and stderr in one pipe, so that the
 * order of its output is preserved. No process of the group survives the call.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { drainOutput, stopProcessGroup } from '../../base/child-process.js';
import { ProcessGroup } from '../../base/process-group.js';
import { withoutInheritedDescriptors } from './inherited-descriptors.js';
import type { SandboxLimits } from './limits.js';
import { OutputBuffer } from './output-buffer.js';
import { monitorSandbox, type SandboxStopReason } from './sandbox-monitor.js';

/** A program to run, and its limits. */
export interface ProcessSpec {
  readonly argv: readonly string[];
  readonly directory: string;
  readonly env: { readonly [name: string]: string };
  readonly timeoutMs: number;
  /** The maximum size of the kept output. */
  readonly maxOutputBytes: number;
  /** Called with each chunk of output, even beyond `maxOutputBytes`. */
  readonly onOutput: (chunk: Buffer) => void;
  /** Set if the program is bubblewrap. */
  readonly sandbox?: SandboxSetup;
}

interface SandboxSetup {
  readonly limits: SandboxLimits;
  /** The system call filter. */
  readonly filter: Buffer;
}

/** The descriptor to which bubblewrap writes information about the sandbox. */
export const INFO_FD = 3;
/** The descriptor from which bubblewrap reads the system call filter. */
export const FILTER_FD = 4;

/** The exit status and output of a program. */
export interface ProcessResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: OutputBuffer;
  /** The reason why it was stopped; absent if it was not. */
  readonly stopReason?: 'time' | 'output' | SandboxStopReason;
}

/** A program that prints more than this is killed. */
const MAX_PRINTED_BYTES = 64 * 1024 * 1024;
const STOP_PERIODS = { graceMs: 500, killWaitMs: 2000 } as const;

/** Redirects stderr to stdout for the program in the following arguments, which the shell does not interpret. */
const MERGE_STDERR_ARGV = ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh'] as const;
/** Also makes the kernel's out-of-memory killer prefer a sandboxed command to other processes. */
const MERGE_STDERR_OOM_FIRST_ARGV = [
  ...['/bin/sh', '-c', 'echo 1000 2>/dev/null >/proc/self/oom_score_adj; exec "$@" 2>&1', 'sh'],
] as const;

/**
 * Runs a program until it exits or exceeds a limit. Rejects with the system error if it cannot be started. After an
 * abort, stops it and rejects with the reason of the signal.
 */
export async function runProcess(program: ProcessSpec, abort: AbortSignal | undefined): Promise<ProcessResult> {
  abort?.throwIfAborted();
  const { directory: cwd, env, sandbox } = program;
  const [file = '', ...args] = [
    ...(sandbox === undefined ? MERGE_STDERR_ARGV : MERGE_STDERR_OOM_FIRST_ARGV),
    ...program.argv,
  ];
  const sandboxPipes = sandbox === undefined ? [] : (['pipe', 'pipe'] as const);
  const child = withoutInheritedDescriptors(['ignore', 'pipe', 'ignore', ...sandboxPipes], (stdio) =>
    spawn(file, args, { cwd, env, detached: true, stdio }),
  );
  if (child.pid === undefined) throw (await once(child, 'error'))[0];
  const stdout = child.stdout as Readable;
  const group = new ProcessGroup(child.pid);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve(group.end())));
  let stopReason: ProcessResult['stopReason'];
  let stop = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    stop = () => resolve(stopProcessGroup(group, exited, STOP_PERIODS));
  });
  const timer = setTimeout(() => {
    stopReason ??= 'time';
    stop();
  }, program.timeoutMs);
  abort?.addEventListener('abort', stop, { once: true });
  const detachSandbox = attachSandbox(child, sandbox, (reason) => {
    stopReason ??= reason;
    // Without a grace period, in which the command could use even more.
    group.signal('SIGKILL');
  });
  try {
    const output = collectOutput(stdout, program, () => {
      stopReason ??= 'output';
      stop();
    });
    const closed = new Promise((resolve) => stdout.once('close', resolve));
    await Promise.race([exited, stopped]);
    await drainOutput({ closed, isClosed: () => stdout.closed, progress: () => output.totalBytes });
    abort?.throwIfAborted();
    const { exitCode, signalCode: signal } = child;
    return { exitCode, signal, output, ...(stopReason === undefined ? {} : { stopReason }) };
  } finally {
    clearTimeout(timer);
    abort?.removeEventListener('abort', stop);
    detachSandbox();
    stdout.destroy();
  }
}

/** Passes the filter to bubblewrap and monitors the sandbox. The returned function ends both. */
function attachSandbox(
  child: ChildProcess,
  sandbox: SandboxSetup | undefined,
  stop: (reason: SandboxStopReason) => void,
): () => void {
  if (sandbox === undefined) return () => undefined;
  const filter = child.stdio[FILTER_FD] as Writable;
  filter.on('error', () => undefined);
  filter.end(sandbox.filter);
  const stopMonitoring = monitorSandbox(child.stdio[INFO_FD] as Readable, sandbox.limits, stop);
  return () => {
    stopMonitoring();
    filter.destroy();
  };
}

function collectOutput(
  stdout: Readable,
  { maxOutputBytes, onOutput }: ProcessSpec,
  onTooLarge: () => void,
): OutputBuffer {
  const output = new OutputBuffer(maxOutputBytes);
  stdout.on('error', () => undefined);
  stdout.on('data', (chunk: Buffer) => {
    const before = output.totalBytes;
    output.append(chunk);
    onOutput(chunk);
    if (before <= MAX_PRINTED_BYTES && output.totalBytes > MAX_PRINTED_BYTES) onTooLarge();
  });
  return output;
}
