// What the guards of the stores prevent: the journal cases, a record that was changed, a sync that failed.

import { strictEqual } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Driver } from '../../src/adapters/sqlite/index.js';
import type { Entry } from '../../src/protocol/index.js';
import type { GuardCheck } from './kernel-checks.js';
import type { Library } from './library.js';
import { codeOf } from './stage.js';

const entry = (seq: number): Entry => ({ seq, at: 1, type: 'step.taken', key: `t1/${seq}`, value: `value ${seq}` });

async function inFolder(work: (path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rondo-guard-'));
  try {
    await work(join(folder, 'journal.db'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A driver whose disk fails to sync at one commit, and works before and after. */
function failingAt(library: Library, commit: number): (path: string) => Driver {
  let commits = 0;
  return (path) => {
    const driver = library.openDriver(path);
    const prepare: Driver['prepare'] = (sql) => {
      const statement = driver.prepare(sql);
      if (sql !== 'COMMIT') return statement;
      const run = (): number => {
        commits += 1;
        if (commits === commit) throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' });
        return statement.run();
      };
      return { ...statement, run };
    };
    return { exec: (sql) => driver.exec(sql), prepare, close: () => driver.close() };
  };
}

export const storeChecks = {
  'a store in memory breaks its promise': async (library) => {
    for (const { run } of library.journalCases(() => ({ open: async () => library.memoryStore() }))) await run();
  },
  'a record that was changed is read as if it were whole': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path);
      const { fence } = await store.journal.claim('s');
      await store.journal.append({ session: 's', fence, first: 0, entries: [entry(0)] });
      await store.close();
      const driver = library.openDriver(path);
      driver.exec("UPDATE records SET body = replace(body, 'value 0', 'value 9')");
      driver.close();
      const again = await library.openSqlite(path, { check: 'heads' });
      const reading = async (): Promise<void> => {
        for await (const _ of again.journal.read('s', 0));
      };
      strictEqual(await codeOf(reading()), 'STORE_DAMAGED');
      await again.close();
    }),
  'something is acknowledged that was not synced, or a failed sync is tried again': (library) =>
    inFolder(async (path) => {
      const store = await library.openSqlite(path, { driver: failingAt(library, 2) });
      const { fence } = await store.journal.claim('s');
      const first = codeOf(store.journal.append({ session: 's', fence, first: 0, entries: [entry(0)] }));
      strictEqual(await first, 'SYNC_FAILED');
      const second = codeOf(store.journal.append({ session: 's', fence, first: 0, entries: [entry(0)] }));
      strictEqual(await second, 'SYNC_FAILED');
      await store.close().catch(() => {});
    }),
} as const satisfies Record<string, GuardCheck>;
