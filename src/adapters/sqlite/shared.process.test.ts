/** One store in several processes: who owns it, what a client can rely on, and what happens when the owner ends. */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { afterAll, expect, onTestFinished } from 'vitest';
import {
  appendEntry,
  builtStoreUrl,
  cleanUp,
  expectFault,
  freshFile,
  openInOtherProcess,
  readValues,
  startOwnerProcess,
} from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { digestOfText } from '../../journal/record.js';
import type { Store } from '../../journal/store.js';
import { journalCases } from '../../testing/index.js';
import { openDriver, openSqlite, type SqliteStore } from './index.js';
import { type OwnerInfo, readOwnerFile, writeOwnerFile } from './owner/owner-file.js';
import { type ProcessId, processIdOf, thisProcess } from './owner/process.js';

afterAll(cleanUp);

/** Opens a store twice: the first owns the file, the second, which is returned, reaches it through the socket. */
async function openAsClient(file: string): Promise<Store> {
  const owner = await openSqlite(file);
  const store = await openSqlite(file);
  const close = async (): Promise<void> => {
    await store.close();
    await owner.close();
  };
  return {
    ...store,
    journal: store.journal,
    blobs: store.blobs,
    snapshots: store.snapshots,
    leases: store.leases,
    dueTurns: store.dueTurns,
    close,
  };
}

const cases = journalCases(() => {
  const file = freshFile();
  return { open: () => openAsClient(file), reopen: () => openAsClient(file) };
});
for (const { name, run } of cases) verifies('journal.cases', `through the socket: ${name}`, run);

/** Starts a process that owns the file and ends with the test. */
async function startOwner(file: string): ReturnType<typeof startOwnerProcess> {
  const owner = await startOwnerProcess(file);
  onTestFinished(() => owner.signal('SIGKILL'));
  return owner;
}

/** Opens a store and closes it after the test. */
async function openForTest(file: string): Promise<SqliteStore> {
  const store = await openSqlite(file);
  onTestFinished(() => store.close());
  return store;
}

/**
 * Reads every file of the store in this process, as a backup or a search would. Closing the files drops POSIX locks.
 */
function readAllFiles(file: string): void {
  for (const name of readdirSync(dirname(file))) {
    if (!name.endsWith('.sock')) readFileSync(join(dirname(file), name));
  }
}

verifies('sqlite.owner', 'a second process shares the store of the first', async () => {
  const file = freshFile();
  const store = await openForTest(file);
  const { fence } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, 0);
  const other = await openInOtherProcess(file);
  expect(other).toMatchObject({ sessions: [{ session: 'a', nextSeq: 1 }], owner: { pid: process.pid, here: false } });
  expect((await store.journal.list()).map(({ session }) => session)).toEqual(['a', 'mine']);
});

verifies(
  'sqlite.owner',
  'a process can open its store twice, and the second store takes over when the first is closed',
  async () => {
    const file = freshFile();
    const [first, second] = [await openSqlite(file), await openSqlite(file)];
    const claim = await second.journal.claim('a');
    await appendEntry(second as never, 'a', claim.fence, 0, 'through the socket');
    expect(await readValues(first as never, 'a')).toEqual(['through the socket']);
    await first.close();
    await appendEntry(second as never, 'a', claim.fence, 1, 'as the owner');
    expect(second.owner).toEqual({ pid: process.pid, here: true });
    expect(await readValues(second as never, 'a')).toEqual(['through the socket', 'as the owner']);
    await second.close();
  },
);

verifies('sqlite.owner', 'a client keeps its claim when the owner is killed, and becomes the next owner', async () => {
  const file = freshFile();
  const owner = await startOwner(file);
  const store = await openForTest(file);
  expect(store.owner).toEqual({ pid: owner.pid, here: false });
  const { fence } = await store.journal.claim('mine');
  await appendEntry(store, 'mine', fence, 0, 'before');
  await owner.kill();
  await appendEntry(store, 'mine', fence, 1, 'after');
  expect(store.owner).toEqual({ pid: process.pid, here: true });
  expect(await readValues(store, 'mine')).toEqual(['before', 'after']);
  expect(await readValues(store, 'b')).toEqual(['b0', 'b1', 'b2']);
  expect(store.report.damage).toEqual([]);
});

verifies(
  'sqlite.owner',
  'reading all files of the store in the owner does not make a second owner possible',
  async () => {
    const file = freshFile();
    const store = await openForTest(file);
    const { fence } = await store.journal.claim('a');
    for (let round = 0; round < 3; round++) {
      readAllFiles(file);
      expect(await openInOtherProcess(file)).toMatchObject({ owner: { pid: process.pid, here: false } });
      await appendEntry(store, 'a', fence, round);
    }
    expect(store.stats().commits).toBeGreaterThan(3);
  },
);

