/**
 * The shared-memory file of the WAL, which SQLite maps into memory. SQLite extends it by one byte in each 4 KiB, so on a
 * file system with smaller blocks it has holes, and a write into a hole of a full disk ends the process with SIGBUS. The
 * owner fills the file when it opens the store, so that a full disk is a Fault.
 */
import { closeSync, constants, existsSync, fstatSync, openSync, rmSync, writeSync } from 'node:fs';
import { writeNewFile } from './files.js';

/** Four regions of SQLite, which hold an index of about 16,000 pages of the WAL. It is checkpointed long before that. */
export const SHARED_MEMORY_BYTES = 4 * 32 * 1024;

/**
 * Creates the file, if it is missing, so that opening the database fails before SQLite maps it if the disk is full.
 * SQLite empties it and uses the same space again.
 */
export function reserveSharedMemory(database: string): void {
  const path = `${database}-shm`;
  if (process.platform === 'win32' || existsSync(path)) return;
  try {
    // guard: shared-memory-reserved
    writeNewFile(path, '\0'.repeat(SHARED_MEMORY_BYTES));
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/**
 * Extends the file of an open database. Returns its descriptor, to be closed after the connection: closing it drops the
 * POSIX locks that SQLite has on the file. Undefined if there is no file.
 */
export function fillSharedMemory(database: string): number | undefined {
  const path = `${database}-shm`;
  if (process.platform === 'win32' || !existsSync(path)) return undefined;
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const zeros = Buffer.alloc(SHARED_MEMORY_BYTES);
    for (let at = fstatSync(descriptor).size; at < SHARED_MEMORY_BYTES; )
      at += writeSync(descriptor, zeros, at, null, at);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}
