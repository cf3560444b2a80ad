/** The index of due turns in SQLite: one commit with the entries, a lost index, earlier versions, and several processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, expect, onTestFinished } from 'vitest';
import {
  builtStoreUrl,
  cleanUp,
  expectFault,
  FaultInjectingDriver,
  freshFile,
  readValues,
  startOwnerProcess,
} from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { DueChange } from '../../journal/due-turns.js';
import type { Batch, Store } from '../../journal/store.js';
import { openDriver, openSqlite, type SqliteOptions, type SqliteStore } from './index.js';
import { migrate, migrations } from './schema.js';

afterAll(cleanUp);

const FOREVER = Number.MAX_SAFE_INTEGER;

function batchOf(session: string, fence: number, seq: number, due: readonly DueChange[]): Batch {
  const entry = { seq, at: seq, key: `t/${seq}`, type: 'step.taken', value: seq };
  return { session, fence, firstSeq: seq, entries: [entry], due };
}

async function dueTimes(store: Store): Promise<Readonly<Record<string, number>>> {
  return Object.fromEntries((await store.dueTurns.list(FOREVER, 100)).map(({ turn, dueAt }) => [turn, dueAt]));
}

async function openForTest(file: string, options?: SqliteOptions): Promise<SqliteStore> {
  const store = await openSqlite(file, options);
  onTestFinished(() => store.close());
  return store;
}

function execSql(file: string, sql: string): void {
  const driver = openDriver(file);
  driver.exec(sql);
  driver.close();
}

/** Creates a store in which the turns `a.1` and `a.2` of session `a` are due. */
async function storeWithDueTurns(file: string): Promise<{ readonly fence: number }> {
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  await store.journal.append(
    batchOf('a', fence, 0, [
      { turn: 'a.1', dueAt: 0 },
      { turn: 'a.2', dueAt: 50 },
    ]),
  );
  await store.close();
  return { fence };
}

verifies('journal.due', 'an append whose due turns cannot be written is not written either', async () => {
  const file = freshFile();
  const faults = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(file, { driver: faults.open });
  const { fence } = await store.journal.claim('a');
  await store.journal.append(batchOf('a', fence, 0, [{ turn: 'a.1', dueAt: 7 }]));
  faults.fail = 'INSERT OR REPLACE INTO due_turns';
  const failed = store.journal.append(batchOf('a', fence, 1, [{ turn: 'a.1', dueAt: 9 }]));
  expect((await expectFault(failed)).code).not.toBe('STALE_WRITER');
  faults.fail = undefined;
  await store.close().catch(() => {});
  const reopened = await openForTest(file);
  expect(await readValues(reopened, 'a')).toEqual([0]);
  expect(await dueTimes(reopened)).toEqual({ 'a.1': 7 });
});

/** Appends entries until it is killed: with entry n, the turn becomes due at n. */
const APPENDING_PROCESS = `
const { openSqlite } = await import(process.argv[1]);
const store = await openSqlite(process.argv[2], { durability: 'os' });
const { fence, nextSeq } = await store.journal.claim('a');
process.stdout.write('ready');
for (let seq = nextSeq; ; seq++) {
  const entries = [{ seq, at: seq, key: 't/' + seq, type: 'step.taken', value: seq }];
  await store.journal.append({ session: 'a', fence, firstSeq: seq, entries, due: [{ turn: 'a.1', dueAt: seq }] });
}`;

verifies('journal.due', 'whenever a process is killed, the due turns are those of the last entry', async () => {
  const file = freshFile();
  let total = 0;
  for (let round = 0; round < 5; round++) {
    const args = ['--input-type=module', '-e', APPENDING_PROCESS, builtStoreUrl, file];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await new Promise((resolve) => setTimeout(resolve, 40 + 30 * round));
    child.kill('SIGKILL');
    await once(child, 'exit');
    const store = await openSqlite(file);
    total = (await readValues(store, 'a')).length;
    expect(await dueTimes(store)).toEqual(total === 0 ? {} : { 'a.1': total - 1 });
    await store.close();
  }
  expect(total, 'the process appended nothing before it was killed').toBeGreaterThan(0);
});

