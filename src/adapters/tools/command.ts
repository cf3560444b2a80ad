/**
 * Runs one program in a process group of its own, without a shell, and brings back how it ended and what it said.
 * Whatever it does, nothing of its group is left afterwards: not when it is aborted, not when it floods us, not when
 * it ends and leaves children behind. A process that leaves the group (setsid) is out of reach, and not waited for.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { ProcessGroup } from '../../base/process-group.js';
import { Bytes } from './bytes.js';

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
  readonly input: string;
  readonly maxOutputBytes: number;
  readonly killGraceMs: number;
}

export interface Ending {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Buffer;
  /** The end of it. */
  readonly stderr: Buffer;
  /** It printed more than it may, and was killed for it. */
  readonly flooded: boolean;
}

const STDERR = 64 * 1024;
/** How long a killed process may take to go; one that hangs in the system is given up. */
const PATIENCE = 1000;
const DRAIN = { pauseMs: 50, rounds: 4 } as const;

/** What a process says, as far as it is kept. */
class Said {
  readonly stdout = new Bytes();
  readonly stderr = new Bytes();
  pieces = 0;
  flooded = false;
  over = false;

  constructor(child: ChildProcessWithoutNullStreams, maxOutputBytes: number, flood: () => void) {
    child.stdout.on('data', (piece: Buffer) => {
      this.pieces += 1;
      if (this.flooded) return;
      this.stdout.add(piece);
      this.flooded = this.stdout.length > maxOutputBytes;
      if (this.flooded) flood();
    });
    child.stderr.on('data', (piece: Buffer) => {
      this.pieces += 1;
      this.stderr.roll(piece, STDERR);
    });
    child.once('close', () => {
      this.over = true;
    });
  }

  /** What was written before the end is still in the pipes; who else holds them is not waited for. */
  async drain(closed: Promise<unknown>): Promise<void> {
    for (let round = 0; round < DRAIN.rounds && !this.over; round++) {
      const before = this.pieces;
      await Promise.race([closed, setTimeout(DRAIN.pauseMs)]);
      // If the event loop was held up, the pause is over before the pipes were looked at; now they were.
      await setImmediate();
      if (this.pieces === before) return;
    }
  }
}

/** Runs the program to its end. An abort rejects with the signal's reason, once the process is gone. */
export async function runCommand(command: Command, abort: AbortSignal): Promise<Ending> {
  abort.throwIfAborted();
  const { file, args, directory, env } = command;
  const child = spawn(file, args, { cwd: directory, env, detached: true, stdio: 'pipe' });
  const { pid } = child;
  if (pid === undefined) throw (await once(child, 'error'))[0];
  const group = new ProcessGroup(pid);
  const said = new Said(child, command.maxOutputBytes, () => group.signal('SIGKILL'));
  const closed = new Promise((resolve) => child.once('close', resolve));
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve(group.end())));
  let stop = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    stop = () => resolve(stopGroup(group, exited, command.killGraceMs));
  });
  abort.addEventListener('abort', stop, { once: true });
  try {
    feed(child, command.input);
    await Promise.race([exited, stopped]);
    await said.drain(closed);
    abort.throwIfAborted();
    const { stdout, stderr, flooded } = said;
    const { exitCode, signalCode: signal } = child;
    return { exitCode, signal, stdout: stdout.all(), stderr: stderr.all(), flooded };
  } finally {
    abort.removeEventListener('abort', stop);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  }
}

/** Hands over the input. A program need not read it: a closed pipe is its choice, not a failure. */
function feed(child: ChildProcessWithoutNullStreams, input: string): void {
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', () => undefined);
  child.stdin.end(input);
}

async function stopGroup(group: ProcessGroup, exited: Promise<void>, killGraceMs: number): Promise<void> {
  // The timers hold nothing up: as long as the process lives, it keeps the event loop going itself.
  group.signal('SIGTERM');
  await Promise.race([exited, setTimeout(killGraceMs, undefined, { ref: false })]);
  group.signal('SIGKILL');
  await Promise.race([exited, setTimeout(PATIENCE, undefined, { ref: false })]);
}
