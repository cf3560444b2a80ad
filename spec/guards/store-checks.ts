// Checks of the stores: the journal cases, altered records, and failed syncs.

import { deepStrictEqual, strictEqual } from 'node:assert';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Driver, SqliteStore } from '../../src/adapters/sqlite/index.js';
import type { Entry } from '../../src/protocol/index.js';
import { codeOf } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';
import type { Library } from './library.js';

export const entry = (seq: number): Entry => ({
  seq,
  at: 1,
  type: 'step.taken',
  key: `t1/${seq}`,
  value: `value ${seq}`,
});

export async function inFolder(work: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-guard-'));
  try {
    await work(join(folder, 'journal.db'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface FailingDriver {
  /** The statement that fails the next time it runs. */
  failingStatement?: string;
  /** The driver itself, for changes that bypass the store. */
  raw?: Driver;
  readonly open: (path: string) => Driver;
}

/** Returns a driver whose disk fails once, at a chosen statement. */
export function failingDriver(library: Library): FailingDriver {
  const control: FailingDriver = {
    open: (path) => {
      const driver = library.openDriver(path);
      control.raw = driver;
      const prepare: Driver['prepare'] = (sql) => {
        const statement = driver.prepare(sql);
        const run: typeof statement.run = (...params) => {
          if (control.failingStatement === undefined || !sql.startsWith(control.failingStatement))
            return statement.run(...params);
          delete control.failingStatement;
          throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' });
        };
        return { ...statement, run };
      };
      return { exec: (sql) => driver.exec(sql), prepare, close: () => driver.close() };
    },
  };
  return control;
}

/** Checks that no append is acknowledged during and after a failure of the disk at a statement. */
async function checkFailureAt(
  library: Library,
  path: string,
  statement: string,
  sessions: readonly string[],
): Promise<void> {
  const control = failingDriver(library);
  const store = await library.openSqlite(path, { driver: control.open });
  const claims = await Promise.all(sessions.map((session) => store.journal.claim(session)));
  const append = (): Promise<(string | undefined)[]> =>
    Promise.all(
      sessions.map((session, i) =>
        codeOf(store.journal.append({ session, fence: claims[i]?.fence ?? 0, firstSeq: 0, entries: [entry(0)] })),
      ),
    );
  control.failingStatement = statement;
  for (const code of [...(await append()), ...(await append())]) strictEqual(code, 'SYNC_FAILED');
  await store.close().catch(() => {});
}

/** Opens a store with one entry that was altered while the store was closed. */
async function openAlteredStore(library: Library, path: string): Promise<SqliteStore> {
  const store = await library.openSqlite(path);
  const { fence } = await store.journal.claim('s');
  await store.journal.append({ session: 's', fence, firstSeq: 0, entries: [entry(0)] });
  await store.close();
  const driver = library.openDriver(path);
  driver.exec("UPDATE records SET body = replace(body, 'value 0', 'value 9')");
  driver.close();
  return library.openSqlite(path, { check: 'heads' });
}

export const storeChecks = {
  'the store in memory passes the journal cases': async (library) => {
    for (const { run } of library.journalCases(() => ({ open: async () => library.memoryStore() }))) await run();
  },
  'an altered record is reported as damaged': (library) =>
    inFolder(async (path) => {
      const store = await openAlteredStore(library, path);
      const readAll = async (): Promise<void> => {
        for await (const _ of store.journal.read('s', 0));
      };
      strictEqual(await codeOf(readAll()), 'STORE_DAMAGED');
      await store.close();
    }),
  'a session whose last record was altered is refused': (library) =>
    inFolder(async (path) => {
      const store = await openAlteredStore(library, path);
      strictEqual(await codeOf(store.journal.claim('s')), 'STORE_DAMAGED');
      await store.close();
    }),
  'a writer whose claim was removed cannot append': (library) =>
    inFolder(async (path) => {
      const control = failingDriver(library);
      const store = await library.openSqlite(path, { driver: control.open });
      const { fence } = await store.journal.claim('s');
      control.raw?.exec('UPDATE sessions SET fence = fence + 1');
      const append = store.journal.append({ session: 's', fence, firstSeq: 0, entries: [entry(0)] });
      strictEqual(await codeOf(append), 'STALE_WRITER');
      await store.close();
    }),
  'an append is acknowledged only after its sync, and a failed sync is not retried': (library) =>
    inFolder((path) => checkFailureAt(library, path, 'COMMIT', ['s', 't'])),
  'a WAL that cannot be checkpointed stays open': (library) =>
    inFolder(async (path) => {
      const executed: string[] = [];
      const open = (file: string): Driver => {
        const { exec, ...driver } = library.openDriver(file);
        const note = (sql: string): void => {
          executed.push(sql);
          if (sql === 'PRAGMA wal_checkpoint(PASSIVE)') throw Object.assign(new Error('full'), { errcode: 13 });
          exec(sql);
        };
        return { ...driver, exec: note };
      };
      await (await library.openSqlite(path, { driver: open })).close();
      strictEqual(executed.includes('PRAGMA journal_mode=DELETE'), false);
    }),
  'the shared memory of a store exists before SQLite maps it': (library) =>
    inFolder(async (path) => {
      const found: boolean[] = [];
      const open = (file: string): Driver => {
        found.push(existsSync(`${file}-shm`));
        return library.openDriver(file);
      };
      await (await library.openSqlite(path, { driver: open })).close();
      deepStrictEqual(found, [true]);
    }),
  'a failed statement that commits by itself stops the store': (library) =>
    inFolder((path) => checkFailureAt(library, path, 'INSERT INTO records', ['s'])),
} as const satisfies Record<string, GuardCheck>;
