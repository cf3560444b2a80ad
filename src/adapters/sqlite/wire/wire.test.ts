/** The socket against strangers: neither side is fooled, learns the secret, or can be brought down. */
import { once } from 'node:events';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, expect, onTestFinished } from 'vitest';
import { verifies } from '../../../../spec/verifies.js';
import { Fault, LoopError } from '../../../journal/errors.js';
import { add, cleanUp, faultOf, freshFile } from '../fixtures/stage.mjs';
import { openSqlite } from '../index.js';
import { thisProcess } from '../owner/process.js';
import { readOwner } from '../owner/record.js';
import { fromWire, toWire } from './errors.js';
import { PROTOCOL } from './handshake.js';

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
  const { socket, secret } = readOwner(file) ?? { socket: '', secret: '' };
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

verifies('sqlite.socket', 'strangers that say nothing do not keep a client out', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { socket } = readOwner(file) ?? { socket: '' };
  const strangers = Array.from({ length: 50 }, () => connect({ path: socket }).on('error', () => undefined));
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
      peer.write(`{"rondo":${PROTOCOL},"nonce":"${'1'.repeat(32)}"}\n`);
      setTimeout(() => peer.write(`{"proof":"${'2'.repeat(64)}"}\n{"i":1,"ok":{"report":{"damage":[]}}}\n`), 20);
    });
    server.listen({ path: `${file}.sock` });
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    writeFileSync(`${file}.owner`, JSON.stringify({ ...thisProcess(), socket: `${file}.sock`, secret }));
    chmodSync(`${file}.owner`, 0o600);
    const fault = await faultOf(openSqlite(file));
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
  const record = { ...thisProcess(), socket: `${file}.sock`, secret: 'c'.repeat(64) };
  writeFileSync(`${file}.owner`, JSON.stringify(record), { mode: 0o600 });
  const fault = await faultOf(openSqlite(file));
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
    const back = fromWire(JSON.parse(JSON.stringify(toWire(error))));
    expect(back).toEqual(error);
    expect(back.constructor).toBe(error.constructor);
  }
  expect(fromWire({ family: 'fault', code: 'constructor', message: 'm' })).not.toBeInstanceOf(Fault);
  expect(toWire('text')).toEqual({ family: 'other', message: 'text' });
  const file = freshFile();
  const [owner, client] = [await openSqlite(file), await openSqlite(file)];
  expect(await faultOf(add(client, 'nobody', 1, 0))).toMatchObject({
    code: 'STALE_WRITER',
    data: { session: 'nobody' },
  });
  expect((await faultOf(client.journal.claim(''))).message).toContain('cannot name a session');
  await client.close();
  await owner.close();
});
