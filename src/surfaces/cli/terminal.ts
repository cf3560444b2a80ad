/**
 * The two streams: answers go to stdout, everything for people to stderr. Everything that a verb writes passes here, so that no
 * text can control the terminal and no failed write goes unnoticed.
 */
import { escapeInvisibleInJson } from '../../base/escape-text.js';
import type { Environment } from '../settings.js';
import type { Output } from './output.js';
import { isColorEnabled, sanitizeOutput, truncate } from './terminal-text.js';
import { exitCodes } from './verb.js';

export interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Environment;
  readonly cwd: string;
}

type StreamName = 'stdout' | 'stderr';

const ERASE_LINE = '\u001b[2K';

/** The reader has closed its end: it has read what it wanted. */
const CLOSED_PIPE_CODES: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET']);

export class Terminal {
  readonly streams: Streams;
  /** What is to be said, and tidied up, when somebody presses Ctrl-C. */
  onInterrupt: (() => string) | undefined;
  /** The first error of each stream. */
  private readonly writeErrors = new Map<StreamName, NodeJS.ErrnoException>();

  constructor(streams: Streams) {
    this.streams = streams;
    for (const name of ['stdout', 'stderr'] as const) {
      streams[name].on('error', (error: NodeJS.ErrnoException) => {
        if (!this.writeErrors.has(name)) this.writeErrors.set(name, error);
      });
    }
  }

  /** True once stdout takes nothing more. */
  get isStdoutClosed(): boolean {
    return this.writeErrors.has('stdout');
  }

  /** Writes an answer; resolves when it has been handed over, or could not be. */
  print(text: string): Promise<void> {
    const { stdout } = this.streams;
    return writeFully(stdout, /* guard: printed-text-escaped */ sanitizeOutput(text, this.displayOf(stdout).color));
  }

  /** Writes an answer for a program: one document. */
  printJson(value: unknown): Promise<void> {
    return this.print(`${terminalJson(value)}\n`);
  }

  /** Writes an answer for a program: one document a line. */
  printJsonLines(values: readonly unknown[]): Promise<void> {
    return this.print(values.map((value) => `${terminalJson(value)}\n`).join(''));
  }

  /** Writes a value for a person, as JSON in several lines. */
  printPrettyJson(value: unknown): Promise<void> {
    return this.print(`${terminalJson(value, 2)}\n`);
  }

  /** Says a line to the person. */
  printToStderr(line: string): void {
    const { stderr } = this.streams;
    stderr.write(/* guard: message-escaped */ sanitizeOutput(`${line}\n`, this.displayOf(stderr).color));
  }

  /** Shows how far something is: in place on a terminal, else as a line. Undefined takes the display away. */
  showProgress(text: string | undefined): void {
    const { stderr } = this.streams;
    if (stderr.isTTY !== true) {
      if (text !== undefined) this.printToStderr(text);
      return;
    }
    const line =
      text === undefined
        ? ''
        : truncate(/* guard: progress-escaped */ sanitizeOutput(text, false), this.lineWidth(stderr) - 1);
    stderr.write(`\r${ERASE_LINE}${line}`);
  }

  /** Lets everything that was written get out. */
  async flush(): Promise<void> {
    await Promise.all([writeFully(this.streams.stdout, ''), writeFully(this.streams.stderr, '')]);
  }

  /**
   * The exit code of the process. A verb that did not succeed keeps its own code, whatever became of its output. A verb that
   * succeeded and whose output is lost ends with that of a fault; a reader that closed the pipe loses nothing it wanted.
   */
  async finish(code: number): Promise<number> {
    await this.flush();
    const lost = [...this.writeErrors].find(
      ([, error]) => /* guard: closed-reader-is-no-failure */ !CLOSED_PIPE_CODES.has(error.code),
    );
    if (lost === undefined) return code;
    const [name, error] = lost;
    this.printToStderr(
      `rondo: The output could not be written to ${name}: ${error.message}. What the verb did is recorded.`,
    );
    await this.flush();
    // guard: lost-output-fails-a-success
    return code === exitCodes.ok ? exitCodes.fault : code;
  }

  /** How things look on a stream: in colour or not, and how wide. */
  displayOf(stream: Output = this.streams.stdout): { readonly color: boolean; readonly width: number } {
    return { color: isColorEnabled(stream, this.streams.env), width: this.lineWidth(stream) };
  }

  /** How wide a line may be. */
  lineWidth(stream: Output): number {
    return stream.isTTY === true ? stream.columns || 80 : 100;
  }
}

/** JSON that is safe on a terminal: what cannot be seen is escaped, and the value stays the same. */
function terminalJson(value: unknown, indent?: number): string {
  // guard: json-escaped
  return escapeInvisibleInJson(JSON.stringify(value, null, indent) ?? 'null');
}

function writeFully(stream: Output, text: string): Promise<void> {
  return new Promise((resolve) => {
    stream.write(text, () => resolve());
  });
}
