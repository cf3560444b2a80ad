/**
 * Runs one program in a process group of its own, without a shell, and brings back how it ended and what it said.
 * Whatever it does, nothing of its group is left afterwards: not when it is aborted, not when it floods us, not when
 * it ends and leaves children behind. A process that leaves the group (setsid) is out of reach, and not waited for.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { ProcessGroup } from '../../base/process-group.js';
import { ByteBuffer } from './byte-buffer.js';

export interface ProcessSpec {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
  readonly input: string;
  readonly maxOutputBytes: number;
  readonly killGraceMs: number;
}

export interface ProcessResult {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Buffer;
  /** The end of it. */
  readonly stderr: Buffer;
  /** It printed more than it may, and was killed for it. */
  readonly isOutputTooLarge: boolean;
}

const MAX_STDERR_BYTES = 64 * 1024;
/** How long a killed process may take to go; one that hangs in the system is given up. */
const KILL_WAIT_MS = 1000;
const DRAIN = { pauseMs: 50, rounds: 4 } as const;

/** What a process says, as far as it is kept. */
class ProcessOutput {
  readonly stdout = new ByteBuffer();
  readonly stderr = new ByteBuffer();
  chunkCount = 0;
  isTooLarge = false;
  isClosed = false;

  constructor(child: ChildProcessWithoutNullStreams, maxOutputBytes: number, flood: () => void) {
    child.stdout.on('data', (piece: Buffer) => {
      this.chunkCount += 1;
      if (this.isTooLarge) return;
      this.stdout.append(piece);
      this.isTooLarge = this.stdout.length > maxOutputBytes;
      if (this.isTooLarge) flood();
    });
    child.stderr.on('data', (piece: Buffer) => {
      this.chunkCount += 1;
      this.stderr.appendKeepingLast(piece, MAX_STDERR_BYTES);
    });
    child.once('close', () => {
      this.isClosed = true;
    });
  }

  /** What was written before the end is still in the pipes; who else holds them is not waited for. */
  async drain(closed: Promise<unknown>): Promise<void> {
    for (let round = 0; round < DRAIN.rounds && !this.isClosed; round++) {
      const before = this.chunkCount;
      await Promise.race([closed, setTimeout(DRAIN.pauseMs)]);
      // If the event loop was held up, the pause is over before the pipes were looked at; now they were.
      await setImmediate();
      if (this.chunkCount === before) return;
    }
  }
}

/** Runs the program to its end. An abort rejects with the signal's reason, once the process is gone. */
export async function runProcess(command: ProcessSpec, abort: AbortSignal): Promise<ProcessResult> {
  abort.throwIfAborted();
  const { file, args, directory, env } = command;
  const child = spawn(file, args, { cwd: directory, env, detached: true, stdio: 'pipe' });
  const { pid } = child;
  if (pid === undefined) throw (await once(child, 'error'))[0];
  const group = new ProcessGroup(pid);
  const said = new ProcessOutput(child, command.maxOutputBytes, () => group.signal('SIGKILL'));
  const closed = new Promise((resolve) => child.once('close', resolve));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve(group.end())));
  let stop = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    stop = () => resolve(stopGroup(group, exited, command.killGraceMs));
  });
  abort.addEventListener('abort', stop, { once: true });
  try {
    writeInput(child, command.input);
    await Promise.race([exited, stopped]);
    await said.drain(closed);
    abort.throwIfAborted();
    const { stdout, stderr, isTooLarge } = said;
    const { exitCode, signalCode: signal } = child;
    return { exitCode, signal, stdout: stdout.toBuffer(), stderr: stderr.toBuffer(), isOutputTooLarge: isTooLarge };
  } finally {
    abort.removeEventListener('abort', stop);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  }
}

/** Hands over the input. A program need not read it: a closed pipe is its choice, not a failure. */
function writeInput(child: ChildProcessWithoutNullStreams, input: string): void {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined);
  child.stdin.end(input);
}

async function stopGroup(group: ProcessGroup, exited: Promise<void>, killGraceMs: number): Promise<void> {
  // The timers hold nothing up: as long as the process lives, it keeps the event loop going itself.
  group.signal('SIGTERM');
  await Promise.race([exited, setTimeout(killGraceMs, undefined, { ref: false })]);
  group.signal('SIGKILL');
  await Promise.race([exited, setTimeout(KILL_WAIT_MS, undefined, { ref: false })]);
}
