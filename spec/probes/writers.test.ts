/** Writers that lost their session: to another writer, to a removal, to a broken opening. */
import { expect } from 'vitest';
import { codeOf, type Kit, kit, run } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

/** Counts how often the journal is read, and stops whoever reads it for ever. */
function counted(k: Kit): { count: number } {
  const reads = { count: 0 };
  const read = k.store.journal.read.bind(k.store.journal);
  const store = k.store as { journal: { read: typeof read } };
  store.journal.read = (s, f) => {
    reads.count += 1;
    if (reads.count > 2000) throw new Error('spins');
    return read(s, f);
  };
  return reads;
}

verifies(
  'kernel.fence',
  'F1 an older session runs a known root after another one wrote: it spins, or writes',
  async () => {
    const k = kit();
    const old = await k.open();
    await run(old, (s) => s.wait('x'));
    const young = await k.open();
    await young.signal({ id: '1', name: 'x', value: 1 });
    const reads = counted(k);
    // Without a word to write it learns nothing; with one it is refused.
    expect((await run(old, (s) => s.wait('x'))).status).toBe('paused');
    expect(await codeOf(old.signal({ id: '2', name: 'x' }))).toBe('STALE_WRITER');
    expect(reads.count).toBeLessThan(100);
  },
);

verifies('kernel.fence', 'F2 a session whose journal was removed under it spins, or goes on', async () => {
  const k = kit();
  const old = await k.open();
  await run(old, (s) => s.wait('x'));
  await k.store.journal.remove('s');
  const reads = counted(k);
  expect(await codeOf(run(old, (s) => s.wait('x')))).toBe('STORE_DAMAGED');
  expect(reads.count).toBeLessThan(100);
});

verifies('kernel.options', 'X3 opening with a broken option must not fence the writer that works', async () => {
  const k = kit();
  const session = await k.open();
  await run(session, (s) => s.wait('x'));
  const view = { name: 'v', version: 1, initial: 0, apply: (n: number) => n };
  await codeOf(k.open({ views: [view as never, { ...view } as never] }));
  expect(await codeOf(session.signal({ id: '1', name: 'x' }))).toBe('nothing');
});
