// A process of the campaign of budgets, as the campaign sees it; and the server that counts what the processes perform.

import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { eachLine } from '../json-lines.mjs';

/** @typedef {{ value?: any, error?: { code?: string, message?: string, stack?: string }, isLost?: true }} Report */

const program = fileURLToPath(new URL('budget-worker.mjs', import.meta.url));
const MAX_OPERATION_MS = 60_000;

/** A worker process. */
export class BudgetProcess {
  /** Resolves when the process accepts commands, or has exited. @type {Promise<void>} */
  ready;
  /** Resolves when the process has exited. @type {Promise<void>} */
  exited;
  isKilled = false;
  #child;
  #nextId = 0;
  /** @type {Map<number, (report: Report) => void>} */
  #pending = new Map();

  /** @param {{ file: string, socket: string, seed: number }} options */
  constructor({ file, socket, seed }) {
    this.#child = spawn(process.execPath, [program, file, socket, String(seed)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const { stdin, stdout } = this.#child;
    stdin.on('error', () => {});
    this.exited = new Promise((resolve) => this.#child.once('close', () => resolve()));
    this.ready = new Promise((resolve) => {
      eachLine(stdout, (line) => {
        const { id, ready, ...report } = JSON.parse(line);
        if (ready !== undefined) resolve();
        this.#pending.get(id)?.(report);
        this.#pending.delete(id);
      });
      void this.exited.then(() => resolve());
    });
    void this.exited.then(() => {
      for (const settle of this.#pending.values()) settle({ isLost: true });
      this.#pending.clear();
    });
  }

  get isAlive() {
    return !this.isKilled && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The number of commands without a report. */
  get load() {
    return this.#pending.size;
  }

  /** Sends a command and returns its report. @param {object} command @returns {Promise<Report>} */
  async send(command) {
    if (!this.isAlive) return { isLost: true };
    const id = this.#nextId++;
    /** @type {Promise<Report>} */
    const report = new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`No report on ${JSON.stringify(command)} after ${MAX_OPERATION_MS} ms.`)),
        MAX_OPERATION_MS,
      );
      this.#pending.set(id, (received) => {
        clearTimeout(timer);
        resolve(received);
      });
    });
    this.#child.stdin.write(`${JSON.stringify({ id, ...command })}\n`);
    return report;
  }

  /** Kills the process with SIGKILL. */
  kill() {
    this.isKilled = true;
    this.#child.kill('SIGKILL');
    return this.exited;
  }
}

/** Receives what processes perform, and answers after a random time, so that kills hit effects in flight. */
export class SinkServer {
  #server;
  #sink;
  #random;
  /** The connections that are open. @type {Set<Promise<void>>} */
  #connections = new Set();

  /** @param {import('./budget-sink.mjs').BudgetSink} sink @param {() => number} random */
  constructor(sink, random) {
    this.#sink = sink;
    this.#random = random;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** @param {string} path @returns {Promise<void>} */
  listen(path) {
    return new Promise((resolve) => this.#server.listen(path, () => resolve()));
  }

  /** Resolves when everything that the processes sent is counted. All of them must have exited. */
  async close() {
    await Promise.all(this.#connections);
    this.#server.close();
  }

  /** @param {import('node:net').Socket} socket */
  #serve(socket) {
    /** @type {Promise<void>} */
    const closed = new Promise((resolve) => socket.once('close', () => resolve()));
    this.#connections.add(closed);
    socket.on('error', () => {});
    eachLine(socket, (line) => {
      const { id, effect, call } = JSON.parse(line);
      if (effect !== undefined) this.#sink.effect(effect);
      else this.#sink.modelCall(call);
      const reply = () => socket.writable && socket.write(`${JSON.stringify({ id })}\n`);
      setTimeout(reply, this.#random() ** 3 * 30);
    });
  }
}
