/**
 * The socket under attack: an impostor on either side is not trusted, does not learn the secret, and cannot take down
 * the other side.
 */
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
import { LeaseTable } from './lease-table.js';
import { fromWireError, toWireError } from './wire-errors.js';

afterAll(cleanUp);

/** Sends raw lines to an owner and returns its output, once it has closed the connection or after this time. */
async function sendRaw(path: string, lines: readonly (string | Buffer)[], ms = 500): Promise<string> {
  const socket: Socket = connect({ path });
  let output = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  for (const line of lines) socket.write(line);
  await Promise.race([once(socket, 'close'), new Promise((resolve) => setTimeout(resolve, ms))]);
  socket.destroy();
  return output;
}

verifies(
  'sqlite.socket',
  'an unauthenticated client receives a nonce and nothing else, whatever it sends',
  async () => {
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
      const lines = (await sendRaw(socket, [request])).split('\n').filter((line) => line !== '');
      expect(lines.map((line) => Object.keys(JSON.parse(line)))).toEqual([['rondo', 'nonce']]);
    }
    const nonces = await Promise.all([1, 2, 3].map(async () => JSON.parse(await sendRaw(socket, [], 100)).nonce));
    expect(new Set(nonces).size).toBe(3);
    expect(await store.journal.list()).toEqual([]);
    await store.close();
  },
);

/** Messages that no client sends after a successful handshake. */
const INVALID_MESSAGES: readonly unknown[] = [
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
  { op: 'append', session: 'a', fence: 1, firstSeq: 0, count: 0, body: '[]', due: [{ turn: 't', dueAt: -1 }], i: 1 },
  { op: 'append', session: 'a', fence: 1, firstSeq: 0, count: 0, body: '[]', due: { turn: 't' }, i: 1 },
  { op: 'due', until: 1, limit: -1, i: 1 },
  { op: 'due', until: 1, limit: 1, after: { session: 'a', turn: 't' }, i: 1 },
  { op: 'rebuild-due', turns: [{ session: 'a', turn: 1, dueAt: 0 }], i: 1 },
  { op: 'read', session: 'a', from: -1, i: 1 },
  { op: 'read', session: 'a', from: 0.5, i: [[1]] },
  { op: 'hello', id: 'x', process: null, held: [], i: 1 },
  { a: 1, error: null },
  { a: 1, ok: JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) },
];

/** Connects as an authenticated client after its hello, with access to the raw channel. */
async function connectAuthenticated(
  file: string,
): Promise<{ readonly channel: Channel; readonly closed: Promise<void> }> {
  const { socket, secret } = readOwnerFile(file) ?? { socket: '', secret: '' };
  const connection = connect({ path: socket });
  await once(connection, 'connect');
  const channel = new Channel(connection);
  await authenticateAsClient(channel, secret);
  const closed = new Promise<void>((resolve) => {
    channel.onClose = resolve;
  });
  const greeted = new Promise((resolve) => {
    channel.onMessage = resolve;
  });
  channel.send({ op: 'hello', id: 'test client', process: thisProcess(), held: [], i: 0 });
  await greeted;
  return { channel, closed };
}

verifies(
  'sqlite.socket',
  'a client that sends an invalid message is disconnected, and other clients are unaffected',
  async () => {
    const file = freshFile();
    const [owner, client] = [await openSqlite(file), await openSqlite(file)];
    const { fence } = await client.journal.claim('a');
    for (const [n, message] of INVALID_MESSAGES.entries()) {
      const { channel, closed } = await connectAuthenticated(file);
      const others = [appendEntry(client, 'a', fence, n), owner.journal.claim(`b${n}`)];
      (channel as unknown as { socket: Socket }).socket.write(`${toJson(message)}\n`);
      await closed;
      await Promise.all(others);
    }
    const { channel, closed } = await connectAuthenticated(file);
    channel.send({ op: 'hello', id: 'again', process: thisProcess(), held: [], i: 1 });
    await closed;
    expect((await owner.journal.list()).length).toBe(INVALID_MESSAGES.length + 1);
    await client.close();
    await owner.close();
  },
);

verifies('sqlite.socket', 'an append whose body does not have the declared entries is refused', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  const { channel } = await connectAuthenticated(file);
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
  expect(await store.journal.list()).toEqual([{ session: 'a', nextSeq: 0 }]);
  channel.destroy();
  await store.close();
});

