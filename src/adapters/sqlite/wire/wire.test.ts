/** The socket against strangers: neither side is fooled, learns the secret, or can be brought down. */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, expect, onTestFinished } from 'vitest';
import { appendEntry, cleanUp, expectFault, freshFile } from '../../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../../spec/verifies.js';
import { Fault, LoopError } from '../../../base/errors.js';
import { openSqlite } from '../index.js';
import { readOwnerFile, writeOwnerFile } from '../owner/owner-file.js';
import { thisProcess } from '../owner/process.js';
import { Channel } from './channel.js';
import { authenticateAsClient, PROTOCOL_VERSION } from './handshake.js';
import { fromWireError, toWireError } from './wire-errors.js';

afterAll(cleanUp);

/** Sends raw lines to an owner; all that it answered, once it has hung up or after a while. */
async function say(path: string, lines: readonly (string | Buffer)[], ms = 500): Promise<string> {
  const socket: Socket = connect({ path });
  let said = '';
  socket.setEncoding('utf8').on('data', (piece: string) => {
    said += piece;
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  for (const line of lines) socket.write(line);
  await Promise.race([once(socket, 'close'), new Promise((resolve) => setTimeout(resolve, ms))]);
  socket.destroy();
  return said;
}

verifies('sqlite.socket', 'a stranger gets a random number and nothing else, whatever it sends', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { socket, secret } = readOwnerFile(file) ?? { socket: '', secret: '' };
  const requests = [
    '{"i":1,"op":"list"}\n',
    '{"nonce":"00000000000000000000000000000000","proof":"0"}\n',
    `{"nonce":"${'0'.repeat(32)}","proof":"${'0'.repeat(64)}"}\n{"i":1,"op":"list"}\n`,
    `{"nonce":"${'0'.repeat(32)}","proof":"${secret}"}\n{"i":1,"op":"list"}\n`,
    'null\n',
    '[]\n',
    'not JSON\n',
    'x'.repeat(5000),
    Buffer.alloc(2000, 0xff),
  ];
  for (const request of requests) {
    const lines = (await say(socket, [request])).split('\n').filter((line) => line !== '');
    expect(lines.map((line) => Object.keys(JSON.parse(line)))).toEqual([['rondo', 'nonce']]);
  }
  const nonces = await Promise.all([1, 2, 3].map(async () => JSON.parse(await say(socket, [], 100)).nonce));
  expect(new Set(nonces).size).toBe(3);
  expect(await store.journal.list()).toEqual([]);
  await store.close();
});

/** Requests that no client of ours would send, after a handshake that was right. */
const ODD: readonly unknown[] = [
  null,
  [],
  'text',
  {},
  { op: 'constructor', i: 1 },
  { op: { toString: 1 }, i: 1 },
  { op: 'claim', session: ['a'], i: 1 },
  { op: 'claim', session: true, i: 1 },
  { op: 'remove', session: { x: 1 }, i: 1 },
  { op: 'save', session: 'evil', i: 1 },
  { op: 'append', session: 'a', fence: 1, firstSeq: 0, count: 1, body: 5, i: 1 },
  { op: 'read', session: 'a', from: -1, i: 1 },
  { op: 'read', session: 'a', from: 0.5, i: [[1]] },
  { op: 'hello', id: 'x', process: null, held: [], i: 1 },
  { a: 1, error: null },
  { a: 1, ok: JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) },
];

/** A client of our own making, after the handshake and its hello. */
async function insider(file: string): Promise<{ readonly channel: Channel; readonly closed: Promise<void> }> {
  const { socket, secret } = readOwnerFile(file) ?? { socket: '', secret: '' };
  const peer = connect({ path: socket });
  await once(peer, 'connect');
  const channel = new Channel(peer);
  await authenticateAsClient(channel, secret);
  const closed = new Promise<void>((resolve) => {
    channel.onClose = resolve;
  });
  const greeted = new Promise((resolve) => {
    channel.onMessage = resolve;
  });
  channel.send({ op: 'hello', id: 'insider', process: thisProcess(), held: [], i: 0 });
  await greeted;
  return { channel, closed };
}

verifies('sqlite.socket', 'a client that sends what is no request is cut off, and nobody else notices', async () => {
  const file = freshFile();
  const [owner, client] = [await openSqlite(file), await openSqlite(file)];
  const { fence } = await client.journal.claim('a');
  for (const [n, odd] of ODD.entries()) {
    const { channel, closed } = await insider(file);
    const beside = [appendEntry(client, 'a', fence, n), owner.journal.claim(`b${n}`)];
    (channel as unknown as { socket: Socket }).socket.write(`${textOf(odd)}\n`);
    await closed;
    await Promise.all(beside);
  }
  const { channel, closed } = await insider(file);
  channel.send({ op: 'hello', id: 'again', process: thisProcess(), held: [], i: 1 });
  await closed;
  expect((await owner.journal.list()).length).toBe(ODD.length + 1);
  await client.close();
  await owner.close();
});