for (const [commit, isSingle] of [
  ['a single append', true],
  ['a group of appends', false],
] as const)
  verifies(
    'sqlite.owner',
    `a process that lost ownership cannot write ${commit}, and shares the store again`,
    async () => {
      const file = freshFile();
      const store = await openForTest(file);
      const { fence } = await store.journal.claim('a');
      await appendEntry(store, 'a', fence, 0, 'as the owner');
      // Drops the locks, without which another process could not write to the file at all.
      readAllFiles(file);
      expect(await openInOtherProcess(file, 'depose')).toEqual({ deposed: true });
      const writes = [
        appendEntry(store, 'a', fence, 1, 'lost'),
        ...(isSingle ? [] : [appendEntry(store, 'a', fence, 2, 'lost')]),
      ];
      const faults = await Promise.all(writes.map((write) => expectFault(write)));
      for (const { code } of faults) expect(code).toBe('OWNERSHIP_LOST');
      expect((await store.journal.claim('a')).nextSeq).toBe(1);
      expect(await readValues(store, 'a')).toEqual(['as the owner']);
      expect(store.report.damage).toEqual([]);
    },
  );

verifies(
  'sqlite.owner',
  'the owner file of an ended owner in another container does not block a new owner',
  async () => {
    const file = freshFile();
    await (await openSqlite(file)).close();
    const [boot, , started] = thisProcess().start.split(' ');
    const secret = 'ab'.repeat(32);
    writeOwnerFile(file, { pid: 1, start: `${boot} pid:[1] ${started}`, socket: `${file}.sock`, secret });
    const begun = performance.now();
    const store = await openForTest(file);
    expect(performance.now() - begun).toBeLessThan(2000);
    expect(store.owner).toEqual({ pid: process.pid, here: true });
  },
);

verifies('sqlite.owner', 'an owner thread that has ended does not block a new owner', async () => {
  const file = freshFile();
  const thread = new Worker(
    `import(${JSON.stringify(builtStoreUrl)}).then(async ({ openSqlite }) => {
    await openSqlite(${JSON.stringify(file)});
    require('node:worker_threads').parentPort.postMessage('owned');
    setInterval(() => {}, 1000);
  })`,
    { eval: true },
  );
  await once(thread, 'message');
  const shared = await openSqlite(file);
  expect(shared.owner).toEqual({ pid: process.pid, here: false });
  await shared.close();
  await thread.terminate();
  expect((await openForTest(file)).owner).toEqual({ pid: process.pid, here: true });
});

for (const sql of [
  'DELETE FROM ownership',
  'UPDATE ownership SET epoch = 9007199254740991',
  'UPDATE ownership SET epoch = 1.5',
])
  verifies('sqlite.owner', `a damaged epoch is replaced: ${sql}`, async () => {
    const file = freshFile();
    await (await openSqlite(file)).close();
    const driver = openDriver(file);
    driver.exec(sql);
    driver.close();
    const store = await openForTest(file);
    const { fence } = await store.journal.claim('a');
    await appendEntry(store, 'a', fence, 0, 'written');
    expect(await readValues(store, 'a')).toEqual(['written']);
  });

verifies(
  'sqlite.repeat',
  'an append whose acknowledgement was lost with the owner is stored exactly once',
  async () => {
    for (let round = 0; round < 5; round++) {
      const file = freshFile();
      const owner = await startOwner(file);
      const store = await openSqlite(file);
      const name = `round ${round}`;
      const { fence } = await store.journal.claim(name);
      const appends = Array.from({ length: 200 }, (_, n) => appendEntry(store, name, fence, n, `v${n}`));
      await appends[round * 20];
      await owner.kill();
      await Promise.all(appends);
      expect(await readValues(store, name)).toEqual(Array.from({ length: 200 }, (_, n) => `v${n}`));
      await store.close();
      const last = await openSqlite(file, { check: 'full' });
      expect(last.report.damage).toEqual([]);
      await last.close();
    }
  },
);

verifies(
  'sqlite.repeat',
  'a blob is stored together with its entry although the owner was killed in between',
  async () => {
    const file = freshFile();
    const owner = await startOwner(file);
    const store = await openForTest(file);
    const { fence } = await store.journal.claim('large');
    const text = JSON.stringify('z'.repeat(50_000));
    await store.blobs.put('large', digestOfText(text), text);
    expect(await store.blobs.get('large', digestOfText(text))).toBe(text);
    await owner.kill();
    await appendEntry(store, 'large', fence, 0);
    expect(await store.blobs.get('large', digestOfText(text))).toBe(text);
  },
);

verifies(
  'sqlite.silence',
  'a stopped owner is reported with its pid, its state and what to do, and serves again once continued',
  async () => {
    const file = freshFile();
    const owner = await startOwner(file);
    const store = await openForTest(file);
    owner.signal('SIGSTOP');
    const begun = performance.now();
    const [claimFault, openFault] = await Promise.all([
      expectFault(store.journal.claim('x')),
      expectFault(openSqlite(file)),
    ]);
    expect(performance.now() - begun).toBeLessThan(10_000);
    for (const { code, message, data } of [claimFault, openFault]) {
      expect({ code, data }).toEqual({ code: 'STORE_OWNED', data: { path: file, pid: owner.pid, state: 'stopped' } });
      expect(message).toContain(`Process ${owner.pid} owns ${file} and has not answered for 5 seconds. It is stopped`);
      expect(message).toContain(`kill -CONT ${owner.pid}`);
    }
    const again = performance.now();
    await expectFault(store.journal.claim('x'));
    expect(performance.now() - again).toBeLessThan(1000);
    owner.signal('SIGCONT');
    await expect
      .poll(
        () =>
          store.journal.claim('x').then(
            ({ nextSeq }) => nextSeq,
            () => undefined,
          ),
        { timeout: 5000 },
      )
      .toBe(0);
  },
);

