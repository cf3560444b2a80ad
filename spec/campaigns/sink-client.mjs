// The connection of a worker to the sink.

import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** @typedef {(effect: { turn: string, step: string, safety: string, key: string }) => Promise<string>} Perform */

/**
 * Connects to the sink. The returned function writes the effect to the socket synchronously, before it returns a
 * promise.
 * @param {string} path @returns {Promise<Perform>}
 */
export async function connectSink(path) {
  const socket = connect(path);
  await once(socket, 'connect');
  socket.on('error', () => process.exit(3));
  /** @type {Map<number, (value: string) => void>} */
  const pending = new Map();
  const lines = createInterface({ input: socket });
  const welcome = once(lines, 'line');
  socket.write(`${JSON.stringify({ hello: process.pid })}\n`);
  await welcome;
  lines.on('line', (line) => {
    const { id, value } = JSON.parse(line);
    pending.get(id)?.(value);
    pending.delete(id);
  });
  let nextId = 0;
  return (effect) =>
    new Promise((resolve) => {
      const id = nextId++;
      pending.set(id, resolve);
      socket.write(`${JSON.stringify({ id, ...effect })}\n`);
    });
}
