// Lets work run with the rights of a user who may not enter a private directory.

import { chmodSync } from 'node:fs';

const NOBODY = 65_534;

/** Runs work that may not enter this directory. Root may enter any, so for root the work runs as another user. */
export async function withoutAccess<T>(directory: string, work: () => T | Promise<T>): Promise<T> {
  const isRoot = process.geteuid?.() === 0;
  chmodSync(directory, isRoot ? 0o700 : 0);
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    return await work();
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(directory, 0o700);
  }
}
