// The server of the campaign of signals, which is killed and replaced. A request waits for the next one.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('signal-server.mjs', import.meta.url));
const RETRY_MS = 20;
const REQUEST_MS = 20_000;

/** Keeps one server running. */
export class ServerPool {
  kills = 0;
  /** Errors that the servers reported. @type {string[]} */
  errors = [];
  /** How many requests had no response and were repeated. */
  repeated = 0;
  #file;
  #env;
  /** @type {import('node:child_process').ChildProcess | undefined} */
  #child;
  #port = 0;

  /** @param {string} file @param {NodeJS.ProcessEnv} env */
  constructor(file, env) {
    this.#file = file;
    this.#env = { ...process.env, ...env };
    process.once('exit', () => this.#child?.kill('SIGKILL'));
  }

  /** Starts a server, and resolves when it listens. */
  async start() {
    const child = fork(program, [this.#file], { env: this.#env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#child = child;
    child.on('message', (/** @type {{ kind: string, message?: string }} */ { kind, message = '' }) => {
      if (kind === 'error') this.errors.push(message);
    });
    const [{ port }] = await once(child, 'message');
    this.#port = port;
  }

  /** Kills the server and starts another one. */
  async replace() {
    this.kills += 1;
    await this.stop();
    await this.start();
  }

  async stop() {
    const child = this.#child;
    if (child === undefined) return;
    this.#port = 0;
    this.#child = undefined;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /**
   * Sends a request until a server answers it, and returns the status and whether it was sent more than once.
   * @param {string} path @param {RequestInit} init
   */
  async send(path, init) {
    for (let attempt = 0; ; attempt++) {
      const port = this.#port;
      if (port === 0) {
        await wait(RETRY_MS);
        continue;
      }
      try {
        const signal = AbortSignal.timeout(REQUEST_MS);
        const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, method: 'POST', signal });
        await response.arrayBuffer();
        // The inbox is full, or the owner of the store was killed.
        if (response.status !== 503) return { status: response.status, isRepeated: attempt > 0 };
        await wait(10 * RETRY_MS);
      } catch {
        this.repeated += 1;
        await wait(RETRY_MS);
      }
    }
  }
}
