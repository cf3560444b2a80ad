// The sink receives the effects of all workers and records each attempt, independently of the journal. A worker uses
// one connection until it exits. Once that connection is closed, no effect of the worker is in flight.

import { createServer } from 'node:net';
import { eachLine } from './json-lines.mjs';

/** @typedef {{ readonly pid: number, readonly key: string, readonly at: number }} Attempt */
/** @typedef {{ readonly turn: string, readonly step: string }} StepId */

/** Returns the result of an effect, which is the same in every attempt. @param {StepId} stepId */
export const effectValue = ({ turn, step }) => `${turn}#${step}`;

/** A server on a Unix socket that records effects. */
export class Sink {
  /** The attempts at each effect, by turn and step. @type {Map<string, Attempt[]>} */
  effects = new Map();
  count = 0;
  /** @type {(turn: string) => void} */
  onEffect = () => {};
  /** Resolve when the connection of a process closes, by pid. @type {Map<number, Promise<void>>} */
  #open = new Map();
  /** @type {() => number} */
  #random;
  /** @type {import('node:net').Server} */
  #server;

  /** @param {() => number} random Determines the duration of each effect. */
  constructor(random) {
    this.#random = random;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** Listens on a Unix socket. @param {string} path @returns {Promise<void>} */
  listen(path) {
    return new Promise((resolve) => this.#server.listen(path, 1000, () => resolve()));
  }

  /** Returns the attempts at an effect. @param {StepId} stepId @returns {readonly Attempt[]} */
  attemptsOf(stepId) {
    return this.effects.get(effectValue(stepId)) ?? [];
  }

  /** Resolves when no further effect of this process can arrive. @param {number} pid */
  async closed(pid) {
    await this.#open.get(pid);
  }

  close() {
    this.#server.close();
  }

  /** Receives the effects of one worker. @param {import('node:net').Socket} socket */
  #serve(socket) {
    let pid = 0;
    /** @type {() => void} */
    let markClosed = () => {};
    socket.on('error', () => {});
    eachLine(socket, (line) => {
      const message = JSON.parse(line);
      if (message.hello !== undefined) {
        pid = message.hello;
        this.#open.set(pid, new Promise((resolve) => (markClosed = resolve)));
        socket.write('{"welcome":true}\n');
        return;
      }
      const name = effectValue(message);
      this.effects.set(name, [...(this.effects.get(name) ?? []), { pid, key: message.key, at: Date.now() }]);
      this.count += 1;
      this.onEffect(message.turn);
      const reply = () => socket.writable && socket.write(`${JSON.stringify({ id: message.id, value: name })}\n`);
      setTimeout(reply, this.#random() ** 3 * 60);
    });
    socket.on('close', () => {
      this.#open.delete(pid);
      markClosed();
    });
  }
}
