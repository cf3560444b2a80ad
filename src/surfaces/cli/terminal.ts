/**
 * The two streams: answers go to stdout, everything for people to stderr. Everything that a verb writes passes here, so that no
 * text can control the terminal and no failed write goes unnoticed.
 */
import { escapeJson } from '../../base/excerpt.js';
import type { Environment } from '../settings.js';
import type { Output } from './output.js';
import { cut, printable, wantsColor } from './paint.js';
import { exit } from './verb.js';

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
const READER_GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET']);

export class Terminal {
  readonly streams: Streams;
  /** What is to be said, and tidied up, when somebody presses Ctrl-C. */
  interrupted: (() => string) | undefined;
  /** The first error of each stream. */
  private readonly failures = new Map<StreamName, NodeJS.ErrnoException>();

  constructor(streams: Streams) {
    this.streams = streams;
    for (const name of ['stdout', 'stderr'] as const) {
      streams[name].on('error', (error: NodeJS.ErrnoException) => {
        if (!this.failures.has(name)) this.failures.set(name, error);
      });
    }
  }

  /** True once stdout takes nothing more. */
  get isCut(): boolean {
    return this.failures.has('stdout');
  }

  /** Writes an answer; resolves when it has been handed over, or could not be. */
  print(text: string): Promise<void> {
    const { stdout } = this.streams;
    return handOver(stdout, /* guard: printed-text-escaped */ printable(text, this.look(stdout).color));
  }

  /** Writes an answer for a program: one document. */
  json(value: unknown): Promise<void> {
    return this.print(`${jsonOf(value)}\n`);
  }

  /** Writes an answer for a program: one document a line. */
  jsonLines(values: readonly unknown[]): Promise<void> {
    return this.print(values.map((value) => `${jsonOf(value)}\n`).join(''));
  }

  /** Writes a value for a person, as JSON in several lines. */
  pretty(value: unknown): Promise<void> {
    return this.print(`${jsonOf(value, 2)}\n`);
  }

  /** Says a line to the person. */
  say(line: string): void {
    const { stderr } = this.streams;
    stderr.write(/* guard: message-escaped */ printable(`${line}\n`, this.look(stderr).color));
  }

  /** Shows how far something is: in place on a terminal, else as a line. Undefined takes the display away. */
  progress(text: string | undefined): void {
    const { stderr } = this.streams;
    if (stderr.isTTY !== true) {
      if (text !== undefined) this.say(text);
      return;
    }
    const line =
      text === undefined ? '' : cut(/* guard: progress-escaped */ printable(text, false), this.width(stderr) - 1);
    stderr.write(`\r${ERASE_LINE}${line}`);
  }

  /** Lets everything that was written get out. */
  async flush(): Promise<void> {
    await Promise.all([handOver(this.streams.stdout, ''), handOver(this.streams.stderr, '')]);
  }

  /**
   * The exit code of the process. A verb that did not succeed keeps its own code, whatever became of its output. A verb that
   * succeeded and whose output is lost ends with that of a fault; a reader that closed the pipe loses nothing it wanted.
   */
  async end(code: number): Promise<number> {
    await this.flush();
    const lost = [...this.failures].find(
      ([, error]) => /* guard: closed-reader-is-no-failure */ !READER_GONE.has(error.code),
    );
    if (lost === undefined) return code;
    const [name, error] = lost;
    this.say(`rondo: The output could not be written to ${name}: ${error.message}. What the verb did is recorded.`);
    await this.flush();
    // guard: lost-output-fails-a-success
    return code === exit.ok ? exit.fault : code;
  }

  /** How things look on a stream: in colour or not, and how wide. */
  look(stream: Output = this.streams.stdout): { readonly color: boolean; readonly width: number } {
    return { color: wantsColor(stream, this.streams.env), width: this.width(stream) };
  }

  /** How wide a line may be. */
  width(stream: Output): number {
    return stream.isTTY === true ? stream.columns || 80 : 100;
  }
}

/** JSON that is safe on a terminal: what cannot be seen is escaped, and the value stays the same. */
function jsonOf(value: unknown, indent?: number): string {
  // guard: json-escaped
  return escapeJson(JSON.stringify(value, null, indent) ?? 'null');
}

function handOver(stream: Output, text: string): Promise<void> {
  return new Promise((resolve) => {
    stream.write(text, () => resolve());
  });
}
