// A temporary folder for a fixture. The test files of a process share it, and each empties it when it ends.

import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a folder, and the function that empties it.
 * @param {string} prefix @returns {{ path: string, empty: () => void }}
 */
export function createScratchFolder(prefix) {
  const path = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  const empty = () => {
    for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true, force: true });
  };
  return { path, empty };
}
