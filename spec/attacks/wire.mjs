// An independent implementation of the socket protocol that can deviate from it at any point.

import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { Actor, expect, root, sleep, within } from '../support/store-attack.mjs';

/** The version of the socket protocol. */
export const VERSION = 2;

/**
 * Returns the proof of one side.
 * @param {string} secret
 * @param {'owner' | 'client'} role
 * @param {string} ownerNonce
 * @param {string} clientNonce
 */
export function proofOf(secret, role, ownerNonce, clientNonce) {
  return createHmac('sha256', Buffer.from(secret, 'hex'))
    .update(`rondo.store.v${VERSION} ${role} ${ownerNonce} ${clientNonce}`)
    .digest('hex');
}

export const nonce = () => randomBytes(16).toString('hex');

/** Reads the owner file of a store, with the path of the socket. @param {string} path */
export function readOwnerFile(path) {
  const content = JSON.parse(readFileSync(`${path}.owner`, 'utf8'));
  return { ...content, socket: content.socket === 'beside' ? `${path}.sock` : content.socket };
}

/** Returns the start of a process in the format of the owner file. @param {number} pid */
export function startOf(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const started = text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${boot} ${readlinkSync(`/proc/${pid}/ns/pid`)} ${started}`;
}

/** Returns the content of a valid owner file. @param {string} path @param {number} pid @param {string} secret */
export function validOwnerFile(path, pid, secret) {
  const { dev, ino, birthtimeMs } = statSync(dirname(path));
  return { pid, start: startOf(pid), socket: 'beside', secret, directory: `${dev}:${ino}:${birthtimeMs}` };
}

/** Writes the owner file of a store. @param {string} path @param {unknown} content */
export function writeOwnerFile(path, content) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.owner`, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o600 });
  chmodSync(`${path}.owner`, 0o600);
}

/** One end of a connection, which transfers one JSON document per line. */
export class Wire {
  /** The text received so far; only its end if it is long. */
  received = '';
  ended = false;
  #lines = [];
  #waiting = [];
  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.socket = socket;
    socket.setEncoding('utf8');
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => this.#receive(chunk));
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.ended = true;
        for (const resolveLine of this.#waiting) resolveLine(undefined);
        resolve(undefined);
      });
    });
    socket.on('end', () => socket.destroy());
  }

  #receive(chunk) {
    this.received += chunk;
    const lines = ((this.partialLine ?? '') + chunk).split('\n');
    this.partialLine = lines.pop();
    for (const line of lines) {
      const resolveLine = this.#waiting.shift();
      if (resolveLine === undefined) this.#lines.push(line);
      else resolveLine(line);
    }
    if (this.received.length > 1_000_000) this.received = this.received.slice(-1000);
  }

  /** Connects to a socket. @param {string} path */
  static async connect(path) {
    const socket = connect({ path });
    await within(once(socket, 'connect'), 5000, 'a connection');
    return new Wire(socket);
  }

  /** Sends a document, or a string or buffer as it is. @param {unknown} message */
  send(message) {
    const isRaw = typeof message === 'string' || Buffer.isBuffer(message);
    this.socket.write(isRaw ? message : `${JSON.stringify(message)}\n`);
  }

  /** Returns the next document, or undefined after the connection has ended. @param {number} [ms] */
  async next(ms = 5000) {
    const line = this.#lines.shift();
    if (line !== undefined) return JSON.parse(line);
    if (this.ended) return undefined;
    const received = await within(
      new Promise((resolve) => this.#waiting.push(resolve)),
      ms,
      'a line or the end of the connection',
    );
    return received === undefined ? undefined : JSON.parse(received);
  }

  /** Returns the response to a request, and discards other messages. @param {number} i the number of the request */
  async answer(i) {
    for (;;) {
      const message = await this.next();
      // The acknowledgement of an append is its number alone.
      if (message === i) return { i, ok: null };
      if (message === undefined || (message.i === i && ('ok' in message || 'error' in message))) return message;
    }
  }
}

