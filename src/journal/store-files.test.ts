/** Which paths are protected as files of a store, and which are not. */
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { isStoreFile, protectedDatabases, protectStore, storeFilesOf } from './store-files.js';

const suffixes = [
  '-wal',
  '-shm',
  '-journal',
  '.anchor',
  '.anchor.new',
  '.lock',
  '.lock-journal',
  '.lock-wal',
  '.lock-shm',
  '.owner',
  '.sock',
];

verifies('toolbox.store', 'a database and all of its companion files are protected', () => {
  expect(isStoreFile('/srv/data/app.db')).toBe(false);
  protectStore('/srv/data/app.db');
  protectStore('/srv/data/app.db');
  expect(protectedDatabases()).toEqual(['/srv/data/app.db']);
  for (const suffix of ['', ...suffixes, '.owner.4711', '.owner.x-y', '-later']) {
    expect(isStoreFile(`/srv/data/app.db${suffix}`), suffix).toBe(true);
  }
  expect(isStoreFile('/srv/data//app.db/')).toBe(true);
  expect(storeFilesOf('/srv/data/app.db')).toEqual(['', ...suffixes].map((suffix) => `/srv/data/app.db${suffix}`));
});

verifies('toolbox.store', 'a file that does not belong to the store is not protected', () => {
  protectStore('/srv/data/app.db');
  const unrelated = [
    'app.dbx',
    'my-app.db',
    'app',
    'app.d',
    'sub/app.db',
    'app.db.d/notes.txt',
    'app.db-d/notes.txt',
    '',
  ];
  for (const name of unrelated) expect(isStoreFile(`/srv/data/${name}`), name).toBe(false);
  expect(isStoreFile('/srv/app.db')).toBe(false);
  expect(isStoreFile('/srv/data2/app.db')).toBe(false);
});

verifies(
  'toolbox.store',
  'a .rondo directory and everything in it are protected, whether its store is open or not',
  () => {
    for (const path of [
      '/p/.rondo',
      '/p/.rondo/',
      '/p/.rondo/journal.db',
      '/p/a/.rondo/b/c',
      'C:\\p\\.rondo\\owner.json',
    ]) {
      expect(isStoreFile(path), path).toBe(true);
    }
    for (const path of ['/p/.rondo-0f3a', '/p/.rondorc', '/p/x.rondo/a', '/p/rondo/a']) {
      expect(isStoreFile(path), path).toBe(false);
    }
  },
);

verifies('toolbox.store', 'backslashes and slashes in paths are equivalent', () => {
  protectStore('C:\\data\\app.db');
  for (const path of ['C:\\data\\app.db', 'C:\\data\\app.db-wal', 'C:/data/app.db.owner', 'C:\\data/app.db']) {
    expect(isStoreFile(path), path).toBe(true);
  }
  for (const path of ['C:\\data\\app.db.d\\notes.txt', 'C:\\data\\app.dbx'])
    expect(isStoreFile(path), path).toBe(false);
});

verifies('toolbox.store', 'all copies of the module in one process protect the same files', async () => {
  const copy = (await import(`${import.meta.resolve('./store-files.js')}?copy`)) as { isStoreFile: typeof isStoreFile };
  protectStore('/srv/shared/app.db');
  expect(copy.isStoreFile).not.toBe(isStoreFile);
  expect(copy.isStoreFile('/srv/shared/app.db')).toBe(true);
});
