// The global set-up of the tests: one folder for all temporary files of a run, removed at its end, because the test
// runner ends its processes without their exit handlers.

import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const PREFIX = 'rt-';

/** Creates the folder, and returns the function that removes it. The runner calls this once for each project. */
export default function setUp(): (() => void) | undefined {
  if (basename(tmpdir()).startsWith(PREFIX)) return undefined;
  // A short name, because paths of sockets are limited to about 100 characters.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), PREFIX)));
  // Some tests start processes as another user.
  chmodSync(folder, 0o755);
  process.env.TMPDIR = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