verifies(
  'sqlite.silence',
  'a client is notified of an owner that is busy for six seconds, and then gets its answer',
  async () => {
    const file = freshFile();
    const owner = await startOwner(file);
    const messages: string[] = [];
    const store = await openSqlite(file, { notify: (message) => messages.push(message) });
    onTestFinished(() => store.close());
    owner.signal('SIGUSR2');
    await setTimeout(300);
    expect(await store.journal.claim('x')).toMatchObject({ nextSeq: 0 });
    expect(messages).toHaveLength(1);
    expect(messages[0]).toContain(`Process ${owner.pid} owns ${file} and has not answered for 5 seconds. It is busy`);
  },
);

verifies('store.leases', 'a lease that a stopped owner grants after it was given up is released', async () => {
  const file = freshFile();
  const owner = await startOwner(file);
  const [first, second] = [await openForTest(file), await openForTest(file)];
  const holder = { turn: 's.t1', handleRequest: async () => null };
  owner.signal('SIGSTOP');
  expect((await expectFault(Promise.resolve(first.leases.acquire('s', holder)))).code).toBe('STORE_OWNED');
  owner.signal('SIGCONT');
  const acquire = async (): Promise<boolean> => {
    const lease = await Promise.resolve(second.leases.acquire('s', holder)).catch(() => undefined);
    return lease !== undefined;
  };
  await expect.poll(acquire, { message: 'no process can run the session', timeout: 5000 }).toBe(true);
});

verifies('sqlite.owner', 'opening a store that living processes wait for checks only its heads', async () => {
  const checkLevelWith = async (client: ProcessId): Promise<string> => {
    const file = freshFile();
    await (await openSqlite(file)).close();
    const driver = openDriver(file);
    driver.prepare('INSERT INTO clients (id, pid, start) VALUES (?, ?, ?)').run('p', client.pid, client.start);
    driver.close();
    const store = await openSqlite(file);
    await store.close();
    return store.report.checked;
  };
  const living = processIdOf(process.ppid);
  expect(await checkLevelWith(living)).toBe('heads');
  expect(await checkLevelWith({ ...living, start: `${living.start}0` })).toBe('full');
  expect(await checkLevelWith(thisProcess())).toBe('full');
});

verifies('sqlite.owner', 'a store is checked fully after a kill, unless a full check has just begun', async () => {
  const checkLevelAfter = async (ageMs: number): Promise<string> => {
    const file = freshFile();
    const owner = await startOwner(file);
    await owner.kill();
    const recorded = readOwnerFile(file) as OwnerInfo;
    expect(Date.now() - Number(recorded.checkedAt), 'the time of the full check').toBeLessThan(60_000);
    writeOwnerFile(file, { ...recorded, checkedAt: Date.now() - ageMs });
    return (await openForTest(file)).report.checked;
  };
  expect(await checkLevelAfter(0)).toBe('heads');
  expect(await checkLevelAfter(11_000), 'an old check').toBe('full');
  expect(await checkLevelAfter(-60_000), 'a clock that was set back').toBe('full');
});

verifies('sqlite.owner', 'an owner that checks the heads only keeps the time of the last full check', async () => {
  const file = freshFile();
  await (await startOwner(file)).kill();
  const first = readOwnerFile(file)?.checkedAt;
  expect((await openForTest(file)).report.checked).toBe('heads');
  expect(readOwnerFile(file)?.checkedAt, 'the next owner checked the heads only').toBe(first);
});

verifies(
  'sqlite.owner',
  'a process that opens a store whose owner was killed defers to waiting clients first',
  async () => {
    const file = freshFile();
    const owner = await startOwner(file);
    await owner.kill();
    const begun = performance.now();
    const store = await openForTest(file);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(250);
    expect(store.owner.here).toBe(true);
  },
);

verifies('sqlite.silence', 'reading many sessions yields to the event loop', async () => {
  const store = await openForTest(freshFile());
  const names = Array.from({ length: 2000 }, (_, n) => `s${n}`);
  const claims = await Promise.all(names.map((name) => store.journal.claim(name)));
  await Promise.all(names.map((name, n) => appendEntry(store, name, claims[n]?.fence ?? 0, 0)));
  let iterations = 0;
  const count = (): void => {
    iterations += 1;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  expect((await store.journal.list()).map(({ session, nextSeq }) => [session, nextSeq])).toEqual(
    names.map((name) => [name, 1]),
  );
  for (const name of names) expect(await readValues(store, name)).toEqual(['x']);
  clearImmediate(immediate);
  expect(iterations, 'a blocked event loop serves no other process').toBeGreaterThanOrEqual(3);
});
