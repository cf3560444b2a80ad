/** The two streams: answers go to stdout, everything for people to stderr. Colour only where somebody looks. */
import type { Environment } from '../settings.js';
import { wantsColor } from './paint.js';

export interface Streams {
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly env: Environment;
  readonly cwd: string;
}

export class Terminal {
  readonly streams: Streams;
  /** What is to be said, and tidied up, when somebody presses Ctrl-C. */
  interrupted: (() => string) | undefined;

  constructor(streams: Streams) {
    this.streams = streams;
  }

  /** Writes an answer; resolves when it has been handed over. */
  print(text: string): Promise<void> {
    return handOver(this.streams.stdout, text);
  }

  /** Writes an answer for a program: one document. */
  json(value: unknown): Promise<void> {
    return this.print(`${JSON.stringify(value)}\n`);
  }

  /** Says a line to the person. */
  say(line: string): void {
    this.streams.stderr.write(`${line}\n`);
  }

  /** Lets everything that was written get out. */
  async flush(): Promise<void> {
    await Promise.all([handOver(this.streams.stdout, ''), handOver(this.streams.stderr, '')]);
  }

  /** How things look on a stream: in colour or not, and how wide. */
  look(stream = this.streams.stdout): { readonly color: boolean; readonly width: number } {
    return { color: wantsColor(stream, this.streams.env), width: this.width(stream) };
  }

  /** How wide a line may be. */
  width(stream: NodeJS.WriteStream): number {
    return stream.isTTY ? stream.columns || 80 : 100;
  }
}

function handOver(stream: NodeJS.WriteStream, text: string): Promise<void> {
  return new Promise((resolve) => {
    stream.write(text, () => resolve());
  });
}
