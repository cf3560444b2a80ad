/** Starts verbs of the command line as child processes, for the demo. */
import { execFile, spawn } from 'node:child_process';

/** The path of the running command line. */
const CLI_PATH = process.argv[1] ?? '';

/** A verb that runs in a child process. */
interface StartedVerb {
  readonly pid: number;
  /** Resolves to the exit code; 1 if the process was killed. */
  readonly exitCode: Promise<number>;
  kill(): void;
}

/** Starts a verb that prints to this terminal. */
export function startVerb(args: readonly string[]): StartedVerb {
  const child = spawn(process.execPath, [CLI_PATH, ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
  const exitCode = new Promise<number>((resolve) => {
    child.once('close', (code) => resolve(code ?? 1));
    child.once('error', () => resolve(1));
  });
  return { pid: child.pid ?? 0, exitCode, kill: () => void child.kill('SIGKILL') };
}

/** Runs a verb and returns its parsed output; undefined if the verb failed. */
export function readVerbOutput<T>(args: readonly string[], parse: (text: string) => T): Promise<T | undefined> {
  return new Promise((resolve) => {
    execFile(process.execPath, [CLI_PATH, ...args], (failure, stdout) => {
      resolve(failure === null ? parse(stdout) : undefined);
    });
  });
}
