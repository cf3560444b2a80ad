// A worker as the controller sees it: a process, the operations it was given, and the times in which it was held up.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { eachLine } from './lines.mjs';

/** @typedef {{ readonly name?: string, readonly code?: string, readonly message: string, readonly data?: Record<string, unknown> }} Failure */
/**
 * How an operation ended: with a value, with a definite refusal (a LoopError), with a fault, or without a report,
 * because the worker died.
 * @template T
 * @typedef {{ readonly kind: 'ok', readonly value: T } | { readonly kind: 'refused' | 'fault', readonly error: Failure }
 *   | { readonly kind: 'lost' }} Outcome
 */
/**
 * @typedef {object} Operation
 * @property {number} id
 * @property {string} op
 * @property {string} turn the turn it is about, for which effects count as progress
 * @property {number} at when it last made progress
 * @property {number} begun
 * @property {boolean} overdue
 * @property {(outcome: Outcome<unknown>) => void} settle
 */

const program = fileURLToPath(new URL('worker.mjs', import.meta.url));

export class WorkerProcess {
  /** @type {'starting' | 'ready' | 'failed' | 'ended'} */
  state = 'starting';
  /** Set before the controller ends it; a worker that ends otherwise is a violation. */
  doomed = false;
  startedAt = Date.now();
  /** What kept it from opening the store. @type {Failure | undefined} */
  failure;
  /** @type {Map<number, Operation>} */
  operations = new Map();
  /** Resolves when the process is gone, all it wrote is read, and none of its effects are in flight. */
  gone;
  #child;
  /** When it was blocked or stopped by the controller. @type {{ from: number, to: number }[]} */
  #pauses = [];
  /** @type {(event: string, facts: object) => void} */
  #log;

  /**
   * @param {readonly string[]} args
   * @param {{ stderr: number, log: (event: string, facts: object) => void, drained: (pid: number) => Promise<void> }} parts
   */
  constructor(args, { stderr, log, drained }) {
    this.#log = log;
    this.#child = spawn(process.execPath, [program, ...args], { stdio: ['pipe', 'pipe', stderr] });
    const { stdin, stdout } = this.#child;
    stdin?.on('error', () => {});
    if (stdout) eachLine(stdout, (line) => this.#hear(line));
    this.gone = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.state = 'ended';
        log('exit', { pid: this.pid, code, signal });
        void drained(this.pid).then(() => {
          this.#loseAll();
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

  /** True while the controller holds it up. */
  get paused() {
    return (this.#pauses.at(-1)?.to ?? 0) > Date.now();
  }

  /** @param {Operation} operation @param {object} args */
  give(operation, args) {
    const { id, op } = operation;
    this.operations.set(id, operation);
    this.#log('command', { pid: this.pid, id, op, ...args });
    if (this.state === 'ended') this.#loseAll();
    else this.#child.stdin?.write(`${JSON.stringify({ id, op, ...args })}\n`);
  }

  /** @param {NodeJS.Signals} signal */
  kill(signal) {
    this.#log('signal', { pid: this.pid, signal });
    this.#child.kill(signal);
  }

  /** Notes that the controller holds the worker up from now on. @param {number} ms @returns {() => void} ends it early */
  pause(ms) {
    const span = { from: Date.now(), to: Date.now() + ms };
    this.#pauses.push(span);
    return () => {
      span.to = Date.now();
    };
  }

  /** Milliseconds since a time, without those in which the worker itself was held up. @param {number} since */
  freeSince(since) {
    const now = Date.now();
    const held = this.#pauses.reduce(
      (sum, { from, to }) => sum + Math.max(0, Math.min(to, now) - Math.max(from, since)),
      0,
    );
    return now - since - held;
  }

  /** @param {string} line */
  #hear(line) {
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

  #loseAll() {
    for (const operation of this.operations.values()) operation.settle({ kind: 'lost' });
    this.operations.clear();
  }
}
