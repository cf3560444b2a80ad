// The global set-up of the tests: one folder for all temporary files of a run, removed at its end, because the test
// runner ends its processes without their exit handlers.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Creates the folder, and returns the function that removes it. */
export default function setUp(): () => void {
  // A short name, because paths of sockets are limited to about 100 characters.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'rt-')));
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
