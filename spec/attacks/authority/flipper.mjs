// Swaps two files as fast as it can until it is killed: what was judged a moment ago may be another file by now.

import { linkSync, renameSync, symlinkSync, unlinkSync } from 'node:fs';

const [, , how = 'link', ...files] = process.argv;
const sets = Array.from({ length: files.length / 3 }, (_, n) => files.slice(3 * n, 3 * n + 3));
let n = 0;
process.stdout.write('ready\n');
for (;;) {
  const [place = '', one = '', other = ''] = sets[n % sets.length] ?? [];
  const next = Math.floor(n++ / sets.length) % 2 === 0 ? other : one;
  const draft = `${place}.draft`;
  try {
    if (how === 'symlink') symlinkSync(next, draft);
    else linkSync(next, draft);
    renameSync(draft, place);
  } catch {
    try {
      unlinkSync(draft);
    } catch {}
  }
}
