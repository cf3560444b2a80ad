// Checks of a shared store: one owner, no write after ownership was lost, and no access without the secret.

import { deepStrictEqual, strictEqual } from 'node:assert';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import type { SqliteStore } from '../../src/adapters/sqlite/index.js';
import { codeOf } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';
import type { Library } from './library.js';
import { entry, inFolder, meddled } from './store-checks.js';

const append = (store: SqliteStore, fence: number, first: number): Promise<void> =>
  store.journal.append({ session: 's', fence, firstSeq: first, entries: [entry(first)] });

/** The outcomes of concurrent appends by a process that lost ownership. */
async function deposed(library: Library, path: string, count: number): Promise<void> {
  const hand = meddled(library);
  const store = await library.openSqlite(path, { driver: hand.open });
  const { fence } = await store.journal.claim('s');
  hand.raw?.exec('UPDATE ownership SET epoch = epoch + 1');
  const writes = Array.from({ length: count }, (_, first) => codeOf(append(store, fence, first)));
  for (const code of await Promise.all(writes)) strictEqual(code, 'OWNERSHIP_LOST');
  await store.close();
}

/** Removes the first file of a store, and then appends. */
async function removed(library: Library, path: string, suffix: string): Promise<string | undefined> {
  const store = await library.openSqlite(path);
  const { fence } = await store.journal.claim('s');
  rmSync(path + suffix);
  const code = await codeOf(append(store, fence, 0));
  await store.close().catch(() => {});
  return code;
}

/** An unrelated process, and its start time as the record of an owner has it. */
async function bystander(): Promise<{ readonly pid: number; readonly start: string }> {
  const { pid = 0 } = spawn('sleep', ['60'], { stdio: 'ignore' });
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const status = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const started = status.slice(status.lastIndexOf(')') + 2).split(' ')[19];
  return { pid, start: `${boot} ${readlinkSync('/proc/self/ns/pid')} ${started}` };
}

/** The documents received from a socket. */
function lines(socket: Socket): AsyncIterator<string> {
  socket.on('error', () => {});
  return createInterface({ input: socket })[Symbol.asyncIterator]();
}

/** Connects with an invalid proof and sends a request; returns what the owner sent after its greeting. */
async function intrude(path: string): Promise<unknown> {
  const socket = connect({ path: `${path}.sock` });
  const said = lines(socket);
  await said.next();
  const proof = 'ab'.repeat(32);
  for (const message of [
    { nonce: 'cd'.repeat(16), proof },
    { i: 1, op: 'list' },
  ])
    socket.write(`${JSON.stringify(message)}\n`);
  const { value } = await said.next();
  socket.destroy();
  return value;
}

/** Listens at the address of the owner and sends an invalid proof; returns the most documents that a client sent on one connection. */
async function impersonate(library: Library, path: string): Promise<number> {
  const store = await library.openSqlite(path);
  rmSync(`${path}.sock`);
  let most = 0;
  const sockets: Socket[] = [];
  const server = createServer(async (socket) => {
    sockets.push(socket);
    socket.write(`${JSON.stringify({ rondo: 1, nonce: 'cd'.repeat(16) })}\n`);
    const said = lines(socket);
    for (let heard = 1; !(await said.next()).done; heard++) {
      most = Math.max(most, heard);
      socket.write(`${JSON.stringify({ proof: 'ab'.repeat(32) })}\n`);
    }
  });
  server.listen(`${path}.sock`);
  await once(server, 'listening');
  const client = library.openSqlite(path);
  while (most === 0) await setTimeout(10);
  await setTimeout(200);
  server.close();
  for (const socket of sockets) socket.destroy();
  await store.close();
  await (await client).close();
  return most;
}

export const ownershipChecks = {
  'a process that lost ownership cannot write': (library) => inFolder((path) => deposed(library, path, 1)),
  'a process that lost ownership cannot write a group': (library) => inFolder((path) => deposed(library, path, 2)),
  'a write to a removed file is not acknowledged': (library) =>
    inFolder(async (path) => {
      for (const suffix of ['', '-wal', '-shm'])
        strictEqual(await removed(library, path + suffix.length, suffix), 'STORE_MISSING');
      for (const suffix of ['.owner', '.lock'])
        strictEqual(await removed(library, path + suffix.length, suffix), 'OWNERSHIP_LOST');
    }),
  'a repeated append is accepted after a lost acknowledgement, and only with the same content': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path);
      const { fence } = await store.journal.claim('s');
      await append(store, fence, 0);
      await append(store, fence, 0);
      const other = { ...entry(0), value: 'another value' };
      const stale = store.journal.append({ session: 's', fence, firstSeq: 0, entries: [other] });
      strictEqual(await codeOf(stale), 'STALE_WRITER');
      strictEqual((await store.journal.claim('s')).nextSeq, 1);
      await store.close();
    }),
  'a free lock admits no second owner while the first is alive': (library) =>
    inFolder(async (path) => {
      const first = await library.openSqlite(path);
      const record = JSON.parse(readFileSync(`${path}.owner`, 'utf8')) as object;
      await first.close();
      const { pid, start } = await bystander();
      writeFileSync(`${path}.owner`, JSON.stringify({ ...record, pid, start }), { mode: 0o600 });
      const second = library.openSqlite(path);
      const outcome = await Promise.race([second, setTimeout(300, 'waits')]);
      process.kill(pid, 'SIGKILL');
      await (await second).close();
      strictEqual(outcome, 'waits');
    }),
  'a client without the secret gets no answer': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path);
      strictEqual(await intrude(path), undefined);
      await store.close();
    }),
  'a client rejects an owner without the secret': (library) =>
    inFolder(async (path) => strictEqual(await impersonate(library, path), 1)),
  'a store file is private to its user and is never a link': (library) =>
    inFolder(async (path) => {
      const before = process.umask(0o777);
      const store = await library.openSqlite(path).finally(() => process.umask(before));
      const modes = ['', '.owner', '.lock'].map((suffix) => statSync(path + suffix).mode & 0o777);
      await store.close();
      deepStrictEqual(modes, [0o600, 0o600, 0o600]);
      const elsewhere = join(dirname(path), 'elsewhere');
      writeFileSync(elsewhere, '');
      symlinkSync(elsewhere, `${path}2.lock`);
      strictEqual(await codeOf(library.openSqlite(`${path}2`)), 'STORE_FAILED');
    }),
} as const satisfies Record<string, GuardCheck>;