verifies('sqlite.socket', 'an append whose body is not what it says is refused', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  const { channel } = await insider(file);
  const bodies = [
    'not JSON',
    '{}',
    '[]',
    '[{"seq":1,"key":"k"}]',
    '[{"seq":0}]',
    '[1]',
    '[{"seq":0,"key":"k"},{"seq":1,"key":"k"}]',
  ];
  for (const [i, body] of bodies.entries()) {
    const answered = new Promise((resolve) => {
      channel.onMessage = resolve;
    });
    channel.send({ op: 'append', session: 'a', fence, firstSeq: 0, count: 1, body, i });
    expect(await answered).toMatchObject({ i, error: { family: 'type' } });
  }
  expect(await store.journal.list()).toEqual([{ session: 'a', next: 0 }]);
  channel.destroy();
  await store.close();
});

/** JSON of anything, however deep. */
function textOf(value: unknown): string {
  const deep = (value as { ok?: unknown } | null)?.ok;
  if (!Array.isArray(deep)) return JSON.stringify(value);
  return `{"a":1,"ok":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
}

verifies('sqlite.socket', 'strangers that say nothing do not keep a client out', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { socket } = readOwnerFile(file) ?? { socket: '' };
  const strangers = Array.from({ length: 100 }, () => connect({ path: socket }).on('error', () => undefined));
  onTestFinished(() => {
    for (const stranger of strangers) stranger.destroy();
  });
  const client = await openSqlite(file);
  expect(client.owner).toEqual({ pid: process.pid, here: false });
  await client.close();
  await store.close();
});

verifies(
  'sqlite.socket',
  'whatever listens at the address without the secret learns nothing, and is not believed',
  async () => {
    const file = freshFile();
    const secret = 'b'.repeat(64);
    const heard: string[] = [];
    const server = createServer((peer) => {
      peer.setEncoding('utf8').on('data', (piece: string) => heard.push(piece));
      peer.on('error', () => undefined);
      peer.write(`{"rondo":${PROTOCOL_VERSION},"nonce":"${'1'.repeat(32)}"}\n`);
      setTimeout(() => peer.write(`{"proof":"${'2'.repeat(64)}"}\n{"i":1,"ok":{"report":{"damage":[]}}}\n`), 20);
    });
    server.listen({ path: `${file}.sock` });
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    writeOwnerFile(file, { ...thisProcess(), socket: `${file}.sock`, secret });
    const fault = await expectFault(openSqlite(file));
    expect(fault).toMatchObject({ code: 'STORE_OWNED', data: { pid: process.pid } });
    expect(heard.length).toBeGreaterThan(0);
    for (const line of heard.join('').trim().split('\n')) {
      expect(Object.keys(JSON.parse(line))).toEqual(['nonce', 'proof']);
      expect(line).not.toContain(secret);
    }
    rmSync(`${file}.owner`);
  },
);

verifies('sqlite.socket', 'an owner of another version is refused with what to do', async () => {
  const file = freshFile();
  const server = createServer((peer) => void peer.end('{"rondo":999,"nonce":"x"}\n'));
  server.listen({ path: `${file}.sock` });
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  writeOwnerFile(file, { ...thisProcess(), socket: `${file}.sock`, secret: 'c'.repeat(64) });
  const fault = await expectFault(openSqlite(file));
  expect(fault.code).toBe('STORE_OWNED');
  expect(fault.message).toContain('it runs another version of Rondo. It speaks version 999');
  rmSync(`${file}.owner`);
});

verifies('sqlite.socket', 'an error crosses the socket as the class that it was', async () => {
  const errors = [
    new LoopError('OWN_CODE', 'an outcome', { a: 1 }),
    new LoopError('CANCELLED', 'without data'),
    new Fault('STORE_FULL', 'a fault', { path: '/x' }),
    new TypeError('a wrong type'),
  ];
  for (const error of errors) {
    const back = fromWireError(JSON.parse(JSON.stringify(toWireError(error))));
    expect(back).toEqual(error);
    expect(back.constructor).toBe(error.constructor);
  }
  expect(fromWireError({ family: 'fault', code: 'constructor', message: 'm' })).not.toBeInstanceOf(Fault);
  expect(toWireError('text')).toEqual({ family: 'other', message: 'text' });
  const file = freshFile();
  const [owner, client] = [await openSqlite(file), await openSqlite(file)];
  expect(await expectFault(appendEntry(client, 'nobody', 1, 0))).toMatchObject({
    code: 'STALE_WRITER',
    data: { session: 'nobody' },
  });
  expect((await expectFault(client.journal.claim(''))).message).toContain('cannot name a session');
  await client.close();
  await owner.close();
});
