// Replaces files by links to two alternating files as fast as possible until it is killed, to provoke races between
// check and use.

import { linkSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';

const [, , how = 'link', ...files] = process.argv;
/** Triples of a target path and the two files that alternate there. */
const sets = Array.from({ length: files.length / 3 }, (_, n) => files.slice(3 * n, 3 * n + 3));
let n = 0;
process.stdout.write('ready\n');
for (;;) {
  const [target = '', one = '', other = ''] = sets[n % sets.length] ?? [];
  const next = Math.floor(n++ / sets.length) % 2 === 0 ? other : one;
  const draft = `${target}.draft`;
  try {
    if (how === 'symlink') symlinkSync(next, draft);
    else linkSync(next, draft);
    renameSync(draft, target);
  } catch {
    try {
      unlinkSync(draft);
    } catch {}
  }
}
