// Runs the command line in a shell, with its pipes and redirections.

import { execFile } from 'node:child_process';
import { bin, type Project } from '../support/cli-project.js';

/** Quotes a word for a shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The outcome of a shell command. */
interface ShellResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The number in the last line of the output. */
  readonly code: number;
}

/** Runs a command of bash in the project, with `$RONDO` as the command line. */
export function shell(project: Project, line: string): Promise<ShellResult> {
  const { PATH = '', HOME = '' } = process.env;
  const RONDO = `${quote(process.execPath)} ${quote(bin)}`;
  const options = { cwd: project.directory, env: { PATH, HOME, TERM: 'xterm' } };
  return new Promise((resolve) => {
    execFile('bash', ['-c', line.replaceAll('$RONDO', RONDO)], options, (_error, stdout, stderr) => {
      resolve({ stdout, stderr, code: Number(stdout.trim().split('\n').at(-1)) });
    });
  });
}
