// A worker in the controller: its process, its pending operations, and the periods in which the controller paused it.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eachLine } from './json-lines.mjs';

/** @typedef {(event: string, details: object) => void} LogFunction */
/** @typedef {{ readonly [name: string]: unknown }} ErrorData */
/**
 * The error of an operation, as the worker reports it.
 * @typedef {object} Failure
 * @property {string} [name]
 * @property {string} [code]
 * @property {string} message
 * @property {ErrorData} [data]
 */
/**
 * The outcome of an operation: a value, a refusal (a LoopError), a fault, or no report because the worker died.
 * @template T
 * @typedef {{ readonly kind: 'ok', readonly value: T } | { readonly kind: 'lost' }
 *   | { readonly kind: 'refused' | 'fault', readonly error: Failure }} Outcome
 */
/**
 * @typedef {object} Operation
 * @property {number} id
 * @property {string} op
 * @property {string} turn The turn of the operation. Its effects count as progress.
 * @property {number} at The time of the last progress.
 * @property {number} startedAt
 * @property {boolean} overdue
 * @property {(outcome: Outcome<unknown>) => void} settle
 */

const program = fileURLToPath(new URL('worker.mjs', import.meta.url));

/** A worker process and its state. */
export class WorkerProcess {
  /** @type {'starting' | 'ready' | 'failed' | 'ended'} */
  state = 'starting';
  /** True once the controller ends the worker. An exit of any other worker is a violation. */
  isEnding = false;
  startedAt = Date.now();
  /** The error with which the store could not be opened. @type {Failure | undefined} */
  failure;
  /** @type {Map<number, Operation>} */
  operations = new Map();
  /** Resolves when the process has exited, its output is read, and none of its effects is in flight. */
  exited;
  #child;
  /** The periods in which the controller blocked or stopped the worker. @type {{ from: number, to: number }[]} */
  #pauses = [];
  /** @type {LogFunction} */
  #log;

  /**
   * Starts a worker. `drained` resolves when no effect of a process is in flight.
   * @param {readonly string[]} args
   * @param {{ stderr: number, log: LogFunction, drained: (pid: number) => Promise<void> }} parts
   */
  constructor(args, { stderr, log, drained }) {
    this.#log = log;
    this.#child = spawn(process.execPath, [program, ...args], { stdio: ['pipe', 'pipe', stderr] });
    const { stdin, stdout } = this.#child;
    stdin?.on('error', () => {});
    if (stdout) eachLine(stdout, (line) => this.#receive(line));
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.state = 'ended';
        log('exit', { pid: this.pid, code, signal });
        void drained(this.pid).then(() => {
          this.#settleAsLost();
          resolve({ code, signal });
        });
      });
    });
  }

  get pid() {
    return this.#child.pid ?? 0;
  }

  get alive() {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** True while the controller pauses the worker. */
  get paused() {
    return (this.#pauses.at(-1)?.to ?? 0) > Date.now();
  }

  /** Sends an operation to the worker. @param {Operation} operation @param {object} args */
  send(operation, args) {
    const { id, op } = operation;
    this.operations.set(id, operation);
    this.#log('command', { pid: this.pid, id, op, ...args });
    if (this.state === 'ended') this.#settleAsLost();
    else this.#child.stdin?.write(`${JSON.stringify({ id, op, ...args })}\n`);
  }

  /** @param {NodeJS.Signals} signal */
  kill(signal) {
    this.#log('signal', { pid: this.pid, signal });
    this.#child.kill(signal);
  }

  /**
   * Records that the controller pauses the worker from now on. The returned function ends the pause early.
   * @param {number} ms @returns {() => void}
   */
  pause(ms) {
    const period = { from: Date.now(), to: Date.now() + ms };
    this.#pauses.push(period);
    return () => {
      period.to = Date.now();
    };
  }

  /** Returns the milliseconds since a time, without the pauses of the worker. @param {number} since */
  unpausedMsSince(since) {
    const now = Date.now();
    const pausedMs = this.#pauses.reduce(
      (sum, { from, to }) => sum + Math.max(0, Math.min(to, now) - Math.max(from, since)),
      0,
    );
    return now - since - pausedMs;
  }

  /** Handles a report of the worker. @param {string} line */
  #receive(line) {
    const report = JSON.parse(line);
    this.#log('report', { pid: this.pid, ...report });
    if (report.ready !== undefined) this.state = 'ready';
    if (report.fatal !== undefined) {
      this.state = 'failed';
      this.failure = report.fatal;
    }
    const operation = this.operations.get(report.id);
    if (operation === undefined) return;
    this.operations.delete(report.id);
    const { error, value } = report;
    if (error === undefined) operation.settle({ kind: 'ok', value });
    else operation.settle({ kind: error.name === 'LoopError' ? 'refused' : 'fault', error });
  }

  /** Settles all pending operations of a worker that has exited. */
  #settleAsLost() {
    for (const operation of this.operations.values()) operation.settle({ kind: 'lost' });
    this.operations.clear();
  }
}
