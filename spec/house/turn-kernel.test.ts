import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { importsOf } from './imports.js';
import { isTest, readText, sources } from './tree.js';

/** Files that decide when a turn runs. Code that runs one turn must not know them. */
const SCHEDULING = /(?:^|\/)(?:worker|host|rebuild-due-turns)\.ts$|schedul|cron|^src\/surfaces\//;

const KERNEL = 'src/host/turn-kernel/';

/** Returns the files that a file imports, directly or not, also for their types, with the file that imports each first. */
function importedBy(root: string): ReadonlyMap<string, string> {
  const importers = new Map<string, string>();
  const queue = [root];
  for (let file = queue.shift(); file !== undefined; file = queue.shift())
    for (const { specifier } of importsOf({ file, text: readText(file) }).imports) {
      if (!specifier.startsWith('.')) continue;
      const imported = join(dirname(file), specifier).replace(/\.js$/, '.ts');
      if (importers.has(imported)) continue;
      importers.set(imported, file);
      queue.push(imported);
    }
  return importers;
}

const kernelFiles = sources(['src/host'])
  .map(({ file }) => file)
  .filter((file) => file.startsWith(KERNEL) && !isTest(file));

verifies('house.turnKernel', 'the code that runs one turn imports no worker, no scheduler and no surface', () => {
  expect(kernelFiles).toContain(`${KERNEL}turn-kernel.ts`);
  for (const root of kernelFiles) {
    const importers = importedBy(root);
    const found = [...importers].filter(([file]) => SCHEDULING.test(file));
    expect(found, `${root} knows what decides when a turn runs`).toEqual([]);
  }
});

verifies('house.turnKernel', 'the test follows imports of imports', () => {
  const importers = importedBy('src/host/host.ts');
  expect(importers.get('src/host/worker.ts')).toBe('src/host/host.ts');
  expect(importers.get(`${KERNEL}start-refusal.ts`)).toBe(`${KERNEL}turn-kernel.ts`);
  expect([...importers.keys()].filter((file) => SCHEDULING.test(file)).sort()).toEqual([
    'src/host/hosted/cron-fields.ts',
    'src/host/hosted/schedule.ts',
    'src/host/rebuild-due-turns.ts',
    'src/host/worker.ts',
  ]);
});
