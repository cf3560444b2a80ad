// Writers that lost their session to another writer or to a removal.

import { expect } from 'vitest';
import { codeOf, type KernelFixture, kernelFixture, run } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

/** Counts the reads of the journal, and throws after 2000. */
function countReads(fixture: KernelFixture): { count: number } {
  const reads = { count: 0 };
  const read = fixture.store.journal.read.bind(fixture.store.journal);
  const store = fixture.store as { journal: { read: typeof read } };
  store.journal.read = (s, f) => {
    reads.count += 1;
    if (reads.count > 2000) throw new Error('endless loop');
    return read(s, f);
  };
  return reads;
}

verifies('kernel.fence', 'a session that lost its claim neither writes nor loops', async () => {
  const fixture = kernelFixture();
  const older = await fixture.open();
  await run(older, (s) => s.wait('x'));
  const newer = await fixture.open();
  await newer.signal({ id: '1', name: 'x', value: 1 });
  const reads = countReads(fixture);
  // The pause is written to the index of due turns, which detects the lost claim even without new entries.
  expect(await codeOf(run(older, (s) => s.wait('x')))).toBe('STALE_WRITER');
  expect(await codeOf(older.signal({ id: '2', name: 'x' }))).toBe('STALE_WRITER');
  expect(reads.count).toBeLessThan(100);
});

verifies('kernel.fence', 'a session whose journal was removed ends with STORE_DAMAGED', async () => {
  const fixture = kernelFixture();
  const older = await fixture.open();
  await run(older, (s) => s.wait('x'));
  await fixture.store.journal.remove('s');
  const reads = countReads(fixture);
  expect(await codeOf(run(older, (s) => s.wait('x')))).toBe('STORE_DAMAGED');
  expect(reads.count).toBeLessThan(100);
});

verifies('kernel.options', 'opening with an invalid option does not fence the current writer', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await run(session, (s) => s.wait('x'));
  const view = { name: 'v', version: 1, initial: 0, apply: (n: number) => n };
  await codeOf(fixture.open({ views: [view as never, { ...view } as never] }));
  expect(await codeOf(session.signal({ id: '1', name: 'x' }))).toBe('nothing');
});
