// A project in a temporary directory, in which the command line runs: in this process, or as one of its own.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type CommandResult, runCommand } from './command-line.js';

/** The executable that the package ships. */
export const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));

/** The outcome of a finished process. */
export interface ProcessResult extends CommandResult {
  readonly signal: NodeJS.Signals | null;
}

/** A running process. */
interface RunningProcess {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<ProcessResult>;
  /** Returns its output so far. */
  output(): Pick<ProcessResult, 'stdout' | 'stderr'>;
}

/** Additional environment variables, and the content of stdin. */
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
}

const anyObject = { type: 'object' };

/** Returns a loop that runs a built-in tool. */
export function tool(id: string, name: string, safety = 'idempotent'): object {
  const implementation = `builtin:${name}`;
  return { id, name: id, version: '1.0.0', kind: 'tool', ...schemas(), tool: { implementation, safety } };
}

/** Returns the schema members of a definition. */
export function schemas(inputSchema: object = anyObject, outputSchema: object = anyObject): object {
  return { inputSchema, outputSchema };
}

/** A prompt loop that greets by name. */
export const hello = {
  id: 'hello',
  name: 'Says hello',
  version: '1.0.0',
  kind: 'prompt',
  ...schemas({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }),
  prompt: { template: 'Greet {{name}}.' },
  backend: { id: 'mock' },
};

/** A composite that runs `hello`, then `wait`. */
const pair = {
  id: 'pair',
  name: 'Hello and a wait',
  version: '1.0.0',
  kind: 'composite',
  ...schemas(),
  composite: {
    steps: [
      { loopId: 'hello', inputMapping: { name: '$.input.name' } },
      { loopId: 'wait', inputMapping: { ms: '$.input.ms' } },
    ],
  },
};

/** A program that also ends with the process that started it and with its project. A program of Node would start slowly. */
const HOLD_PROGRAM = `#!/bin/sh
input=$(cat)
until=\${input#*'"until":"'}
until=\${until%%'"'*}
while [ ! -e "$until" ]; do
  [ -e "$0" ] && kill -0 "$PPID" 2> /dev/null || exit 1
  sleep 0.03
done
printf '{"held":"%s"}' "$until"
`;

/** A tool that runs until the file that its input names exists in the directory of the definitions. */
const hold = (safety = 'idempotent'): object => ({
  ...tool('hold', 'echo'),
  tool: { implementation: 'exec:hold', safety },
});

const defaultLoops = {
  hello,
  pair,
  wait: tool('wait', 'wait'),
  echo: tool('echo', 'echo'),
  fail: tool('fail', 'fail'),
};

/** A project with loops in a temporary directory, which is removed after the test. */
export class Project {
  readonly directory: string;
  /** True if the operator trusts the project. */
  trusted = false;

  constructor(loops: Readonly<Record<string, object>> = defaultLoops) {
    this.directory = mkdtempSync(join(tmpdir(), 'rondo-cli-'));
    for (const [name, definition] of Object.entries(loops)) this.write(`loops/${name}.json`, definition);
    onTestFinished(() => rmSync(this.directory, { recursive: true, force: true }));
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  write(name: string, content: object | string): string {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
    return this.path(name);
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  has(name: string): boolean {
    return existsSync(this.path(name));
  }

  /** Adds the tool `hold` and trusts the project. */
  withHoldTool(safety?: string): this {
    this.write('loops/hold.json', hold(safety));
    chmodSync(this.write('loops/hold', HOLD_PROGRAM), 0o755);
    this.trusted = true;
    return this;
  }

  /** Returns the environment of every process of the project. */
  environment(): Readonly<Record<string, string>> {
    const { PATH = '', HOME = '' } = process.env;
    return { PATH, HOME, ...(this.trusted && { RONDO_TRUST: this.directory }) };
  }

  /** Ends the `hold` tools that wait for this name. */
  release(name: string): void {
    this.write(`loops/${name}`, '');
  }

  /** Starts a verb in a process of its own. */
  start(args: readonly string[], { env = {}, input }: RunOptions = {}): RunningProcess {
    const environment = { ...this.environment(), ...env };
    const child = spawn(process.execPath, [bin, ...args], { cwd: this.directory, env: environment });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (chunk: string) => {
        output[name] += chunk;
      });
    }
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
    const ended = new Promise<ProcessResult>((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal, ...output }));
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, ended, output: () => ({ ...output }) };
  }

  /** Runs a verb to its end, in this process. */
  run(args: readonly string[], { env = {}, ...options }: RunOptions = {}): Promise<CommandResult> {
    return runCommand(args, { cwd: this.directory, env: { ...this.environment(), ...env }, ...options });
  }

  /** Runs a verb to its end, in a process of its own. */
  runProcess(args: readonly string[], options: RunOptions = {}): Promise<ProcessResult> {
    return this.start(args, options).ended;
  }

  /** Runs a verb with `--json` and parses its output. */
  async json<T = Record<string, unknown>>(args: readonly string[], options: RunOptions = {}): Promise<T> {
    return parseDocument<T>(await this.run([...args, '--json'], options));
  }

  /** Runs a verb with `--json` in a process of its own and parses its output. */
  async jsonProcess<T = Record<string, unknown>>(args: readonly string[], options: RunOptions = {}): Promise<T> {
    return parseDocument<T>(await this.runProcess([...args, '--json'], options));
  }

  /** Starts a turn that runs until `name` is released, and waits until the turn is in the journal. */
  async startHeld(name: string, more: readonly string[] = []): Promise<RunningProcess & { readonly turn: string }> {
    const args = ['run', 'hold', '--session', name, '--input', JSON.stringify({ until: name }), ...more];
    const running = this.start(args);
    const turn = await until(async () => {
      // Between opening the store and listening the process cannot be reached; then the verb prints an error.
      const { runs = [] } = await this.json<{ runs?: { turnId: string; status: string }[] }>(['runs']);
      return runs.find(({ turnId, status }) => turnId.startsWith(`${name}.`) && status === 'running')?.turnId;
    });
    return { ...running, turn };
  }
}

function parseDocument<T>({ stdout, stderr }: CommandResult): T {
  try {
    return JSON.parse(stdout) as T;
  } catch {
    throw new Error(`The output is not one JSON document: ${stdout.slice(0, 500)}\n${stderr}`);
  }
}

/** Parses output with one JSON document per line. */
export function parseLines<T>(text: string): T[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);
}

/** Polls until `read` returns a truthy value, and returns it. Throws after 30 seconds. */
export async function until<T>(read: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (let attempts = 600; attempts > 0; attempts--) {
    const value = await read();
    if (value) return value;
    await setTimeout(50);
  }
  throw new Error('The expected value did not appear within 30 seconds.');
}
