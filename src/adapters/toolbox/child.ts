/**
 * Runs one program to its end, in a process group of its own, with nothing on stdin and both outputs in one pipe, so that
 * what it says stays in order. Nothing of the group is left afterwards, however it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { ProcessGroup } from '../../base/process-group.js';
import { withoutInherited } from './inherited.js';
import type { Limits } from './limits.js';
import { Output } from './output.js';
import { type Excess, watchSandbox } from './watch.js';

export interface Program {
  readonly argv: readonly string[];
  readonly directory: string;
  readonly env: { readonly [name: string]: string };
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly heard: (piece: Buffer) => void;
  /** For a program that is bubblewrap: what it is handed, and what the sandbox is held to. */
  readonly sandbox?: Sandbox;
}

interface Sandbox {
  readonly limits: Limits;
  readonly filter: Buffer;
}

/** The descriptor at which bubblewrap tells about the sandbox, and that of the system call filter. */
export const INFO_FD = 3;
export const FILTER_FD = 4;

export interface Ending {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: Output;
  /** Why it did not end by itself. */
  readonly stopped?: 'time' | 'flood' | Excess;
}

/** Whatever prints more than this is not worth listening to. */
const FLOOD = 64 * 1024 * 1024;
/** How long a program may take to tidy up, and a killed one to be gone. */
const GRACE = 500;
const GONE = 2000;
/** What is left in the pipe is read as long as something comes, but not for ever: somebody else may hold it. */
const DRAIN = { pauseMs: 50, rounds: 4 } as const;

/** Puts stderr into stdout for the program that follows; its arguments are no text for the shell. */
const JOINED = ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh'] as const;
/** The same. If memory runs out, the kernel ends a sandboxed command before anything else. */
const JOINED_FIRST_TO_GO = [
  ...['/bin/sh', '-c', 'echo 1000 2>/dev/null >/proc/self/oom_score_adj; exec "$@" 2>&1', 'sh'],
] as const;

/** How the program ended. An abort rejects with its reason, once the program is gone. */
export async function run(program: Program, abort: AbortSignal | undefined): Promise<Ending> {
  abort?.throwIfAborted();
  const { directory: cwd, env, sandbox } = program;
  const [file = '', ...args] = [...(sandbox === undefined ? JOINED : JOINED_FIRST_TO_GO), ...program.argv];
  const extra = sandbox === undefined ? [] : (['pipe', 'pipe'] as const);
  const child = withoutInherited(['ignore', 'pipe', 'ignore', ...extra], (stdio) =>
    spawn(file, args, { cwd, env, detached: true, stdio }),
  );
  if (child.pid === undefined) throw (await once(child, 'error'))[0];
  const stdout = child.stdout as Readable;
  const group = new ProcessGroup(child.pid);
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve(group.end())));
  let stopped: Ending['stopped'];
  let stop = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    stop = () => resolve(endOf(group, exited));
  });
  const late = setTimeout(() => {
    stopped ??= 'time';
    stop();
  }, program.timeoutMs);
  abort?.addEventListener('abort', stop, { once: true });
  const unwatch = confine(child, sandbox, (excess) => {
    stopped ??= excess;
    // At once: it must not take more meanwhile.
    group.signal('SIGKILL');
  });
  try {
    const output = listen(stdout, program, () => {
      stopped ??= 'flood';
      stop();
    });
    await Promise.race([exited, over]);
    await drain(stdout, output);
    abort?.throwIfAborted();
    const { exitCode, signalCode: signal } = child;
    return stopped === undefined ? { exitCode, signal, output } : { exitCode, signal, output, stopped };
  } finally {
    clearTimeout(late);
    abort?.removeEventListener('abort', stop);
    unwatch();
    stdout.destroy();
  }
}

/** Hands bubblewrap its filter and watches the sandbox; the returned function ends that. */
function confine(child: ChildProcess, sandbox: Sandbox | undefined, stop: (excess: Excess) => void): () => void {
  if (sandbox === undefined) return () => undefined;
  const filter = child.stdio[FILTER_FD] as Writable;
  filter.on('error', () => undefined);
  filter.end(sandbox.filter);
  const unwatch = watchSandbox(child.stdio[INFO_FD] as Readable, sandbox.limits, stop);
  return () => {
    unwatch();
    filter.destroy();
  };
}

function listen(stdout: Readable, { maxOutputBytes, heard }: Program, flood: () => void): Output {
  const output = new Output(maxOutputBytes);
  stdout.on('error', () => undefined);
  stdout.on('data', (piece: Buffer) => {
    const before = output.total;
    output.add(piece);
    heard(piece);
    if (before <= FLOOD && output.total > FLOOD) flood();
  });
  return output;
}

/** A program is asked to end, then ended. */
async function endOf(group: ProcessGroup, exited: Promise<void>): Promise<void> {
  group.signal('SIGTERM');
  await Promise.race([exited, sleep(GRACE, undefined, { ref: false })]);
  group.signal('SIGKILL');
  await Promise.race([exited, sleep(GONE, undefined, { ref: false })]);
}

async function drain(stdout: Readable, output: Output): Promise<void> {
  const closed = new Promise((resolve) => stdout.once('close', resolve));
  for (let round = 0; round < DRAIN.rounds && !stdout.closed; round++) {
    const before = output.total;
    await Promise.race([closed, sleep(DRAIN.pauseMs)]);
    // If the event loop was held up, the pause is over before the pipe was looked at; now it was.
    await setImmediate();
    if (output.total === before) return;
  }
}
