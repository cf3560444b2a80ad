/** Values of many megabytes: copies must not add up. */

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { duplicates, kit, run } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.value', 'F3 copies add up: 40 MiB of small parts in one value', async () => {
  const k = kit();
  const half = 'x'.repeat(20 * 1024 * 1024);
  const session = await k.open();
  const o = await run(session, async (s) => {
    const v = await s.call({ name: 'c', body: () => ({ a: half, b: half }) }, null);
    return (v as { a: string }).a.length;
  });
  expect(o).toEqual({ status: 'ok', output: half.length });
  expect(duplicates(await k.entries())).toEqual([]);
});

verifies(
  'kernel.value',
  'F4 copies add up: a replay of many records',
  async () => {
    const k = kit();
    const body = async (s: Scope) => {
      for (let i = 0; i < 30; i++) await s.record('a.b', () => ({ text: 'x'.repeat(4 * 1024 * 1024) }) as never);
      await s.wait('go');
      return 'done';
    };
    await run(await k.open(), body);
    const session = await k.open();
    await session.signal({ id: '1', name: 'go' });
    expect(await run(session, body)).toEqual({ status: 'ok', output: 'done' });
  },
  60_000,
);
