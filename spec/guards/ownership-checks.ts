// Checks of a shared store: one owner, no write after ownership was lost, and no access without the secret.

import { deepStrictEqual, strictEqual } from 'node:assert';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import type { SqliteStore } from '../../src/adapters/sqlite/index.js';
import { PROTOCOL_VERSION } from '../../src/adapters/sqlite/wire/handshake.js';
import { codeOf } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';
import type { Library } from './library.js';
import { entry, failingDriver, inFolder } from './store-checks.js';

const append = (store: SqliteStore, fence: number, first: number): Promise<void> =>
  store.journal.append({ session: 's', fence, firstSeq: first, entries: [entry(first)] });

/** Checks that concurrent appends of a process that lost ownership are refused. */
async function checkLostOwnership(library: Library, path: string, count: number): Promise<void> {
  const control = failingDriver(library);
  const store = await library.openSqlite(path, { driver: control.open });
  const { fence } = await store.journal.claim('s');
  control.raw?.exec('UPDATE ownership SET epoch = epoch + 1');
  const writes = Array.from({ length: count }, (_, first) => codeOf(append(store, fence, first)));
  for (const code of await Promise.all(writes)) strictEqual(code, 'OWNERSHIP_LOST');
  await store.close();
}

/** Removes the file of a store with this suffix, then appends. Returns the error code. */
async function appendAfterRemoval(library: Library, path: string, suffix: string): Promise<string | undefined> {
  const store = await library.openSqlite(path);
  const { fence } = await store.journal.claim('s');
  rmSync(path + suffix);
  const code = await codeOf(append(store, fence, 0));
  await store.close().catch(() => {});
  return code;
}

/** Starts an unrelated process. Returns its pid and its start in the format of the owner file. */
async function startUnrelatedProcess(): Promise<{ readonly pid: number; readonly start: string }> {
  const { pid = 0 } = spawn('sleep', ['60'], { stdio: 'ignore' });
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const status = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const started = status.slice(status.lastIndexOf(')') + 2).split(' ')[19];
  return { pid, start: `${boot} ${readlinkSync('/proc/self/ns/pid')} ${started}` };
}

/** Iterates over the lines received from a socket. */
function linesOf(socket: Socket): AsyncIterator<string> {
  socket.on('error', () => {});
  return createInterface({ input: socket })[Symbol.asyncIterator]();
}

/** Connects with an invalid proof and sends a request. Returns the message of the owner after its greeting. */
async function requestWithoutSecret(path: string): Promise<unknown> {
  const socket = connect({ path: `${path}.sock` });
  const received = linesOf(socket);
  await received.next();
  const proof = 'ab'.repeat(32);
  for (const message of [
    { nonce: 'cd'.repeat(16), proof },
    { i: 1, op: 'list' },
  ])
    socket.write(`${JSON.stringify(message)}\n`);
  const { value } = await received.next();
  socket.destroy();
  return value;
}

/**
 * Listens at the address of the owner and sends an invalid proof. Returns the maximum number of messages that a client
 * sent on one connection.
 */
async function impersonateOwner(library: Library, path: string): Promise<number> {
  const store = await library.openSqlite(path);
  rmSync(`${path}.sock`);
  let maxMessages = 0;
  const sockets: Socket[] = [];
  const server = createServer(async (socket) => {
    sockets.push(socket);
    socket.write(`${JSON.stringify({ rondo: PROTOCOL_VERSION, nonce: 'cd'.repeat(16) })}\n`);
    const received = linesOf(socket);
    for (let messages = 1; !(await received.next()).done; messages++) {
      maxMessages = Math.max(maxMessages, messages);
      socket.write(`${JSON.stringify({ proof: 'ab'.repeat(32) })}\n`);
    }
  });
  server.listen(`${path}.sock`);
  await once(server, 'listening');
  const client = library.openSqlite(path);
  while (maxMessages === 0) await setTimeout(10);
  await setTimeout(200);
  server.close();
  for (const socket of sockets) socket.destroy();
  await store.close();
  await (await client).close();
  return maxMessages;
}

export const ownershipChecks = {
  'a process that lost ownership cannot write': (library) => inFolder((path) => checkLostOwnership(library, path, 1)),
  'a process that lost ownership cannot write a group': (library) =>
    inFolder((path) => checkLostOwnership(library, path, 2)),
  'a write to a removed file is not acknowledged': (library) =>
    inFolder(async (path) => {
      for (const suffix of ['', '-wal', '-shm'])
        strictEqual(await appendAfterRemoval(library, path + suffix.length, suffix), 'STORE_MISSING');
      for (const suffix of ['.owner', '.lock'])
        strictEqual(await appendAfterRemoval(library, path + suffix.length, suffix), 'OWNERSHIP_LOST');
    }),
  'a process that waits for due turns notices that its store was removed': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path);
      for (const suffix of ['', '-wal', '-shm', '.anchor']) rmSync(`${path}${suffix}`);
      strictEqual(await codeOf(store.dueTurns.nextDueAt(0)), 'STORE_MISSING');
      await store.close();
    }),
  'a client does not write to a store in the place of its own': (library) =>
    inFolder(async (path) => {
      const place = join(dirname(path), 'data', 'store.db');
      const [owner, client] = [await library.openSqlite(place), await library.openSqlite(place)];
      const { fence } = await client.journal.claim('s');
      renameSync(dirname(place), join(dirname(path), 'away'));
      const next = await library.openSqlite(place);
      // The owner notices, and its client looks for the next one.
      strictEqual(await codeOf(append(owner, fence, 0)), 'STORE_MISSING');
      strictEqual(await codeOf(client.journal.claim('s')), 'STORE_MISSING');
      for (const store of [client, owner, next]) await store.close();
    }),
  'a write to a shortened file is not acknowledged': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path);
      const { fence } = await store.journal.claim('s');
      await append(store, fence, 0);
      truncateSync(`${path}-wal`, 0);
      strictEqual(await codeOf(append(store, fence, 1)), 'STORE_MISSING');
      await store.close();
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
      const { pid, start } = await startUnrelatedProcess();
      writeFileSync(`${path}.owner`, JSON.stringify({ ...record, pid, start }), { mode: 0o600 });
      const second = library.openSqlite(path);
      const outcome = await Promise.race([second, setTimeout(300, 'waits')]);
      process.kill(pid, 'SIGKILL');
      await (await second).close();
      strictEqual(outcome, 'waits');
    }),
  'the check of an owner that was killed long ago is repeated': (library) =>
    inFolder(async (path) => {
      const first = await library.openSqlite(path);
      const record = JSON.parse(readFileSync(`${path}.owner`, 'utf8')) as object;
      await first.close();
      const { pid } = spawnSync('true');
      const killed = { ...record, pid, checkedAt: Date.now() - 3_600_000 };
      writeFileSync(`${path}.owner`, JSON.stringify(killed), { mode: 0o600 });
      const next = await library.openSqlite(path);
      await next.close();
      strictEqual(next.report.checked, 'full');
    }),
  'a client without the secret gets no answer': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path);
      strictEqual(await requestWithoutSecret(path), undefined);
      await store.close();
    }),
  'a client rejects an owner without the secret': (library) =>
    inFolder(async (path) => strictEqual(await impersonateOwner(library, path), 1)),
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
