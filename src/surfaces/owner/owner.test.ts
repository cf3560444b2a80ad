import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { Fault, LoopError } from '../../journal/errors.js';
import { defineLoop } from '../../loops/define.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { compose, noDefinitions, settingsOf } from '../compose.js';
import { UsageError } from '../settings.js';
import { type Desk, hostDesk } from './desk.js';
import { listen } from './listener.js';
import { readNote, removeNote, writeNote } from './note.js';
import { remoteDesk, Unreached } from './remote.js';
import { fromWire, toWire } from './wire.js';

/** A host in memory with a loop of code, and a desk that reaches it over the wire. */
async function stage(): Promise<{ near: Desk; far: Desk; close: () => Promise<void> }> {
  const definitions = await noDefinitions();
  const settings = await settingsOf({ flags: { store: 'memory:' }, env: {}, cwd: tmpdir() });
  const { host } = await compose(settings, { definitions });
  const double = defineLoop({
    id: 'double',
    input: { type: 'number' },
    output: { type: 'number' },
    body: async (input) => Number(input) * 2,
  });
  host.registry.add(double);
  const near = hostDesk(host);
  const listener = await listen(near);
  return { near, far: remoteDesk(listener.url, listener.token), close: () => listener.close() };
}

verifies('cli.owner', 'a turn that is asked for from afar is another than the same one here', async () => {
  const { near, far, close } = await stage();
  const heard: TraceEvent[] = [];
  const result = await far.run(
    { loop: 'double', input: 21, sessionId: 's' },
    { onEvent: (event) => heard.push(event) },
  );
  expect(result).toMatchObject({ status: 'ok', output: 42, sessionId: 's' });
  expect(result.trace).toEqual(heard);
  expect(await near.trace(result.turnId)).toEqual(heard);
  const { turnId } = result;
  expect(await far.trace(turnId)).toEqual(heard);
  expect(await far.turns()).toEqual(await near.turns());
  expect(await far.turns('none')).toEqual([]);
  expect(await far.status(turnId)).toEqual(await near.status(turnId));
  expect(await far.result(turnId)).toEqual(JSON.parse(JSON.stringify(await near.result(turnId))));
  expect(await far.replay(turnId, 'now')).toEqual({ matches: true, calls: 1 });
  expect(await far.cancel(turnId, 'late')).toBe(false);
  expect(await far.inFlight()).toEqual([]);
  expect(await far.resume(turnId)).toMatchObject({ status: 'ok', output: 42 });
  await close();
});

verifies('cli.owner', 'an error loses its class on the way', async () => {
  const { far, close } = await stage();
  await expect(far.status('none')).rejects.toThrow(LoopError);
  await expect(far.decide('none/1', 'retry', 'ada')).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
  await expect(far.run({ loop: 'double', sessionId: 'a/b' })).rejects.toThrow(UsageError);
  expect(await far.run({ loop: 'double', input: 'x' })).toMatchObject({ error: { code: 'INPUT_VALIDATION_FAILED' } });
  await close();
  const errors = [
    new LoopError('OWN_CODE', 'an outcome', { a: 1 }),
    new LoopError('CANCELLED', 'without data'),
    new Fault('STORE_FULL', 'a fault', { path: '/x' }),
    new UsageError('usage'),
  ];
  for (const error of errors) {
    const back = fromWire(JSON.parse(JSON.stringify(toWire(error))));
    expect(back).toEqual(error);
    expect(back.constructor).toBe(error.constructor);
  }
  expect(fromWire({ family: 'fault', code: 'constructor', message: 'm' })).not.toBeInstanceOf(Fault);
  expect(toWire('text')).toMatchObject({ family: 'internal' });
});

verifies('cli.owner', 'an owner that is gone cannot be told from one that failed', async () => {
  const { far, close } = await stage();
  await close();
  await expect(far.turns()).rejects.toThrow(Unreached);
});

/** A desk whose owner hangs up: as soon as it is called, or once it has said that it listens. */
async function hangingUp(word: string): Promise<Desk> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      if (word === '') return void socket.resetAndDestroy();
      socket.write(word);
      socket.once('data', () => socket.resetAndDestroy());
    });
  });
  return reached(server);
}

/** A desk that asks whoever listens there. */
async function reached(server: Server): Promise<Desk> {
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return remoteDesk(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 'word');
}

verifies('cli.owner', 'a verb fails because the owner was just closing when it was called', async () => {
  for (let round = 0; round < 20; round++)
    await expect((await hangingUp('')).cancel('t', 'enough')).rejects.toThrow(Unreached);
  const heard = await hangingUp('HTTP/1.1 100 Continue\r\n\r\n');
  await expect(heard.cancel('t', 'enough')).rejects.toMatchObject({ code: 'STORE_FAILED' });
});

verifies(
  'cli.owner',
  'somebody who has the port of an owner that died, and is slow to speak, holds every verb',
  async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      // Says nothing before it has heard everything.
      socket.on('data', (data) => {
        if (data.toString().includes('"verb"')) socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
      });
    });
    const far = await reached(server);
    await expect(far.turns()).rejects.toThrow(Unreached);
  },
);

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'rondo-note-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

verifies('cli.owner', 'a note is read by others, half written, or believed when it is stale', () => {
  const data = join(directory(), 'data');
  const store = join(data, 'journal.db');
  const note = { url: 'http://127.0.0.1:4000', token: 'word', pid: process.pid, store };
  expect(readNote(data, store)).toBeUndefined();
  writeNote(data, note);
  expect(statSync(join(data, 'owner.json')).mode & 0o777).toBe(0o600);
  expect(readdirSync(data)).toEqual(['owner.json']);
  expect(readNote(data, store)).toEqual(note);
  expect(readNote(data, join(data, 'other.db'))).toBeUndefined();
  removeNote(data, 'another');
  expect(readNote(data, store)).toEqual(note);
  for (const wrong of [
    { pid: 2 ** 30 },
    { pid: -1 },
    { url: 'http://evil.example:80' },
    { url: 'http://127.0.0.1:1/x' },
  ]) {
    writeNote(data, { ...note, ...wrong });
    expect(readNote(data, store)).toBeUndefined();
  }
  writeNote(data, note);
  removeNote(data, 'word');
  expect(readdirSync(data)).toEqual([]);
});
