/**
 * Runs one program without a shell, in its own process group, and returns its exit status and output. No process of the
 * group survives the call: not after an abort, not after too much output, and not if the program exits before its
 * children. A process that leaves the group (setsid) is neither killed nor waited for.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { drainOutput, stopProcessGroup } from '../../base/child-process.js';
import { ProcessGroup } from '../../base/process-group.js';
import { ByteBuffer } from './byte-buffer.js';

/** A program to run, its input and its limits. */
export interface ProcessSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
  /** The text for stdin. */
  readonly input: string;
  /** The maximum size of stdout. A program that prints more is killed. */
  readonly maxOutputBytes: number;
  /** How long the program may take to exit after an abort, before it is killed. */
  readonly killGraceMs: number;
}

/** The exit status and output of a program. */
export interface ProcessResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Buffer;
  /** The end of stderr: at least its last 64 KiB. */
  readonly stderr: Buffer;
  /** True if stdout exceeded the limit, so that the program was killed. */
  readonly isOutputTooLarge: boolean;
}

/** The number of bytes at the end of stderr that are kept at least; up to twice as many may be kept. */
const KEPT_STDERR_BYTES = 64 * 1024;
const KILL_WAIT_MS = 1000;

/** Collects the output of a child process: stdout up to a limit, and the end of stderr. */
class ProcessOutput {
  readonly stdout = new ByteBuffer();
  readonly stderr = new ByteBuffer();
  isTooLarge = false;
  private readonly closed: Promise<void>;
  private chunkCount = 0;
  private isClosed = false;

  constructor(child: ChildProcessWithoutNullStreams, maxOutputBytes: number, onTooLarge: () => void) {
    child.stdout.on('data', (chunk: Buffer) => {
      this.chunkCount += 1;
      if (this.isTooLarge) return;
      this.stdout.append(chunk);
      this.isTooLarge = this.stdout.length > maxOutputBytes;
      if (this.isTooLarge) onTooLarge();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      this.chunkCount += 1;
      this.stderr.appendKeepingLast(chunk, KEPT_STDERR_BYTES);
    });
    this.closed = new Promise((resolve) => {
      child.once('close', () => {
        this.isClosed = true;
        resolve();
      });
    });
  }

  /** Reads the rest of the output after the process has exited. */
  drain(): Promise<void> {
    return drainOutput({ closed: this.closed, isClosed: () => this.isClosed, progress: () => this.chunkCount });
  }
}

/**
 * Runs a program until it exits. Rejects with the system error if it cannot be started. After an abort, stops it and
 * rejects with the reason of the signal.
 */
export async function runProcess(command: ProcessSpec, abort: AbortSignal): Promise<ProcessResult> {
  abort.throwIfAborted();
  const { file, args, directory, env } = command;
  const child = spawn(file, args, { cwd: directory, env, detached: true, stdio: 'pipe' });
  const { pid } = child;
  if (pid === undefined) throw (await once(child, 'error'))[0];
  const group = new ProcessGroup(pid);
  const output = new ProcessOutput(child, command.maxOutputBytes, () => group.signal('SIGKILL'));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve(group.end())));
  let stop = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    const periods = { graceMs: command.killGraceMs, killWaitMs: KILL_WAIT_MS };
    stop = () => resolve(stopProcessGroup(group, exited, periods));
  });
  abort.addEventListener('abort', stop, { once: true });
  try {
    writeInput(child, command.input);
    await Promise.race([exited, stopped]);
    await output.drain();
    abort.throwIfAborted();
    const { stdout, stderr, isTooLarge } = output;
    const { exitCode, signalCode: signal } = child;
    return { exitCode, signal, stdout: stdout.toBuffer(), stderr: stderr.toBuffer(), isOutputTooLarge: isTooLarge };
  } finally {
    abort.removeEventListener('abort', stop);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  }
}

/** Writes the input to stdin. A program may exit or close stdin without reading it, so pipe errors are ignored. */
function writeInput(child: ChildProcessWithoutNullStreams, input: string): void {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined);
  child.stdin.end(input);
}
