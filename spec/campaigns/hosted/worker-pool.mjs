// The worker processes of a campaign: each is replaced when it is killed. One that ends by itself is a failure.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('hosted-worker.mjs', import.meta.url));

/** Keeps a number of workers running. */
export class WorkerPool {
  kills = 0;
  /** @type {string[]} */
  failures = [];
  /** @type {Set<import('node:child_process').ChildProcess>} */
  #children = new Set();
  /** @type {import('node:child_process').ChildProcess[]} */
  #ready = [];
  #args;
  #env;
  #isStopped = false;

  /** @param {readonly string[]} args @param {NodeJS.ProcessEnv} [env] */
  constructor(args, env = {}) {
    this.#args = args;
    this.#env = { ...process.env, ...env };
    process.once('exit', () => {
      for (const child of this.#children) child.kill('SIGKILL');
    });
  }

  /** The number of workers that are at work. */
  get readyCount() {
    return this.#ready.length;
  }

  /** Starts workers. @param {number} count */
  start(count) {
    for (let n = 0; n < count; n++) this.#startOne();
  }

  /** Kills the worker that has been at work for the longest time, and starts another one. Returns false if none is. */
  async killOne() {
    const child = this.#ready.shift();
    if (child === undefined) return false;
    this.kills += 1;
    await this.#end(child);
    this.#startOne();
    return true;
  }

  /** Kills all workers. */
  async stop() {
    this.#isStopped = true;
    this.#ready = [];
    await Promise.all([...this.#children].map((child) => this.#end(child)));
  }

  /** @param {import('node:child_process').ChildProcess} child */
  async #end(child) {
    const exited = once(child, 'exit');
    this.#children.delete(child);
    child.kill('SIGKILL');
    await exited;
  }

  #startOne() {
    if (this.#isStopped) return;
    const child = fork(program, this.#args, { env: this.#env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.#children.add(child);
    child.on('message', (/** @type {{ kind: string, code?: string, message?: string, turnId?: string }} */ message) => {
      if (message.kind === 'working' && this.#children.has(child)) this.#ready.push(child);
      if (message.kind === 'problem') this.#note(message);
    });
    child.once('exit', (code, signal) => {
      if (this.#children.delete(child)) this.failures.push(`a worker ended by itself with ${code ?? signal}`);
      this.#ready = this.#ready.filter((other) => other !== child);
    });
  }

  /** @param {{ code?: string, message?: string, turnId?: string }} problem */
  #note({ code, message, turnId }) {
    // An effect in doubt is resolved by the operator. The process that owned the store may have been killed.
    if (/^(EFFECT_IN_DOUBT|STORE_OWNED|STORE_FAILED|STALE_WRITER)$/.test(code ?? '')) return;
    this.failures.push(`${turnId} cannot continue: ${code} ${message}`);
  }
}