/** Connects and completes the handshake. @param {string} path */
export async function connectAuthenticated(path) {
  const { socket, secret } = readOwnerFile(path);
  const wire = await Wire.connect(socket);
  const { nonce: ownerNonce } = await wire.next();
  const clientNonce = nonce();
  wire.send({ nonce: clientNonce, proof: proofOf(secret, 'client', ownerNonce, clientNonce) });
  const { proof } = await wire.next();
  expect(proof === proofOf(secret, 'owner', ownerNonce, clientNonce), 'the proof of the owner', proof);
  return wire;
}

/** Connects, completes the handshake and sends hello. @param {string} path @param {object} [hello] */
export async function connectClient(path, hello = {}) {
  const wire = await connectAuthenticated(path);
  const processId = { pid: process.pid, start: startOf(process.pid) };
  wire.send({ op: 'hello', i: 0, id: nonce(), process: processId, held: [], ...hello });
  const answer = await wire.answer(0);
  expect(answer?.ok !== undefined, 'an answer to hello', answer);
  return wire;
}

/** An owner and a valid client that keep working while many cases attack the socket. */
export class SharedOwner {
  #appendCount = 0;
  #started;

  async get() {
    this.#started ??= this.#start();
    await this.#started;
    return this;
  }

  async #start() {
    this.path = join(root, `shared-${nonce().slice(0, 6)}`, 'j.db');
    [this.owner, this.client] = [new Actor(), new Actor()];
    await Promise.all([this.owner.ready, this.client.ready]);
    this.first = await this.owner.fill(this.path, 'honest-owner', 1);
    this.second = await this.client.fill(this.path, 'honest-client', 1);
    expect(this.first.owner.here && !this.second.owner.here, 'an owner and a client', [
      this.first.owner,
      this.second.owner,
    ]);
    this.ownerFile = readOwnerFile(this.path);
    this.#appendCount = 1;
  }

  /**
   * Asserts that owner and client still work and that no unexpected session exists.
   * @param {readonly string[]} [allowed] names of further sessions that may exist
   */
  async assertUnaffected(allowed = []) {
    const { owner, client } = this;
    try {
      expect(!owner.ended && !client.ended, 'owner and client to be running', {
        owner: owner.crash ?? owner.code,
        client: client.crash ?? client.code,
      });
      const first = this.#appendCount++;
      await owner.must('append', { session: 'honest-owner', fence: this.first.fence, first }, 3000);
      await client.must('append', { session: 'honest-client', fence: this.second.fence, first }, 3000);
      const sessions = (await client.must('list', {}, 3000)).map(({ session }) => session);
      const unexpected = sessions.filter((session) => !session.startsWith('honest-') && !allowed.includes(session));
      expect(unexpected.length === 0, 'no other sessions', unexpected);
    } catch (thrown) {
      this.#started = undefined;
      await Promise.all([owner.kill(), client.kill()]);
      throw thrown;
    }
  }
}

/** Listens in place of an owner. @param {string} path @param {(wire: Wire) => unknown} behave handles a connection */
export async function falseOwner(path, behave) {
  const secret = randomBytes(32).toString('hex');
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeOwnerFile(path, validOwnerFile(path, process.pid, secret));
  const wires = [];
  const server = createServer((socket) => {
    const wire = new Wire(socket);
    wires.push(wire);
    wire.number = wires.length;
    Promise.resolve(behave(wire)).catch(() => undefined);
  });
  server.listen({ path: `${path}.sock` });
  await once(server, 'listening');
  const close = async () => {
    server.close();
    for (const { socket } of wires) socket.destroy();
    await sleep(1);
  };
  return { secret, wires, close };
}

/** Performs the owner's side of the handshake correctly. @param {Wire} wire @param {string} secret */
export async function authenticateAsOwner(wire, secret) {
  const ownerNonce = nonce();
  wire.send({ rondo: VERSION, nonce: ownerNonce });
  const { nonce: clientNonce } = await wire.next(20_000);
  wire.send({ proof: proofOf(secret, 'owner', ownerNonce, clientNonce) });
}
