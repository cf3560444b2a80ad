// A project in a temporary directory, and the built command line run in it as people run it: as a process.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

/** What the package ships. */
export const bin = fileURLToPath(new URL('../../lib/surfaces/cli/main.js', import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<Ended>;
  /** What it has said so far. */
  said(): Pick<Ended, 'stdout' | 'stderr'>;
}

export interface Setting {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string | Buffer;
}

const any = { type: 'object' };

/** A tool loop of a built-in tool. */
export function tool(id: string, name: string, safety = 'idempotent'): object {
  const implementation = `builtin:${name}`;
  return { id, name: id, version: '1.0.0', kind: 'tool', ...ends(), tool: { implementation, safety } };
}

export function ends(inputSchema: object = any, outputSchema: object = any): object {
  return { inputSchema, outputSchema };
}

export const hello = {
  id: 'hello',
  name: 'Says hello',
  version: '1.0.0',
  kind: 'prompt',
  ...ends({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }),
  prompt: { template: 'Greet {{name}}.' },
  backend: { id: 'mock' },
};

/** A composite that says hello, then waits. */
export const pair = {
  id: 'pair',
  name: 'Hello and a wait',
  version: '1.0.0',
  kind: 'composite',
  ...ends(),
  composite: {
    steps: [
      { loopId: 'hello', inputMapping: { name: '$.input.name' } },
      { loopId: 'wait', inputMapping: { ms: '$.input.ms' } },
    ],
  },
};

const HOLD = `#!/usr/bin/env node
import { chmodSync, existsSync, readFileSync } from 'node:fs';
const { until } = JSON.parse(readFileSync(0, 'utf8'));
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent || !existsSync(process.argv[1])) process.exit(1);
  if (!existsSync(until)) return;
  process.stdout.write(JSON.stringify({ held: until }));
  process.exit(0);
}, 20);
`;

/** A tool that works until a file of that name is in the directory of the definitions. */
export const hold = (safety = 'idempotent'): object => ({
  ...tool('hold', 'echo'),
  tool: { implementation: 'exec:hold', safety },
});

const usual = { hello, pair, wait: tool('wait', 'wait'), echo: tool('echo', 'echo'), fail: tool('fail', 'fail') };

export class Project {
  readonly directory: string;
  /** Whether the operator trusts the project. */
  trusted = false;

  constructor(loops: Readonly<Record<string, object>> = usual) {
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

  /** Adds the tool that holds on, and lets it run. */
  holding(safety?: string): this {
    this.write('loops/hold.json', hold(safety));
    chmodSync(this.write('loops/hold', HOLD), 0o755);
    this.trusted = true;
    return this;
  }

  /** What every process of the project has in its environment. */
  environment(): Readonly<Record<string, string>> {
    const { PATH = '', HOME = '' } = process.env;
    return { PATH, HOME, ...(this.trusted && { RONDO_TRUST: this.directory }) };
  }

  /** Lets go what holds on until this. */
  release(name: string): void {
    this.write(`loops/${name}`, '');
  }

  start(args: readonly string[], { env = {}, input }: Setting = {}): Running {
    const all = { ...this.environment(), ...env };
    const child = spawn(process.execPath, [bin, ...args], { cwd: this.directory, env: all });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (piece: string) => {
        said[name] += piece;
      });
    }
    child.stdin.on('error', () => undefined);
    child.stdin.end(input ?? '');
    const ended = new Promise<Ended>((resolve) => {
      child.once('close', (code, signal) => resolve({ code, signal, ...said }));
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return { child, ended, said: () => ({ ...said }) };
  }

  /** Runs a verb to its end. */
  run(args: readonly string[], setting: Setting = {}): Promise<Ended> {
    return this.start(args, setting).ended;
  }

  /** Runs a verb and reads its one document. */
  async json<T = Record<string, unknown>>(args: readonly string[], setting: Setting = {}): Promise<T> {
    const { stdout, stderr } = await this.run([...args, '--json'], setting);
    try {
      return JSON.parse(stdout) as T;
    } catch {
      throw new Error(`Not one document: ${stdout.slice(0, 500)}\n${stderr}`);
    }
  }

  /** Starts a run that holds on until `name` is released, and waits until its turn stands in the journal. */
  async held(name: string, more: readonly string[] = []): Promise<Running & { readonly turn: string }> {
    const args = ['run', 'hold', '--session', name, '--input', JSON.stringify({ until: name }), ...more];
    const running = this.start(args);
    const turn = await until(async () => {
      // The process may be between opening the store and listening; then there is an error in its place.
      const { runs = [] } = await this.json<{ runs?: { turnId: string; status: string }[] }>(['runs']);
      return runs.find(({ turnId, status }) => turnId.startsWith(`${name}.`) && status === 'running')?.turnId;
    });
    return { ...running, turn };
  }
}

/** Waits until there is something to see. */
export async function until<T>(look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (let left = 600; left > 0; left--) {
    const seen = await look();
    if (seen) return seen;
    await setTimeout(50);
  }
  throw new Error('It did not come.');
}