/** Serializes a message, also the one that is too deep for JSON.stringify. */
function toJson(value: unknown): string {
  const deep = (value as { ok?: unknown } | null)?.ok;
  if (!Array.isArray(deep)) return JSON.stringify(value);
  return `{"a":1,"ok":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
}

verifies('sqlite.socket', 'a hundred silent connections do not keep a client out', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { socket } = readOwnerFile(file) ?? { socket: '' };
  const silent = Array.from({ length: 100 }, () => connect({ path: socket }).on('error', () => undefined));
  onTestFinished(() => {
    for (const connection of silent) connection.destroy();
  });
  const client = await openSqlite(file);
  expect(client.owner).toEqual({ pid: process.pid, here: false });
  await client.close();
  await store.close();
});

verifies('sqlite.socket', 'a listener without the secret is not trusted and does not learn the secret', async () => {
  const file = freshFile();
  const secret = 'b'.repeat(64);
  const received: string[] = [];
  const server = createServer((connection) => {
    connection.setEncoding('utf8').on('data', (chunk: string) => received.push(chunk));
    connection.on('error', () => undefined);
    connection.write(`{"rondo":${PROTOCOL_VERSION},"nonce":"${'1'.repeat(32)}"}\n`);
    setTimeout(() => connection.write(`{"proof":"${'2'.repeat(64)}"}\n{"i":1,"ok":{"report":{"damage":[]}}}\n`), 20);
  });
  server.listen({ path: `${file}.sock` });
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  writeOwnerFile(file, { ...thisProcess(), socket: `${file}.sock`, secret });
  const fault = await expectFault(openSqlite(file));
  expect(fault).toMatchObject({ code: 'STORE_OWNED', data: { pid: process.pid } });
  expect(received.length).toBeGreaterThan(0);
  for (const line of received.join('').trim().split('\n')) {
    expect(Object.keys(JSON.parse(line))).toEqual(['nonce', 'proof']);
    expect(line).not.toContain(secret);
  }
  rmSync(`${file}.owner`);
});

verifies(
  'sqlite.socket',
  'an owner with another protocol version is refused, and both versions are reported',
  async () => {
    const file = freshFile();
    const server = createServer((connection) => void connection.end('{"rondo":999,"nonce":"x"}\n'));
    server.listen({ path: `${file}.sock` });
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    writeOwnerFile(file, { ...thisProcess(), socket: `${file}.sock`, secret: 'c'.repeat(64) });
    const fault = await expectFault(openSqlite(file));
    expect(fault.code).toBe('STORE_OWNED');
    expect(fault.message).toContain(
      `it runs another version of Rondo. Its protocol version is 999, not ${PROTOCOL_VERSION}`,
    );
    rmSync(`${file}.owner`);
  },
);

verifies('sqlite.socket', 'an error keeps its class, code and data across the socket', async () => {
  const errors = [
    new LoopError('OWN_CODE', 'an outcome', { a: 1 }),
    new LoopError('CANCELLED', 'without data'),
    new Fault('STORE_FULL', 'a fault', { path: '/x' }),
    new TypeError('a wrong type'),
  ];
  for (const error of errors) {
    const received = fromWireError(JSON.parse(JSON.stringify(toWireError(error))));
    expect(received).toEqual(error);
    expect(received.constructor).toBe(error.constructor);
  }
  expect(fromWireError({ family: 'fault', code: 'constructor', message: 'm' })).not.toBeInstanceOf(Fault);
  expect(toWireError('text')).toEqual({ family: 'other', message: 'text' });
  const file = freshFile();
  const [owner, client] = [await openSqlite(file), await openSqlite(file)];
  expect(await expectFault(appendEntry(client, 'absent', 1, 0))).toMatchObject({
    code: 'STALE_WRITER',
    data: { session: 'absent' },
  });
  expect((await expectFault(client.journal.claim(''))).message).toContain('is not a valid session name');
  await client.close();
  await owner.close();
});

verifies('store.leases', 'a client can acquire leases although the disk was full at its first try', async () => {
  let failures = 1;
  const add = async (): Promise<void> => {
    if (failures-- > 0) throw new Fault('STORE_FULL', 'The disk is full.');
  };
  const table = new LeaseTable({ add, remove: async () => undefined }, new Map());
  const client = table.connectClient('c', thisProcess(), {} as Channel, []);
  await expect(table.acquire('s', 's.t1', client)).rejects.toMatchObject({ code: 'STORE_FULL' });
  expect(await table.acquire('s', 's.t1', client)).toBe(true);
});
