// Runs the command line in this process, with streams that collect its output: what `rondo` does, without a process.

import { Readable, Writable } from 'node:stream';
import { runCommandLine } from '../../src/surfaces/cli/program.js';
import { Terminal } from '../../src/surfaces/cli/terminal.js';

/** The outcome of a command line. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a command line runs with. */
interface CommandContext {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The content of stdin. */
  readonly input?: string | Buffer;
  /** The code of the error with which each write to stdout fails, such as `ENOSPC`. */
  readonly stdoutError?: string;
  /** True if stdout is a terminal. */
  readonly isTerminal?: boolean;
}

class CollectedOutput extends Writable {
  private readonly chunks: Buffer[] = [];
  private readonly error: Error | undefined;

  readonly isTTY: boolean;

  constructor({ stdoutError: errorCode, isTerminal = false }: Pick<CommandContext, 'stdoutError' | 'isTerminal'> = {}) {
    super();
    this.isTTY = isTerminal;
    if (errorCode !== undefined) this.error = Object.assign(new Error(`${errorCode}: no write`), { code: errorCode });
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
    if (this.error === undefined) this.chunks.push(bytes);
    done(this.error);
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString('utf8');
  }
}

/** Runs a command line to its end. */
export async function runCommand(args: readonly string[], context: CommandContext): Promise<CommandResult> {
  const { cwd, env, input = '' } = context;
  const [stdout, stderr] = [new CollectedOutput(context), new CollectedOutput()];
  const stdin = Readable.from([Buffer.from(input)], { objectMode: false });
  const code = await runCommandLine(args, new Terminal({ stdin, stdout, stderr, env, cwd }));
  return { code, stdout: stdout.text, stderr: stderr.text };
}
