// The builds that the guard benchmark compares. The benchmark is copied for each build, and `../src` of the copy is a link
// to the `lib/` of that build: the same program measures what its users run.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { GuardCaseName } from './guard-cases.js';

const compiled = fileURLToPath(new URL('.', import.meta.url));

/** The checkout of the benchmark itself. */
export const ownCheckout = fileURLToPath(new URL('../..', import.meta.url));

/** A built checkout, and the program that measures a case with its library. */
export interface Build {
  readonly checkout: string;
  readonly program: string;
}

/** Returns why a checkout cannot be measured and what to do, or undefined. */
export function buildFault(checkout: string): string | undefined {
  const missing = ['lib/index.js', 'dist/index.js', 'node_modules'].find((path) => !existsSync(join(checkout, path)));
  if (missing === undefined) return undefined;
  return [
    `${checkout} is not a built checkout of Rondo: it has no ${missing}. To build one of main:`,
    `  git worktree add ${checkout} main`,
    `  (cd ${checkout} && npm ci && npm run build)`,
  ].join('\n');
}

/** Copies the benchmark into a folder of `dist-bench`, where it uses the library of a checkout. */
export function prepareBuild(checkout: string, folder: string): Build {
  const copy = join(folder, 'bench');
  mkdirSync(folder);
  cpSync(compiled, copy, { recursive: true });
  symlinkSync(join(checkout, 'lib'), join(folder, 'src'), 'junction');
  return { checkout, program: join(copy, 'guard-case.js') };
}

/** A case that cannot be measured with a build. */
export class CaseFailure extends Error {
  readonly build: Build;

  constructor(build: Build, name: GuardCaseName, output: string) {
    const reason = /^.*(?:does not provide an export|Cannot find module).*$/m
      .exec(output)?.[0]
      .replace("'../src/", "'lib/");
    super(`"${name}" cannot be measured with ${build.checkout}: ${reason ?? output.trim()}`);
    this.build = build;
  }
}

const TIMEOUT_MS = 30_000;

/** A process that measures a case with a build. */
export class MeasuredProcess {
  private readonly child: ChildProcess;
  private readonly ready: Promise<unknown>;
  private readonly closed: Promise<unknown>;
  private readonly failed: Promise<never>;

  constructor(build: Build, name: GuardCaseName) {
    const options = { cwd: ownCheckout, execArgv: [], timeout: TIMEOUT_MS };
    this.child = fork(build.program, [name, build.checkout], {
      ...options,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    let output = '';
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    this.ready = once(this.child, 'message');
    this.closed = once(this.child, 'close');
    this.failed = this.closed.then(() => {
      const wasKilled = this.child.signalCode !== null;
      throw new CaseFailure(build, name, wasKilled ? `It took more than ${TIMEOUT_MS / 1000} s.` : output);
    });
    this.failed.catch(() => undefined);
  }

  /** Waits until the process has loaded its case and warmed up. */
  async load(): Promise<void> {
    await Promise.race([this.ready, this.failed]);
  }

  /** Runs the case for a short time. Returns its microseconds per step. */
  async pass(): Promise<number> {
    const answer = once(this.child, 'message');
    this.child.send('pass');
    const [time] = await Promise.race([answer, this.failed]);
    return Number(time);
  }

  /** Ends the process. */
  async end(): Promise<void> {
    if (this.child.connected) this.child.send('end');
    await this.closed;
  }
}
