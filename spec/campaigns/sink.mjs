// The sink: receives the effects of all workers and remembers each, so that it can be asked what really happened.
// A worker reports over one connection for its whole life. When that connection has closed, nothing of it is in flight.

import { createServer } from 'node:net';
import { eachLine } from './lines.mjs';

/** @typedef {{ readonly pid: number, readonly key: string, readonly at: number }} Seen */
/** @typedef {{ readonly turn: string, readonly step: string }} Place */

/** What an effect gives back: the same in every attempt. @param {Place} place */
export const effectValue = ({ turn, step }) => `${turn}#${step}`;

export class Sink {
  /** All effects, by turn and step. @type {Map<string, Seen[]>} */
  effects = new Map();
  count = 0;
  /** @type {(turn: string) => void} */
  onEffect = () => {};
  /** Connections that are open, by pid. @type {Map<number, Promise<void>>} */
  #open = new Map();
  /** @type {() => number} */
  #random;
  /** @type {import('node:net').Server} */
  #server;

  /** @param {() => number} random decides how long each effect takes */
  constructor(random) {
    this.#random = random;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** @param {string} path of the Unix socket @returns {Promise<void>} */
  listen(path) {
    return new Promise((resolve) => this.#server.listen(path, 1000, () => resolve()));
  }

  /** @param {Place} place @returns {readonly Seen[]} */
  seen(place) {
    return this.effects.get(effectValue(place)) ?? [];
  }

  /** Resolves when nothing of this process can arrive any more. @param {number} pid */
  async closed(pid) {
    await this.#open.get(pid);
  }

  close() {
    this.#server.close();
  }

  /** @param {import('node:net').Socket} socket */
  #serve(socket) {
    let pid = 0;
    /** @type {() => void} */
    let end = () => {};
    socket.on('error', () => {});
    eachLine(socket, (line) => {
      const message = JSON.parse(line);
      if (message.hello !== undefined) {
        pid = message.hello;
        this.#open.set(pid, new Promise((resolve) => (end = resolve)));
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
      end();
    });
  }
}
