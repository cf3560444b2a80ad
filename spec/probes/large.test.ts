// Values of many megabytes: the size limit applies to one value, not to all copies together.

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { duplicates, kernelFixture, run } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.value', 'a value of 40 MiB can be returned from a call', async () => {
  const fixture = kernelFixture();
  const half = 'x'.repeat(20 * 1024 * 1024);
  const session = await fixture.open();
  const o = await run(session, async (s) => {
    const v = await s.call({ name: 'c', body: () => ({ a: half, b: half }) }, null);
    return (v as { a: string }).a.length;
  });
  expect(o).toEqual({ status: 'ok', output: half.length });
  expect(duplicates(await fixture.entries())).toEqual([]);
});

verifies(
  'kernel.value',
  'many records of 4 MiB can be replayed',
  async () => {
    const fixture = kernelFixture();
    const body = async (s: Scope) => {
      for (let i = 0; i < 30; i++) await s.record('a.b', () => ({ text: 'x'.repeat(4 * 1024 * 1024) }) as never);
      await s.wait('go');
      return 'done';
    };
    await run(await fixture.open(), body);
    const session = await fixture.open();
    await session.signal({ id: '1', name: 'go' });
    expect(await run(session, body)).toEqual({ status: 'ok', output: 'done' });
  },
  60_000,
);