verifies('journal.due', 'a store that lost its index opens with an empty, incomplete one', async () => {
  for (const sql of ['DROP TABLE due_turns', 'DROP INDEX due_turns_due_at']) {
    const file = freshFile();
    await storeWithDueTurns(file);
    execSql(file, sql);
    const store = await openSqlite(file);
    expect(store.report.damage).toEqual([]);
    expect(await store.dueTurns.isComplete()).toBe(false);
    expect(await dueTimes(store)).toEqual({});
    await store.dueTurns.rebuild([{ session: 'a', turn: 'a.1', dueAt: 0 }]);
    expect(await store.dueTurns.isComplete()).toBe(true);
    await store.close();
    const reopened = await openForTest(file);
    expect(await reopened.dueTurns.isComplete()).toBe(true);
    expect(await dueTimes(reopened)).toEqual({ 'a.1': 0 });
  }
});

verifies('journal.due', 'a rebuild changes no turn that was written since the index was lost', async () => {
  const file = freshFile();
  await storeWithDueTurns(file);
  execSql(file, 'DROP TABLE due_turns');
  const store = await openForTest(file);
  const { fence } = await store.journal.claim('a');
  const changes = [
    { turn: 'a.1', dueAt: undefined },
    { turn: 'a.2', dueAt: 90 },
  ];
  await store.journal.append(batchOf('a', fence, 1, changes));
  await store.dueTurns.rebuild(['a.1', 'a.2', 'a.3'].map((turn) => ({ session: 'a', turn, dueAt: 0 })));
  expect(await dueTimes(store)).toEqual({ 'a.2': 90, 'a.3': 0 });
  await store.journal.append(batchOf('a', fence, 2, [{ turn: 'a.3', dueAt: undefined }]));
  await store.close();
  const driver = openDriver(file);
  expect(driver.prepare('SELECT turn FROM due_turns WHERE sid > 0').all()).toEqual([{ turn: 'a.2' }]);
  driver.close();
});

verifies(
  'journal.due',
  'a store of an earlier version has an incomplete index, unless it has no sessions',
  async () => {
    for (const isEmpty of [true, false]) {
      const file = freshFile();
      const driver = openDriver(file);
      driver.exec('PRAGMA journal_mode = WAL');
      migrate(driver, file, 1, migrations.slice(0, 3));
      if (!isEmpty)
        driver.exec("INSERT INTO sessions (sid, name, fence, commit_no, checksum) VALUES (1, 'a', 1, 1, 'x')");
      driver.close();
      const store = await openForTest(file);
      expect(await store.dueTurns.isComplete()).toBe(isEmpty);
      expect(await dueTimes(store)).toEqual({});
    }
  },
);

verifies(
  'journal.due',
  'the check of a store accepts its index, and a removed damaged session leaves no row',
  async () => {
    const file = freshFile();
    await storeWithDueTurns(file);
    execSql(file, "UPDATE records SET body = replace(body, 'step.taken', 'step.faked')");
    const store = await openForTest(file, { check: 'full' });
    expect(store.report.damage).toMatchObject([{ kind: 'damaged', session: 'a' }]);
    await store.journal.remove('a');
    expect(await dueTimes(store)).toEqual({});
    expect((await store.maintenance.verify()).damage).toEqual([]);
    await store.close();
    const reopened = await openForTest(file, { check: 'full' });
    expect(reopened.report.damage).toEqual([]);
  },
);

verifies('journal.due', 'a client keeps its due turns when the owner is killed', async () => {
  const file = freshFile();
  const owner = await startOwnerProcess(file);
  onTestFinished(() => owner.signal('SIGKILL'));
  const store = await openForTest(file);
  const { fence } = await store.journal.claim('mine');
  await store.journal.append(batchOf('mine', fence, 0, [{ turn: 'mine.1', dueAt: 5 }]));
  expect(await dueTimes(store)).toEqual({ 'mine.1': 5 });
  expect(store.owner.here).toBe(false);
  await owner.kill();
  const without = { session: 'mine', fence, firstSeq: 1, entries: [], due: [{ turn: 'mine.2', dueAt: 8 }] };
  await store.journal.append(without);
  expect(store.owner.here).toBe(true);
  expect(await dueTimes(store)).toEqual({ 'mine.1': 5, 'mine.2': 8 });
});

verifies('journal.due', 'a due turn with a session that does not exist is not listed', async () => {
  const file = freshFile();
  await storeWithDueTurns(file);
  execSql(file, "INSERT INTO due_turns (sid, turn, session, due_at) VALUES (99, 'x.1', 'x', 0), (1, 'y.1', 'y', 3)");
  const store = await openForTest(file);
  expect(await dueTimes(store)).toEqual({ 'a.1': 0, 'a.2': 50 });
  expect(await store.dueTurns.nextDueAt(0)).toBe(50);
});
