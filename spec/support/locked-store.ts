/**
 * A store for tests of tools: a SQLite database that this process holds an exclusive lock on, with the files beside it.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { openDriver } from '../../src/adapters/sqlite/driver.js';
import { protectStore } from '../../src/journal/store-files.js';
import { SECRET } from './toolbox-fixture.mjs';

/** Creates and locks a store at this real path, and protects it from tools. */
export function lockedStore(path: string): { close(): void } {
  mkdirSync(dirname(path), { recursive: true });
  protectStore(path);
  const driver = openDriver(path);
  driver.exec('PRAGMA locking_mode = EXCLUSIVE');
  driver.exec('PRAGMA journal_mode = WAL');
  driver.exec('PRAGMA synchronous = OFF');
  driver.exec('CREATE TABLE t (x)');
  driver.exec(`INSERT INTO t VALUES ('${SECRET}')`);
  for (const suffix of ['.owner', '.owner.4711', '.anchor']) writeFileSync(`${path}${suffix}`, `${SECRET}\n`);
  return driver;
}

/** True while this process holds a POSIX lock on the file. Linux only. */
export function isLocked(path: string): boolean {
  const { ino } = statSync(path);
  const lines = readFileSync('/proc/locks', 'utf8').split('\n');
  return lines.some((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `));
}

/**
 * Returns the checksums of all files in a directory. Another process reads them, because reading a locked file in this
 * one would drop its lock. Empty drafts of write_file are ignored: without /proc, a draft may remain at the target of a
 * swapped link.
 */
export function digests(directory: string): string {
  const script = 'cd "$1" && find . -type f ! -name ".rondo-*" -exec cksum {} + | sort';
  return execFileSync('/bin/sh', ['-c', script, 'sh', directory], { encoding: 'utf8' });
}
