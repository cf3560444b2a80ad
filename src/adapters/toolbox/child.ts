/**
 * Runs one program to its end, in a process group of its own, with nothing on stdin and both outputs in one pipe, so that
 * what it says stays in order. Nothing of the group is left afterwards, however it ends.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { Group } from './group.js';
import { Output } from './output.js';

export interface Program {
  readonly argv: readonly string[];
  readonly directory: string;
  readonly env: { readonly [name: string]: string };
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  readonly heard: (piece: Buffer) => void;
}

export interface Ending {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: Output;
  /** Why it did not end by itself. */
  readonly stopped?: 'time' | 'flood';
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

/** How the program ended. An abort rejects with its reason, once the program is gone. */
export async function run(program: Program, abort: AbortSignal | undefined): Promise<Ending> {
  abort?.throwIfAborted();
  const [file, ...args] = [...JOINED, ...program.argv];
  const { directory: cwd, env } = program;
  const child = spawn(file, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  if (child.pid === undefined) throw (await once(child, 'error'))[0];
  const group = new Group(child.pid);
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
  try {
    const output = listen(child.stdout, program, () => {
      stopped ??= 'flood';
      stop();
    });
    await Promise.race([exited, over]);
    await drain(child.stdout, output);
    abort?.throwIfAborted();
    const { exitCode, signalCode: signal } = child;
    return stopped === undefined ? { exitCode, signal, output } : { exitCode, signal, output, stopped };
  } finally {
    clearTimeout(late);
    abort?.removeEventListener('abort', stop);
    child.stdout.destroy();
  }
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
async function endOf(group: Group, exited: Promise<void>): Promise<void> {
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
