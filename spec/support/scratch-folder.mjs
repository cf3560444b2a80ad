// A temporary folder for a fixture that the files of a test process share. Each file empties it when it ends.

import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Creates a folder that is removed when the process exits.
 * @param {string} prefix @returns {{ path: string, empty: () => void }}
 */
export function createScratchFolder(prefix) {
  const path = realpathSync(mkdtempSync(join(tmpdir(), prefix)));
  process.once('exit', () => rmSync(path, { recursive: true, force: true }));
  const empty = () => {
    for (const name of readdirSync(path)) rmSync(join(path, name), { recursive: true, force: true });
  };
  return { path, empty };
}
