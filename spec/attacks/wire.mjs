// The protocol of the socket, written a second time from its description, so that it can be broken at any point.

import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { Actor, expect, root, sleep, within } from '../support/store-attack.mjs';

/** @param {string} secret @param {'owner' | 'client'} role @param {string} owner @param {string} client */
export function proofOf(secret, role, owner, client) {
  return createHmac('sha256', Buffer.from(secret, 'hex'))
    .update(`rondo.store.v1 ${role} ${owner} ${client}`)
    .digest('hex');
}

export const nonce = () => randomBytes(16).toString('hex');

/** @param {string} path */
export function recordOf(path) {
  const record = JSON.parse(readFileSync(`${path}.owner`, 'utf8'));
  return { ...record, socket: record.socket === 'beside' ? `${path}.sock` : record.socket };
}

/** When a process started, in the terms of the record. @param {number} pid */
export function startOf(pid) {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const started = text.slice(text.lastIndexOf(')') + 2).split(' ')[19];
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  return `${boot} ${readlinkSync(`/proc/${pid}/ns/pid`)} ${started}`;
}

/** A record that is right in every respect. @param {string} path @param {number} pid @param {string} secret */
export function recordFor(path, pid, secret) {
  const { dev, ino, birthtimeMs } = statSync(dirname(path));
  return { pid, start: startOf(pid), socket: 'beside', secret, directory: `${dev}:${ino}:${birthtimeMs}` };
}

/** @param {string} path @param {unknown} record */
export function plantRecord(path, record) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.owner`, typeof record === 'string' ? record : JSON.stringify(record), { mode: 0o600 });
  chmodSync(`${path}.owner`, 0o600);
}

/** One end of a connection, in lines. */
export class Wire {
  said = '';
  ended = false;
  #lines = [];
  #waiting = [];
  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.socket = socket;
    socket.setEncoding('utf8');
    socket.on('error', () => undefined);
    socket.on('data', (piece) => this.#take(piece));
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.ended = true;
        for (const one of this.#waiting) one(undefined);
        resolve(undefined);
      });
    });
    socket.on('end', () => socket.destroy());
  }

  #take(piece) {
    this.said += piece;
    const parts = ((this.rest ?? '') + piece).split('\n');
    this.rest = parts.pop();
    for (const line of parts) {
      const one = this.#waiting.shift();
      if (one === undefined) this.#lines.push(line);
      else one(line);
    }
    if (this.said.length > 1_000_000) this.said = this.said.slice(-1000);
  }

  /** @param {string} path */
  static async to(path) {
    const socket = connect({ path });
    await within(once(socket, 'connect'), 5000, 'a connection');
    return new Wire(socket);
  }

  /** @param {unknown} message */
  send(message) {
    const isRaw = typeof message === 'string' || Buffer.isBuffer(message);
    this.socket.write(isRaw ? message : `${JSON.stringify(message)}\n`);
  }

  /** The next document; undefined once the other side has hung up. @param {number} [ms] */
  async next(ms = 5000) {
    const line = this.#lines.shift();
    if (line !== undefined) return JSON.parse(line);
    if (this.ended) return undefined;
    const got = await within(
      new Promise((resolve) => this.#waiting.push(resolve)),
      ms,
      'a line or the end of the connection',
    );
    return got === undefined ? undefined : JSON.parse(got);
  }

  /** The answer under a number; what else comes is left out. @param {number} i */
  async answer(i) {
    for (;;) {
      const message = await this.next();
      // A number alone acknowledges an append.
      if (message === i) return { i, ok: null };
      if (message === undefined || (message.i === i && ('ok' in message || 'error' in message))) return message;
    }
  }
}

/** Connects and proves itself. @param {string} path */
export async function insider(path) {
  const { socket, secret } = recordOf(path);
  const wire = await Wire.to(socket);
  const { nonce: theirs } = await wire.next();
  const own = nonce();
  wire.send({ nonce: own, proof: proofOf(secret, 'client', theirs, own) });
  const { proof } = await wire.next();
  expect(proof === proofOf(secret, 'owner', theirs, own), 'the proof of the owner', proof);
  return wire;
}

/** Connects, proves itself and says hello. @param {string} path @param {object} [hello] */
export async function greeted(path, hello = {}) {
  const wire = await insider(path);
  const process_ = { pid: process.pid, start: startOf(process.pid) };
  wire.send({ op: 'hello', i: 0, id: nonce(), process: process_, held: [], ...hello });
  const answer = await wire.answer(0);
  expect(answer?.ok !== undefined, 'an answer to hello', answer);
  return wire;
}

/** An owner and an honest client that go on while many cases attack the socket. */
export class SharedOwner {
  #count = 0;
  #starting;

  async get() {
    this.#starting ??= this.#start();
    await this.#starting;
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
    this.record = recordOf(this.path);
    this.#count = 1;
  }

  /** Both go on as if nothing had happened, and no session was made that they did not make. @param {readonly string[]} [allowed] */
  async assertWell(allowed = []) {
    const { owner, client } = this;
    try {
      expect(!owner.ended && !client.ended, 'owner and client to live', {
        owner: owner.crash ?? owner.code,
        client: client.crash ?? client.code,
      });
      const first = this.#count++;
      await owner.must('append', { session: 'honest-owner', fence: this.first.fence, first }, 3000);
      await client.must('append', { session: 'honest-client', fence: this.second.fence, first }, 3000);
      const sessions = (await client.must('list', {}, 3000)).map(({ session }) => session);
      const odd = sessions.filter((session) => !session.startsWith('honest-') && !allowed.includes(session));
      expect(odd.length === 0, 'no other sessions', odd);
    } catch (thrown) {
      this.#starting = undefined;
      await Promise.all([owner.kill(), client.kill()]);
      throw thrown;
    }
  }
}

/** Something that listens in place of an owner. @param {string} path @param {(wire: Wire) => unknown} behave */
export async function falseOwner(path, behave) {
  const secret = randomBytes(32).toString('hex');
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  plantRecord(path, recordFor(path, process.pid, secret));
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

/** The owner's part of the handshake, done right. @param {Wire} wire @param {string} secret */
export async function proveAsOwner(wire, secret) {
  const own = nonce();
  wire.send({ rondo: 1, nonce: own });
  const { nonce: theirs } = await wire.next(20_000);
  wire.send({ proof: proofOf(secret, 'owner', own, theirs) });
}
