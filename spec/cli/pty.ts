// Runs the command line in a pseudo-terminal: keys go in, and the screen is read.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { bin, type Project, until } from '../support/cli-project.js';
import { withoutStyles } from './attacks.js';
import { quote } from './shell.js';

/** True if the machine has `script`, which creates the pseudo-terminal. */
export const hasScript = existsSync('/usr/bin/script');

/** The bytes of special keys. */
export const keys = { enter: '\r', interrupt: '\u0003', end: '\u0004' } as const;

/** A pseudo-terminal that runs one verb. */
export class Pty {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<number | null>;
  /** The complete output, with control sequences. */
  raw = '';
  private readTo = 0;

  constructor(project: Project, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const command = [process.execPath, bin, ...args].map(quote).join(' ');
    // A new pseudo-terminal has no size.
    this.child = spawn('script', ['-qfec', `stty cols 80 rows 30; exec ${command}`, '/dev/null'], {
      cwd: project.directory,
      env: { ...project.environment(), TERM: 'xterm-256color', ...env },
    });
    this.child.stdin.on('error', () => undefined);
    this.child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.raw += chunk;
    });
    this.ended = new Promise((resolve) => {
      this.child.once('close', (code) => resolve(code));
    });
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  /** The output without styles. */
  get text(): string {
    return withoutStyles(this.raw).replaceAll('\r\n', '\n');
  }

  /** Waits for a text after the previous match. */
  async waitFor(expected: string): Promise<void> {
    try {
      await until(() => this.text.includes(expected, this.readTo) || undefined);
    } catch {
      throw new Error(`"${expected}" is not on the screen: ${JSON.stringify(this.text.slice(this.readTo))}`);
    }
    this.readTo = this.text.indexOf(expected, this.readTo) + expected.length;
  }

  /** Sends keys. */
  press(bytes: string): void {
    this.child.stdin.write(bytes);
  }

  /** Types a line and sends it. */
  type(line: string): void {
    this.press(`${line}${keys.enter}`);
  }
}
