/** Processes of the command line itself, as the demo starts them. */
import { execFile, spawn } from 'node:child_process';

/** The command line that runs this demo. */
const PROGRAM = process.argv[1] ?? '';

export interface Started {
  readonly pid: number;
  /** Its exit code; 1 for one that was killed. */
  readonly ended: Promise<number>;
  kill(): void;
}

/** Starts a verb that shows itself to whoever looks on. */
export function start(args: readonly string[]): Started {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new Promise<number>((resolve) => {
    child.once('close', (code) => resolve(code ?? 1));
    child.once('error', () => resolve(1));
  });
  return { pid: child.pid ?? 0, ended, kill: () => void child.kill('SIGKILL') };
}

/** What a verb prints, read; undefined if it failed. */
export function ask<T>(args: readonly string[], read: (text: string) => T): Promise<T | undefined> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args], (failure, stdout) => {
      resolve(failure === null ? read(stdout) : undefined);
    });
  });
}
