/**
 * The log of damage: an incident stays open until it is accepted by its id, whatever happens to the files of the store.
 */
import { copyFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import {
  appendEntry,
  cleanUp,
  copyStoreFiles,
  expectFault,
  freshFile,
  readValues,
  startOwnerProcess,
} from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { digestOfText } from '../../journal/record.js';
import { type Damage, openDriver, openSqlite, type SqliteStore, type VerifyCursor, type VerifyStep } from './index.js';
import { migrate, migrations } from './schema.js';

afterAll(cleanUp);

/** Creates a store with these sessions of five entries each, and returns its path. */
async function createStoreWith(...sessions: readonly string[]): Promise<string> {
  const file = freshFile();
  const store = await openSqlite(file);
  for (const session of sessions) {
    const { fence } = await store.journal.claim(session);
    for (let n = 0; n < 5; n++) await appendEntry(store, session, fence, n, `${session}${n}`);
  }
  await store.close();
  return file;
}

/** Changes a closed store behind its back. */
function execSql(file: string, sql: string): void {
  const driver = openDriver(file);
  driver.exec(sql);
  driver.close();
}

const CORRUPT_ENTRY_A2 = `UPDATE records SET body = replace(body, 'a2', 'a9') WHERE body LIKE '%"a2"%'`;

/** Opens a store and returns its logged damage, which must agree with the report. */
async function loggedDamage(file: string): Promise<readonly Damage[]> {
  const store = await openSqlite(file, { check: 'heads' });
  const { damage } = await store.maintenance.readLog();
  expect(store.report.damage.map(({ kind }) => kind).sort()).toEqual(damage.map(({ kind }) => kind).sort());
  await store.close();
  return damage;
}

/** Runs a verification to its end. */
async function verifyAll(store: SqliteStore): Promise<{ steps: VerifyStep[]; damage: Damage[] }> {
  const steps: VerifyStep[] = [];
  let cursor: VerifyCursor | undefined;
  do {
    const step = await store.maintenance.verify(cursor);
    steps.push(step);
    cursor = step.cursor;
  } while (cursor !== undefined);
  return { steps, damage: steps.flatMap(({ damage }) => damage) };
}

verifies(
  'sqlite.record',
  'a missing, truncated or empty anchor stays logged whenever the store is opened',
  async () => {
    const damagers: ((anchor: string) => void)[] = [
      (anchor) => rmSync(anchor),
      (anchor) => truncateSync(anchor, statSync(anchor).size >> 1),
      (anchor) => writeFileSync(anchor, ''),
    ];
    for (const damageAnchor of damagers) {
      const file = await createStoreWith('a', 'b');
      damageAnchor(`${file}.anchor`);
      for (let n = 0; n < 3; n++) expect(await loggedDamage(file)).toMatchObject([{ kind: 'anchor', id: 1 }]);
      rmSync(`${file}.anchor`);
      expect((await loggedDamage(file)).length).toBeGreaterThan(0);
      const store = await openSqlite(file);
      expect(await readValues(store, 'a')).toHaveLength(5);
      await store.close();
    }
  },
);

verifies('sqlite.record', 'an anchor that is older than the store stays logged', async () => {
  const file = await createStoreWith('a');
  copyFileSync(`${file}.anchor`, `${file}.old`);
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  for (let n = 5; n < 9; n++) await appendEntry(store, 'a', fence, n);
  await store.close();
  copyFileSync(`${file}.old`, `${file}.anchor`);
  for (let n = 0; n < 2; n++) expect(await loggedDamage(file)).toMatchObject([{ kind: 'anchor' }]);
});

verifies(
  'sqlite.record',
  'accepted damage is logged with who accepted it, when and why, and is not reported again',
  async () => {
    const file = await createStoreWith('a');
    rmSync(`${file}.anchor`);
    const store = await openSqlite(file, { now: () => 1_700_000_000_000 });
    const { damage } = await store.maintenance.readLog();
    const ids = damage.map(({ id }) => id);
    const closed = { as: 'continued', by: 'ada', reason: 'moved by hand', at: 1_700_000_000_000 };
    for (let n = 0; n < 2; n++) {
      const accepted = await store.maintenance.accept(ids, { by: n === 0 ? 'ada' : 'bob', reason: 'moved by hand' });
      expect(accepted).toMatchObject([{ kind: 'anchor', closed }]);
    }
    await store.close();
    const again = await openSqlite(file);
    expect(again.report.damage).toEqual([]);
    expect(await again.maintenance.readLog()).toMatchObject({ damage: [], closed: [{ kind: 'anchor', closed }] });
    await again.close();
  },
);

verifies(
  'sqlite.record',
  'a session that lost its end is refused until the loss is accepted, even if the anchor is removed meanwhile',
  async () => {
    const file = freshFile();
    await (await startOwnerProcess(file)).kill();
    const cut = copyStoreFiles(file);
    truncateSync(`${cut}-wal`, statSync(`${cut}-wal`).size - 3000);
    expect(await loggedDamage(cut)).toMatchObject([{ kind: 'lost tail', session: 'c', seq: 2 }]);
    rmSync(`${cut}.anchor`);
    expect(await loggedDamage(cut)).toMatchObject([{ kind: 'lost tail', session: 'c', seq: 2 }, { kind: 'anchor' }]);
    const store = await openSqlite(cut);
    expect((await expectFault(store.journal.claim('c'))).code).toBe('STORE_DAMAGED');
    const { damage } = await store.maintenance.readLog();
    await store.maintenance.accept(
      damage.filter(({ session }) => session === 'c').map(({ id }) => id),
      { by: 'ada' },
    );
    const { fence, nextSeq } = await store.journal.claim('c');
    await appendEntry(store, 'c', fence, nextSeq, 'anew');
    await store.close();
    expect(await loggedDamage(cut)).toMatchObject([{ kind: 'anchor' }]);
    const again = await openSqlite(cut);
    expect(await readValues(again, 'c')).toEqual(['c0', 'c1', 'anew']);
    await again.close();
  },
);

verifies('sqlite.record', 'damage that a read finds is logged, and its session is refused from then on', async () => {
  const file = await createStoreWith('a', 'b');
  execSql(file, CORRUPT_ENTRY_A2);
  const store = await openSqlite(file, { check: 'heads' });
  expect(store.report.damage).toEqual([]);
  expect((await expectFault(readValues(store, 'a'))).code).toBe('STORE_DAMAGED');
  expect((await expectFault(store.journal.claim('a'))).code).toBe('STORE_DAMAGED');
  await store.close();
  expect(await loggedDamage(file)).toMatchObject([{ kind: 'damaged', session: 'a', seq: 2 }]);
});

verifies(
  'sqlite.record',
  'a damaged session stays refused after its damage is accepted, until it is repaired',
  async () => {
    const file = await createStoreWith('a', 'b');
    execSql(file, CORRUPT_ENTRY_A2);
    const store = await openSqlite(file);
    const [incident] = (await store.maintenance.readLog()).damage;
    const ids = [incident?.id ?? 0];
    expect(await store.maintenance.accept(ids, { by: 'ada' })).toMatchObject([{ closed: { as: 'abandoned' } }]);
    expect((await expectFault(store.journal.claim('a'))).code).toBe('STORE_DAMAGED');
    expect((await verifyAll(store)).damage).toEqual([]);
    await store.close();
    for (const check of ['heads', 'full'] as const) {
      const again = await openSqlite(file, { check });
      expect(again.report.damage).toEqual([]);
      expect((await expectFault(readValues(again, 'a'))).code).toBe('STORE_DAMAGED');
      await again.close();
    }
    execSql(file, `UPDATE records SET body = replace(body, 'a9', 'a2') WHERE body LIKE '%"a9"%'`);
    const repaired = await openSqlite(file);
    expect((await expectFault(readValues(repaired, 'a'))).code).toBe('STORE_DAMAGED');
    expect(await repaired.maintenance.accept(ids, { by: 'ada' })).toMatchObject([{ closed: { as: 'continued' } }]);
    expect(await readValues(repaired, 'a')).toHaveLength(5);
    await repaired.close();
  },
);

verifies(
  'sqlite.retention',
  'the removal of a session is logged with who removed it and why, and closes its damage',
  async () => {
    const file = await createStoreWith('a', 'b');
    execSql(file, CORRUPT_ENTRY_A2);
    const store = await openSqlite(file, { now: () => 1_700_000_000_000 });
    const removal = { session: 'a', entries: 0, by: 'ada', reason: 'broken', at: 1_700_000_000_000 };
    for (let n = 0; n < 2; n++) {
      expect(await store.maintenance.remove('a', { by: 'ada', reason: 'broken' })).toMatchObject({
        ...removal,
        entries: 5,
      });
    }
    expect(await store.maintenance.remove('absent', { by: 'ada' })).toBeUndefined();
    await store.journal.remove('b');
    const log = await store.maintenance.readLog();
    expect(log.damage).toEqual([]);
    expect(log.closed).toMatchObject([{ session: 'a', closed: { as: 'removed', by: 'ada' } }]);
    expect(log.removals).toMatchObject([{ session: 'b', entries: 5, by: '' }, { session: 'a' }]);
    expect((await store.journal.claim('a')).nextSeq).toBe(0);
    await store.close();
    expect(await loggedDamage(file)).toEqual([]);
  },
);

verifies(
  'sqlite.verify',
  'any process can verify all of a store in steps, although opening it checked only the heads',
  async () => {
    const file = await createStoreWith('a', 'b', 'c', 'd');
    const text = JSON.stringify('long'.repeat(3000));
    const store = await openSqlite(file);
    const { fence } = await store.journal.claim('b');
    await store.blobs.put('b', digestOfText(text), text);
    const entry = { seq: 5, at: 1, key: 't/5', type: 'step.taken', blob: digestOfText(text) };
    await store.journal.append({ session: 'b', fence, firstSeq: 5, entries: [entry] });
    await store.close();
    execSql(
      file,
      `${CORRUPT_ENTRY_A2}; UPDATE blobs SET body = replace(body, 'long', 'lone');
    DELETE FROM sessions WHERE name = 'c'; DELETE FROM records WHERE id % 67108864 = 3 AND body LIKE '%"d3"%'`,
    );
    rmSync(`${file}.anchor`);
    const owner = await openSqlite(file, { check: 'heads' });
    const client = await openSqlite(file);
    expect(client.owner.here).toBe(false);
    const found = (await verifyAll(client)).damage.map(({ kind, session, seq }) => [kind, session, seq]);
    expect(found).toEqual([
      ['damaged', 'a', 2],
      ['damaged', 'b', 5],
      ['damaged', 'd', 3],
      ['orphan', undefined, undefined],
    ]);
    const { damage } = await client.maintenance.readLog();
    expect(damage.map(({ kind, session }) => [kind, session])).toEqual([
      ['anchor', undefined],
      ...found.map(([kind, session]) => [kind, session]),
    ]);
    expect((await verifyAll(owner)).damage).toHaveLength(4);
    expect((await owner.maintenance.readLog()).damage).toHaveLength(5);
    await client.close();
    await owner.close();
    expect(await loggedDamage(file)).toHaveLength(5);
  },
);

verifies('sqlite.verify', 'sessions that are written during a verification are not reported as damaged', async () => {
  const file = await createStoreWith('a', 'b');
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  await Promise.all(Array.from({ length: 500 }, (_, n) => appendEntry(store, 'a', fence, 5 + n)));
  let [next, entries] = [505, 0];
  // Starts inside a session, and appends to it between the steps.
  let cursor: VerifyCursor | undefined = { phase: 'sessions', sid: 1, at: { bad: [], next: 0, prev: '' } };
  for (let n = 0; cursor !== undefined && n < 1000; n++) {
    const step: VerifyStep = await store.maintenance.verify(cursor);
    expect(step.damage).toEqual([]);
    entries += step.entries;
    cursor = step.cursor;
    await appendEntry(store, 'a', fence, next++);
  }
  expect(entries).toBeGreaterThanOrEqual(510);
  await store.close();
});

verifies('sqlite.verify', 'a file with a broken structure is fully checked whenever it is opened', async () => {
  const file = await createStoreWith('a');
  // The header field with the number of free pages. The file has none.
  const bytes = readFileSync(file);
  bytes.writeUInt32BE(7, 36);
  writeFileSync(file, bytes);
  const store = await openSqlite(file, { check: 'heads' });
  expect((await verifyAll(store)).damage).toMatchObject([{ kind: 'file' }]);
  expect((await expectFault(store.journal.claim('a'))).message).toContain('can only be read');
  await store.close();
  for (let n = 0; n < 2; n++) {
    const again = await openSqlite(file, { check: 'heads' });
    expect(again.report).toMatchObject({ checked: 'full', damage: [{ kind: 'file' }] });
    await again.close();
  }
});

verifies('sqlite.schema', 'opening a store of the previous schema adds an empty log', async () => {
  const file = freshFile();
  const driver = openDriver(file);
  migrate(driver, file, 1, migrations.slice(0, 2));
  driver.close();
  const store = await openSqlite(file);
  expect(await store.maintenance.readLog()).toEqual({ damage: [], closed: [], removals: [] });
  await store.close();
});
