/**
 * The output of the command line: results go to stdout, messages to stderr. All output passes through this class, so
 * that untrusted text cannot control the terminal and failed writes are detected.
 */
import { escapeInvisibleInJson } from '../../base/escape-text.js';
import type { Environment } from '../settings.js';
import type { Input, Output } from './output.js';
import { isColorEnabled, sanitizeOutput, truncate } from './terminal-text.js';
import { exitCodes } from './verb.js';

/** The streams, the environment and the working directory of a command line: those of its process, or of a test. */
export interface Streams {
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Environment;
  readonly cwd: string;
}

type StreamName = 'stdout' | 'stderr';

const ERASE_LINE = '\u001b[2K';

/** Write errors that only mean that the reader closed the pipe. */
const CLOSED_PIPE_CODES: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET']);

/** Writes to stdout and stderr of one process. */
export class Terminal {
  readonly streams: Streams;
  /**
   * Called on SIGINT (Ctrl-C), SIGTERM and SIGHUP, before the process exits. Cleans up and returns the message to
   * print. A second signal exits without waiting for it.
   */
  onInterrupt: (() => string | Promise<string>) | undefined;
  /** False if progress is not shown: the output is JSON for a program. */
  isProgressEnabled = true;
  private hasProgressLine = false;
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

  /** True if a write to stdout has failed. */
  get isStdoutClosed(): boolean {
    return this.writeErrors.has('stdout');
  }

  /** Writes text to stdout. Resolves when the write succeeded or failed. */
  print(text: string): Promise<void> {
    const { stdout } = this.streams;
    return writeFully(stdout, /* guard: printed-text-escaped */ sanitizeOutput(text, this.displayOf(stdout).color));
  }

  /** Writes one JSON document to stdout. */
  printJson(value: unknown): Promise<void> {
    return this.print(`${terminalJson(value)}\n`);
  }

  /** Writes JSON documents to stdout, one per line. */
  printJsonLines(values: readonly unknown[]): Promise<void> {
    return this.print(values.map((value) => `${terminalJson(value)}\n`).join(''));
  }

  /** Writes indented JSON to stdout. */
  printPrettyJson(value: unknown): Promise<void> {
    return this.print(`${terminalJson(value, 2)}\n`);
  }

  /** Writes a line to stderr. */
  printToStderr(line: string): void {
    const { stderr } = this.streams;
    this.removeProgressLine();
    stderr.write(/* guard: message-escaped */ sanitizeOutput(`${line}\n`, this.displayOf(stderr).color));
  }

  /** Shows progress on stderr: in place on a terminal, otherwise as a line. Undefined removes the display. */
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
    if (text === undefined && !this.hasProgressLine) return;
    this.hasProgressLine = text !== undefined;
    stderr.write(`\r${ERASE_LINE}${line}`);
  }

  /** Removes the progress from a terminal, so that the next line does not follow it. */
  private removeProgressLine(): void {
    if (this.hasProgressLine) this.showProgress(undefined);
  }

  /** Waits until all pending writes are done. */
  async flush(): Promise<void> {
    await Promise.all([writeFully(this.streams.stdout, ''), writeFully(this.streams.stderr, '')]);
  }

  /**
   * Flushes the output and returns the exit code of the process. A failed verb keeps its code. A successful verb whose
   * output could not be written gets the code of a fault, except if the reader closed the pipe.
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

  /** Returns the display properties of a stream. */
  displayOf(stream: Output = this.streams.stdout): { readonly color: boolean; readonly width: number } {
    return { color: isColorEnabled(stream, this.streams.env), width: this.lineWidth(stream) };
  }

  /** Returns the maximum line width of a stream, in columns: that of the terminal, or 100. */
  lineWidth(stream: Output): number {
    return stream.isTTY === true ? stream.columns || 80 : 100;
  }
}

/** Returns JSON that is safe on a terminal: invisible characters are escaped, which does not change the value. */
function terminalJson(value: unknown, indent?: number): string {
  // guard: json-escaped
  return escapeInvisibleInJson(JSON.stringify(value, null, indent) ?? 'null');
}

function writeFully(stream: Output, text: string): Promise<void> {
  return new Promise((resolve) => {
    stream.write(text, () => resolve());
  });
}
