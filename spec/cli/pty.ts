// The command line in a terminal of its own, as a person uses it: keys go in, and the screen is read.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { bin, type Project, until } from '../support/cli-project.js';
import { bare } from './attacks.js';

/** Whether there is what makes a terminal. */
export const hasScript = existsSync('/usr/bin/script');

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export const keys = { enter: '\r', interrupt: '\u0003', end: '\u0004' } as const;

export class Pty {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<number | null>;
  /** All that was written to the screen. */
  raw = '';
  private seen = 0;

  constructor(project: Project, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const command = [process.execPath, bin, ...args].map(quote).join(' ');
    // The size is that of the new terminal, which has none by itself.
    this.child = spawn('script', ['-qfec', `stty cols 80 rows 30; exec ${command}`, '/dev/null'], {
      cwd: project.directory,
      env: { ...project.environment(), TERM: 'xterm-256color', ...env },
    });
    this.child.stdin.on('error', () => undefined);
    this.child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      this.raw += piece;
    });
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code) => resolve(code));
    });
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  /** What was written, without colours. */
  get text(): string {
    return bare(this.raw).replaceAll('\r\n', '\n');
  }

  /** Waits until this was written, after what was waited for before. */
  async sees(words: string): Promise<void> {
    try {
      await until(() => this.text.includes(words, this.seen) || undefined);
    } catch {
      throw new Error(`"${words}" is not on the screen: ${JSON.stringify(this.text.slice(this.seen))}`);
    }
    this.seen = this.text.indexOf(words, this.seen) + words.length;
  }

  press(pressed: string): void {
    this.child.stdin.write(pressed);
  }

  /** Types a line and sends it. */
  type(line: string): void {
    this.press(`${line}${keys.enter}`);
  }
}
