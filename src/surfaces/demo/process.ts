/** Processes of the command line itself, as the demo starts them. */
import { execFile, spawn } from 'node:child_process';

/** The command line that runs this demo. */
const CLI_PATH = process.argv[1] ?? '';

export interface StartedVerb {
  readonly pid: number;
  /** Its exit code; 1 for one that was killed. */
  readonly exitCode: Promise<number>;
  kill(): void;
}

/** Starts a verb that shows itself to whoever looks on. */
export function startVerb(args: readonly string[]): StartedVerb {
  const child = spawn(process.execPath, [CLI_PATH, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = new Promise<number>((resolve) => {
    child.once('close', (code) => resolve(code ?? 1));
    child.once('error', () => resolve(1));
  });
  return { pid: child.pid ?? 0, exitCode: ended, kill: () => void child.kill('SIGKILL') };
}

/** What a verb prints, read; undefined if it failed. */
export function readVerbOutput<T>(args: readonly string[], read: (text: string) => T): Promise<T | undefined> {
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI_PATH, ...args], (failure, stdout) => {
      resolve(failure === null ? read(stdout) : undefined);
    });
  });
}
