/**
 * Runs one program to its end, in a process group of its own, with nothing on stdin and both outputs in one pipe, so that
 * what it says stays in order. Nothing of the group is left afterwards, however it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { ProcessGroup } from '../../base/process-group.js';
import { withoutInheritedDescriptors } from './inherited-descriptors.js';
import type { SandboxLimits } from './limits.js';
import { OutputBuffer } from './output-buffer.js';
import { monitorSandbox, type SandboxStopReason } from './sandbox-monitor.js';

export interface ProcessSpec {
  readonly argv: readonly string[];
  readonly directory: string;
  readonly env: { readonly [name: string]: string };
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly onOutput: (piece: Buffer) => void;
  /** For a program that is bubblewrap: what it is handed, and what the sandbox is held to. */
  readonly sandbox?: SandboxSetup;
}

interface SandboxSetup {
  readonly limits: SandboxLimits;
  readonly filter: Buffer;
}

/** The descriptor at which bubblewrap tells about the sandbox, and that of the system call filter. */
export const INFO_FD = 3;
export const FILTER_FD = 4;

export interface ProcessResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: OutputBuffer;
  /** Why it did not end by itself. */
  readonly stopReason?: 'time' | 'flood' | SandboxStopReason;
}

/** Whatever prints more than this is not worth listening to. */
const MAX_PRINTED_BYTES = 64 * 1024 * 1024;
/** How long a program may take to tidy up, and a killed one to be gone. */
const KILL_GRACE_MS = 500;
const KILL_WAIT_MS = 2000;
/** Reads the rest of the pipe while data arrives, for a limited time: another process may hold it open. */
const DRAIN = { pauseMs: 50, rounds: 4 } as const;

/** Puts stderr into stdout for the program that follows; its arguments are no text for the shell. */
const MERGE_STDERR_ARGV = ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh'] as const;
/** The same. If memory runs out, the kernel ends a sandboxed command before anything else. */
const MERGE_STDERR_OOM_FIRST_ARGV = [
  ...['/bin/sh', '-c', 'echo 1000 2>/dev/null >/proc/self/oom_score_adj; exec "$@" 2>&1', 'sh'],
] as const;

/** How the program ended. An abort rejects with its reason, once the program is gone. */
export async function runProcess(program: ProcessSpec, abort: AbortSignal | undefined): Promise<ProcessResult> {
  abort?.throwIfAborted();
  const { directory: cwd, env, sandbox } = program;
  const [file = '', ...args] = [
    ...(sandbox === undefined ? MERGE_STDERR_ARGV : MERGE_STDERR_OOM_FIRST_ARGV),
    ...program.argv,
  ];
  const extra = sandbox === undefined ? [] : (['pipe', 'pipe'] as const);
  const child = withoutInheritedDescriptors(['ignore', 'pipe', 'ignore', ...extra], (stdio) =>
    spawn(file, args, { cwd, env, detached: true, stdio }),
  );
  if (child.pid === undefined) throw (await once(child, 'error'))[0];
  const stdout = child.stdout as Readable;
  const group = new ProcessGroup(child.pid);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve(group.end())));
  let stopped: ProcessResult['stopReason'];
  let stop = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    stop = () => resolve(stopGroup(group, exited));
  });
  const late = setTimeout(() => {
    stopped ??= 'time';
    stop();
  }, program.timeoutMs);
  abort?.addEventListener('abort', stop, { once: true });
  const unwatch = attachSandbox(child, sandbox, (excess) => {
    stopped ??= excess;
    // At once: it must not take more meanwhile.
    group.signal('SIGKILL');
  });
  try {
    const output = collectOutput(stdout, program, () => {
      stopped ??= 'flood';
      stop();
    });
    await Promise.race([exited, over]);
    await drain(stdout, output);
    abort?.throwIfAborted();
    const { exitCode, signalCode: signal } = child;
    return stopped === undefined ? { exitCode, signal, output } : { exitCode, signal, output, stopReason: stopped };
  } finally {
    clearTimeout(late);
    abort?.removeEventListener('abort', stop);
    unwatch();
    stdout.destroy();
  }
}

/** Hands bubblewrap its filter and watches the sandbox; the returned function ends that. */
function attachSandbox(
  child: ChildProcess,
  sandbox: SandboxSetup | undefined,
  stop: (excess: SandboxStopReason) => void,
): () => void {
  if (sandbox === undefined) return () => undefined;
  const filter = child.stdio[FILTER_FD] as Writable;
  filter.on('error', () => undefined);
  filter.end(sandbox.filter);
  const unwatch = monitorSandbox(child.stdio[INFO_FD] as Readable, sandbox.limits, stop);
  return () => {
    unwatch();
    filter.destroy();
  };
}

function collectOutput(stdout: Readable, { maxOutputBytes, onOutput }: ProcessSpec, flood: () => void): OutputBuffer {
  const output = new OutputBuffer(maxOutputBytes);
  stdout.on('error', () => undefined);
  stdout.on('data', (piece: Buffer) => {
    const before = output.totalBytes;
    output.append(piece);
    onOutput(piece);
    if (before <= MAX_PRINTED_BYTES && output.totalBytes > MAX_PRINTED_BYTES) flood();
  });
  return output;
}

/** A program is asked to end, then ended. */
async function stopGroup(group: ProcessGroup, exited: Promise<void>): Promise<void> {
  group.signal('SIGTERM');
  await Promise.race([exited, sleep(KILL_GRACE_MS, undefined, { ref: false })]);
  group.signal('SIGKILL');
  await Promise.race([exited, sleep(KILL_WAIT_MS, undefined, { ref: false })]);
}

async function drain(stdout: Readable, output: OutputBuffer): Promise<void> {
  const closed = new Promise((resolve) => stdout.once('close', resolve));
  for (let round = 0; round < DRAIN.rounds && !stdout.closed; round++) {
    const before = output.totalBytes;
    await Promise.race([closed, sleep(DRAIN.pauseMs)]);
    // If the event loop was held up, the pause is over before the pipe was looked at; now it was.
    await setImmediate();
    if (output.totalBytes === before) return;
  }
}
