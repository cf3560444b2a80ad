// A server process in the controller: its start, its end, and requests to it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eachLine } from '../json-lines.mjs';

const PROGRAM = fileURLToPath(new URL('server.mjs', import.meta.url));
const REQUEST_MS = 15_000;
const START_MS = 20_000;

/** The directories and files that the processes of a campaign share. */
/** @typedef {{ readonly data: string, readonly sink: string, readonly stderr: number }} Shared */

/** A server that a campaign started. */
export class ServerProcess {
  /** Resolves with the time of the exit. @type {Promise<number>} */
  exited;
  /** True once the campaign has ended the process. */
  isEnding = false;
  /** The turns that the worker of the server could not continue. @type {{ readonly code: string }[]} */
  problems = [];
  #child;
  #url = '';

  /** Starts the process. Use `ready` before a request. @param {Shared} shared */
  constructor({ data, sink, stderr }) {
    const env = { ...process.env, CAMPAIGN_SINK: sink };
    this.#child = spawn(process.execPath, [PROGRAM, data], { env, stdio: ['ignore', 'pipe', stderr] });
    const kill = () => void this.#child.kill('SIGKILL');
    process.once('exit', kill);
    this.exited = once(this.#child, 'exit').then(() => {
      process.removeListener('exit', kill);
      return Date.now();
    });
    const { stdout } = this.#child;
    if (stdout === null) throw new TypeError('The process has no pipe.');
    this.ready = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`server ${this.pid} did not start`)), START_MS);
      this.exited.then(() => reject(new Error(`server ${this.pid} ended at its start`)));
      eachLine(stdout, (line) => {
        const { url, problem } = JSON.parse(line);
        if (problem !== undefined) this.problems.push(problem);
        if (url === undefined) return;
        this.#url = url;
        clearTimeout(timer);
        resolve(undefined);
      });
    });
    this.ready.catch(() => undefined);
  }

  get pid() {
    return this.#child.pid ?? 0;
  }

  /** True if the process has exited. */
  get hasExited() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Ends the process and resolves with the time of its exit. @param {'SIGTERM' | 'SIGKILL'} signal */
  end(signal) {
    this.isEnding = true;
    this.#child.kill(signal);
    return this.exited;
  }

  /**
   * Sends a request. Throws if the server is not reachable or answers with another status than 200.
   * @param {string} path @param {object} [body] @returns {Promise<Record<string, unknown>>}
   */
  async request(path, body) {
    const post = { method: 'POST', body: JSON.stringify(body) };
    const signal = AbortSignal.timeout(REQUEST_MS);
    const response = await fetch(`${this.#url}${path}`, { signal, ...(body !== undefined && post) });
    const document = /** @type {Record<string, unknown>} */ (await response.json());
    if (response.status !== 200) throw new Error(`${path} is answered with ${JSON.stringify(document)}`);
    return document;
  }
}
